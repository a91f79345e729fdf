import type { DatabaseSync } from 'node:sqlite';

/*
 * How a queue lies in a SQLite file.
 *
 *   jobs     one row per job, waiting, running and finished alike. Partial indexes keep the three apart, so
 *            that a claim only ever sees waiting rows and its cost does not grow with what has finished.
 *   runs     the ledger: one row per finished run.
 *   errors   what failed runs threw, stored once per call and pointed at.
 *   memos    results of once-only effects.
 *   streams  a queue and the resource its jobs stand behind, as one number. Claims go stream by stream, so a
 *            gate can hold back a resource without the claim walking over the jobs it holds.
 *   words    names, worker ids and policies, stored once and pointed at.
 *   tallies  totals and the sizes of the finished states, kept up to date in the same transactions.
 *
 * Codes are positions in the lists of codes.ts.
 */

/** Marks a file as ours ("MULL"), so that somebody else's database is recognised and left alone. */
export const APPLICATION_ID = 0x4d554c4c;

/** One entry per schema version; forward only, and never edited once released. */
export const migrations: readonly string[] = [
  `
  CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    resource TEXT NOT NULL,               -- '' for none
    UNIQUE (queue, resource)
  ) STRICT;

  CREATE TABLE words (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
  ) STRICT;

  CREATE TABLE paused_queues (
    queue TEXT PRIMARY KEY
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY,               -- the order of acceptance
    id TEXT NOT NULL,
    state INTEGER NOT NULL,
    stream INTEGER NOT NULL,               -- where it waits now
    lane INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    runs INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    worker INTEGER,
    claimed_at INTEGER,
    lease_ends_at INTEGER,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    first_started_at INTEGER,
    finished_at INTEGER,
    dead_reason TEXT,
    previous_delay_ms INTEGER,
    available_at INTEGER NOT NULL,
    enqueued_at INTEGER NOT NULL,
    name INTEGER NOT NULL,
    policy INTEGER NOT NULL,
    home_stream INTEGER NOT NULL,          -- where it was enqueued
    retry_stream INTEGER,                  -- where its retries wait, when elsewhere
    key TEXT,
    key_life INTEGER NOT NULL,
    held_key TEXT,                         -- the key, for as long as this job holds it
    last_error INTEGER,                    -- in errors
    progress TEXT,
    payload TEXT NOT NULL
  ) STRICT;

  CREATE UNIQUE INDEX jobs_id ON jobs (id);
  CREATE UNIQUE INDEX jobs_held_key ON jobs (name, held_key) WHERE held_key IS NOT NULL;
  CREATE INDEX jobs_waiting ON jobs (stream, lane, priority, due_at, seq) WHERE state < 3;
  CREATE INDEX jobs_running ON jobs (lease_ends_at, lane, stream) WHERE state = 3;
  CREATE INDEX jobs_finished ON jobs (state, finished_at) WHERE state > 3;

  CREATE TABLE runs (
    job INTEGER NOT NULL,                  -- no foreign key: it would cost a look-up per run; see DELETE in operate.ts
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
    stream INTEGER NOT NULL,
    name INTEGER NOT NULL,
    what TEXT NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (stream, name, what)
  ) STRICT, WITHOUT ROWID;
  `,
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

export function pragma(db: DatabaseSync, name: string): number {
  return (db.prepare(`PRAGMA ${name}`).get() as Record<string, number>)[name] as number;
}
