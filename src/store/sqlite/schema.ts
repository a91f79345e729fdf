import type { DatabaseSync } from 'node:sqlite';
import { LANE, STATE } from '../codes.ts';
import { asideTables } from './aside-tables.ts';
import { enqueueTables } from './enqueue-tables.ts';
import { errorGroupTables } from './error-group-tables.ts';
import { errorHistoryTables } from './error-history-tables.ts';
import { historyTables } from './history-tables.ts';
import { limitTables } from './limit-tables.ts';
import { logTables } from './log-tables.ts';
import { reactionsTables } from './reactions-tables.ts';
import { resultsTables } from './results-tables.ts';
import { retentionTables } from './retention-tables.ts';
import { scheduleTables } from './schedules-tables.ts';
import { selectTables } from './select-tables.ts';
import { workersTables } from './workers-tables.ts';

/*
 * How a queue lies in a SQLite file.
 *
 *   jobs         one row per job, waiting, running and finished alike. Partial indexes keep the three apart, so that a
 *                claim reads waiting rows only, and its cost does not grow with what has finished.
 *   partitions   the waiting jobs that are admitted together; one row for as long as a job waits. See partitions.ts.
 *   holds        queues and resources whose jobs may not start for now.
 *   runs         the ledger: one row per finished run. Nearly all runs that completed their job are in its row instead (complete.ts).
 *   errors       what failed runs threw, stored once per call and referred to by number.
 *   memos        results of once-only effects.
 *   strings      names of jobs, queues, resources and workers, and policies, referred to by number.
 *   tallies      totals and the sizes of the finished states per queue and name, kept in the same transactions.
 *   identity     one row: which file this is, and which versions of Mulligan may use it.
 *   lease_expiry one row: see expired.ts.
 *   asides       where jobs wait that some worker could not run. See aside-tables.ts.
 *   tags         which jobs have which tag; operations: bulk actions. See select-tables.ts.
 *   gates        the gates that have something to say, and gate_history what happened to them. See gates.ts.
 *   schedules    rules that enqueue a job at each of their times. See schedules.ts.
 *   limit_*      limits: what they allow, which jobs count in them; limited_queues where such jobs wait. See limit-tables.ts.
 *   key_windows  keys that are held until a time; limit_lists in which lists of limits a key occurs. See enqueue-tables.ts.
 *   error_counts error groups, as counters; error_samples what their first job threw. See error-counts.ts.
 *   history      runs by minute and hour, history_names and history_mark how far they are counted. See history-tables.ts.
 *   run_logs     the last lines that runs logged. See log-tables.ts.
 *   retention    how long finished jobs are kept. See retention-tables.ts.
 *   error_history failures by kind of error, by five minutes and hour; error_series what is counted. See error-history-tables.ts.
 *
 * Codes are positions in the lists of codes.ts.
 */

/** Marks a file as ours ("MULL"), so that another program's database is recognised and left alone. */
export const APPLICATION_ID = 0x4d554c4c;

/**
 * One entry per schema version; forward only, and never edited once released. An entry may add tables, indexes and
 * nullable columns, which older versions of Mulligan ignore. One that they could not work with also raises
 * `minimum_reader` in `identity` to its own version.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE identity (
    id TEXT NOT NULL,                      -- random; another one means that all numbers in memory are void
    minimum_reader INTEGER NOT NULL        -- the lowest schema version that a process must know to use this file
  ) STRICT;
  INSERT INTO identity VALUES (lower(hex(randomblob(16))), 1);

  CREATE TABLE lease_expiry (
    looked_at INTEGER,
    suspended_until INTEGER NOT NULL
  ) STRICT;
  INSERT INTO lease_expiry VALUES (NULL, 0);

  CREATE TABLE strings (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
  ) STRICT;

  CREATE TABLE holds (
    scope TEXT NOT NULL,                   -- queue or resource
    name INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (scope, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE partitions (
    id INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    resource INTEGER NOT NULL,             -- 0 for none
    name INTEGER NOT NULL,                 -- of the jobs, in the lanes that part them by name; 0 in the others
    held_until INTEGER NOT NULL,           -- by the hold of its resource
    admissible_at INTEGER NOT NULL,
    turn INTEGER NOT NULL,                 -- the order of those with the same admissible_at
    UNIQUE (resource, name, queue, lane, priority)
  ) STRICT;
  CREATE INDEX partitions_admissible ON partitions (queue, lane, priority, admissible_at, turn);

  CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY,               -- the order of acceptance
    id TEXT NOT NULL,
    state INTEGER NOT NULL,
    partition INTEGER,                     -- where it waits; null when it does not
    queue INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    resource INTEGER NOT NULL,             -- 0 for none
    due_at INTEGER NOT NULL,
    runs INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    worker INTEGER,
    claimed_at INTEGER,
    lease_ends_at INTEGER,                 -- null unless it is running
    lease_ms INTEGER,
    alone INTEGER NOT NULL DEFAULT 0,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    first_started_at INTEGER,
    finished_at INTEGER,                   -- null unless it has ended
    dead_reason TEXT,
    previous_delay_ms INTEGER,
    available_at INTEGER NOT NULL,
    enqueued_at INTEGER NOT NULL,
    name INTEGER NOT NULL,
    policy INTEGER NOT NULL,
    home_queue INTEGER NOT NULL,           -- where it was enqueued
    retry_queue INTEGER,                   -- where its retries wait, when elsewhere
    key TEXT,
    key_life INTEGER NOT NULL,
    held_key TEXT,                         -- the key, for as long as this job holds it
    last_error INTEGER,                    -- in errors
    progress TEXT,
    payload TEXT NOT NULL
  ) STRICT;

  CREATE UNIQUE INDEX jobs_id ON jobs (id);
  CREATE UNIQUE INDEX jobs_held_key ON jobs (name, held_key) WHERE held_key IS NOT NULL;
  CREATE INDEX jobs_waiting ON jobs (partition, due_at, seq) WHERE partition IS NOT NULL;
  CREATE INDEX jobs_running ON jobs (lease_ends_at) WHERE state = ${STATE.running};
  CREATE INDEX jobs_running_retries ON jobs (queue, lane)
    WHERE state = ${STATE.running} AND lane IN (${LANE.retry}, ${LANE.suspect});
  CREATE INDEX jobs_finished ON jobs (state, finished_at) WHERE finished_at IS NOT NULL;

  CREATE TABLE runs (
    job INTEGER NOT NULL,                  -- no foreign key: it would cost a look-up per run; see remove in operate.ts
    run INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    counted INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    next_due_at INTEGER,
    decision TEXT NOT NULL,
    error INTEGER,                         -- in errors
    PRIMARY KEY (job, run)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE errors (
    id INTEGER PRIMARY KEY,
    uses INTEGER NOT NULL,                 -- by runs; a job's last error is also one of its runs'
    error TEXT NOT NULL
  ) STRICT;

  CREATE TABLE memos (
    job INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (job, key)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE tallies (
    queue INTEGER NOT NULL,
    name INTEGER NOT NULL,
    what TEXT NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (queue, name, what)
  ) STRICT, WITHOUT ROWID;
  `,
  /*
   * Gates. A version without them leaves the jobs of a partition alone that is gated (held_until is NEVER then), but lets
   * those start that wait in partitions which it has made itself, until a newer process next writes the gate.
   */
  `
  CREATE TABLE gates (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    name INTEGER NOT NULL,
    parent INTEGER,                        -- of a resource with a key
    is_closed INTEGER NOT NULL,
    heard_at INTEGER NOT NULL,
    opened_at INTEGER,                     -- null unless it is open
    access TEXT,                           -- what the partitions of the resource have copied, in JSON; null when all may start
    state TEXT NOT NULL,                   -- JSON
    UNIQUE (kind, name)
  ) STRICT;
  CREATE INDEX gates_listed ON gates (is_closed, heard_at);
  CREATE INDEX gates_children ON gates (parent, heard_at, opened_at) WHERE parent IS NOT NULL;

  CREATE TABLE gate_history (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    name INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event TEXT NOT NULL                    -- JSON
  ) STRICT;
  CREATE INDEX gate_history_of_gate ON gate_history (kind, name, id);
  CREATE INDEX gate_history_at ON gate_history (at);

  ALTER TABLE partitions ADD COLUMN gate_at INTEGER;   -- null unless it is gated: from when on its gate may admit a job
  ALTER TABLE partitions ADD COLUMN gated_at INTEGER;  -- null unless it is gated: when its first job may be asked for
  CREATE INDEX partitions_gated ON partitions (queue, gated_at, resource) WHERE gated_at IS NOT NULL;

  ALTER TABLE jobs ADD COLUMN spent_at INTEGER;        -- attempts that an outage may have cost
  ALTER TABLE jobs ADD COLUMN spent_count INTEGER;
  `,
  /*
   * Names of resources go when nothing refers to them. A version without this keeps the number of a name in memory, and
   * so may use one that is gone; pruning leaves a name alone for as long as a job, a gate or its history has it.
   */
  `
  ALTER TABLE strings ADD COLUMN is_temporary INTEGER; -- 1 for the name of a resource with a key, and nothing else
  CREATE INDEX strings_temporary ON strings (id) WHERE is_temporary IS NOT NULL;
  CREATE INDEX jobs_resource ON jobs (resource) WHERE resource <> 0;
  `,
  scheduleTables,
  workersTables,
  errorGroupTables,
  selectTables,
  resultsTables,
  asideTables,
  // How a bulk action was ordered; a version without this leaves it null.
  'ALTER TABLE operations ADD COLUMN options TEXT; -- JSON',
  limitTables,
  enqueueTables,
  // Where a job was enqueued, for the traces of its runs; a version without this leaves it null.
  'ALTER TABLE jobs ADD COLUMN trace TEXT;',
  historyTables,
  logTables,
  errorHistoryTables,
  // The run that completed the job (complete.ts). Null when it has not completed, or when that run is in `runs`, where a version without
  // these columns keeps it.
  `
  ALTER TABLE jobs ADD COLUMN run_worker INTEGER;
  ALTER TABLE jobs ADD COLUMN run_started_at INTEGER;
  ALTER TABLE jobs ADD COLUMN run_ended_at INTEGER;
  `,
  /*
   * What a job remembers of runs that did not count: how many were deferred or released, when the first was deferred, and how
   * many were snoozed in a row. A version without these leaves them as they are.
   */
  `
  ALTER TABLE jobs ADD COLUMN given_back INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE jobs ADD COLUMN deferred_since INTEGER;
  ALTER TABLE jobs ADD COLUMN snoozes INTEGER NOT NULL DEFAULT 0;
  `,
  /*
   * Lines (../turns.ts). Partitions that are there already, and those of a version without lines, share the line of jobs
   * without a resource unless a name makes theirs.
   */
  `
  ALTER TABLE partitions ADD COLUMN line INTEGER NOT NULL DEFAULT 0; -- the job name, or else the name of the resource without its key; 0 for neither
  UPDATE partitions SET line = coalesce(limited_name, name);
  DROP INDEX partitions_admissible;
  CREATE INDEX partitions_admissible ON partitions (queue, lane, priority, line, admissible_at, turn);
  `,
  // When a running job is to run again, as was said while it runs. A version without this lets it wait as its settlement says, and may leave
  // the column as it is: so it counts only when it is not before the start of the run.
  'ALTER TABLE jobs ADD COLUMN run_now_at INTEGER;',
  reactionsTables,
  retentionTables,
];

/** Brings the file to the newest version. Call inside BEGIN IMMEDIATE: a second process then finds it done. */
export function migrate(db: DatabaseSync): void {
  for (let version = schemaVersion(db); version < migrations.length; version++) {
    db.exec(migrations[version] as string);
    db.exec(`PRAGMA user_version = ${version + 1}`);
  }
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
}

export function schemaVersion(db: DatabaseSync): number {
  return pragma(db, 'user_version');
}

/** The lowest schema version that a process must know to work with this file, which a newer Mulligan has made. */
export function minimumReader(db: DatabaseSync): number {
  const table = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'identity'").get();
  if (!table) return Number.POSITIVE_INFINITY;
  return (db.prepare('SELECT minimum_reader AS version FROM identity').get() as { version: number }).version;
}

export function pragma(db: DatabaseSync, name: string): number {
  return (db.prepare(`PRAGMA ${name}`).get() as Record<string, number>)[name] as number;
}
