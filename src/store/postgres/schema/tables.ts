import { lineDigest, partitionDigest, resourceStart } from '../sql/shared.ts';
import { asideTables } from './aside-tables.ts';
import { enqueueTables } from './enqueue-tables.ts';
import { errorGroupTables } from './error-group-tables.ts';
import { errorHistoryTables } from './error-history-tables.ts';
import { gateTables } from './gate-tables.ts';
import { historyTables } from './history-tables.ts';
import { identityTables } from './identity.ts';
import { limitTables } from './limit-tables.ts';
import { logTables } from './log-tables.ts';
import { reactionsTables } from './reactions-tables.ts';
import { resultsTables } from './results-tables.ts';
import { retentionTables } from './retention-tables.ts';
import { scheduleTables } from './schedules-tables.ts';
import { selectTables } from './select-tables.ts';
import { workersTables } from './workers-tables.ts';

/*
 * How a queue lies in a PostgreSQL schema.
 *
 *   live        one row per job that waits or runs: the only rows that change, and few at any time.
 *   finished    one row per ended job, with its last run; so a job that succeeds at once leaves a single row. A job is in
 *               exactly one of these two tables.
 *   runs        the ledger of all other runs.
 *   errors      what failed runs threw. Many throw the same, so each text is stored once per settlement.
 *   partitions  where jobs wait: those of one queue, lane, priority, resource and list of limits and keys, in the lanes retry
 *               and redrive also of one name. A claim reads partitions, each in due order.
 *   holds       which queues and resources are held, and until when; partitions carry it along.
 *   leases      which jobs each claim took, and when to check whether they are still held.
 *   gates       the gates that have something to say; gate_history is what happened to them (gate-tables.ts).
 *   asides      where jobs wait that some worker could not run (aside-tables.ts).
 *   limit_*     what limits allow and which jobs count in them; limited_queues: where their jobs wait (limit-tables.ts).
 *   waits       jobs that a process waits for (results-tables.ts).
 *   job_tags    which jobs have which tag; operations: bulk actions (select-tables.ts).
 *   error_counts error groups, as additions; error_samples is the first error of each (error-group-tables.ts).
 *   history     runs by minute and hour; history_names, and history_mark, which says how far they are counted (history-tables.ts).
 *   run_logs    the last lines that runs logged (log-tables.ts).
 *   error_history failures by kind of error, by five minutes and hour; error_series: what is counted (error-history-tables.ts).
 *   memos       results of once-only effects.
 *   keys        which job holds which key, some until a time (enqueue-tables.ts); enqueue_locks keep
 *               enqueues of one key of a limit apart.
 *   job_types   what the jobs of one definition share: the queue they are enqueued in, name, policy and retry queue.
 *   workers     the ids of workers, stored once and pointed at.
 *   expiry      whether leases may be taken to have expired; see sql/expired.ts.
 *   retention   how long finished jobs are kept, by job name; see retention-tables.ts.
 *   counts      totals as additions, each transaction its own row, so that no two of them ever wait for one another;
 *               pruning adds them up.
 *
 * Beside them schema_identity and function_sets: see identity.ts.
 *
 * All statements of a verb are one function, in the file of sql/ that has its name: a single round trip, plans that are
 * kept, and no prepared statements that a connection pooler could lose. Times are ms since the epoch; codes are positions
 * in the lists of codes.ts.
 */
const tables = `
  -- The store's time. All functions ask here, so that tests can move it.
  CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE
  AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

  CREATE TABLE partitions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    held_until bigint NOT NULL DEFAULT 0,   -- by the holds on its queue and its resource
    admissible_at bigint NOT NULL DEFAULT 0, -- no claim reads it before; among many, the earliest is read first
    lane smallint NOT NULL,
    priority smallint NOT NULL,
    queue text NOT NULL,
    resource text NOT NULL,                 -- '' for none
    name text NOT NULL,                     -- of the jobs, in the lanes retry and redrive; '' in the others
    digest uuid NOT NULL GENERATED ALWAYS AS (${partitionDigest('')}) STORED
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
  -- Claims among many write admissible_at, so each index costs them time. The second one finds a partition by its digest
  -- and, by the start of its resource, those that a hold concerns.
  CREATE INDEX partitions_admissible ON partitions (queue, lane, priority, admissible_at);
  CREATE UNIQUE INDEX partitions_identity ON partitions (${resourceStart('resource')}, digest);
  CREATE INDEX partitions_plain ON partitions (queue) WHERE resource = '';

  CREATE TABLE holds (
    scope text NOT NULL,                    -- queue or resource
    name text NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (scope, name)
  );

  CREATE TABLE job_types (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    counted_as int NOT NULL,                -- the job type whose row of counts stands for this queue and name
    queue text NOT NULL,
    name text NOT NULL,
    retry_queue text,                       -- where its retries wait, when elsewhere
    policy text NOT NULL
  );
  -- A policy may be longer than an index entry can be.
  CREATE UNIQUE INDEX job_types_all ON job_types (name, queue, md5(policy), coalesce(retry_queue, ''));

  CREATE TABLE workers (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE
  );

  CREATE SEQUENCE acceptance;

  CREATE TABLE live (
    id uuid PRIMARY KEY,
    seq bigint NOT NULL,                    -- the order of acceptance
    enqueued_at bigint NOT NULL,
    due_at bigint NOT NULL,
    available_at bigint NOT NULL,
    partition bigint NOT NULL,              -- where it waits now
    job_type int NOT NULL,
    payload_bytes int NOT NULL,
    runs int NOT NULL,
    attempts int NOT NULL,
    crashes int NOT NULL,
    state smallint NOT NULL,                -- scheduled, ready or retrying; it runs when it has a worker
    key_life smallint NOT NULL,
    cancel_requested boolean NOT NULL DEFAULT false,
    alone boolean NOT NULL DEFAULT false,   -- what the last heartbeat said
    worker int,
    claimed_at bigint,
    lease_ends_at bigint,
    first_started_at bigint,
    previous_delay_ms bigint,
    key text,
    last_error bigint,                      -- in errors
    progress text,
    payload text NOT NULL
  ) WITH (
    -- Room on each page for the second version of its rows: a claim changes nothing that is indexed, so it writes to no
    -- index as long as the new version lies beside the old one.
    fillfactor = 45,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000, autovacuum_vacuum_cost_delay = 0
  );
  CREATE INDEX live_partition ON live (partition, due_at, seq);
  CREATE INDEX live_key ON live (key) WHERE key IS NOT NULL;

  -- A row per claim, queue and lane. Jobs that end stay in it until all of them have, or until it is checked, so that
  -- ending one writes nothing here.
  CREATE TABLE leases (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    check_at bigint NOT NULL,               -- none of the leases ends before this
    lease_ms bigint NOT NULL,
    lane smallint NOT NULL,
    queue text NOT NULL,
    jobs uuid[] NOT NULL
  ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
  -- Ids do not compress.
  ALTER TABLE leases ALTER COLUMN jobs SET STORAGE EXTERNAL;

  CREATE TABLE finished (
    id uuid PRIMARY KEY,
    seq bigint NOT NULL,
    finished_at bigint NOT NULL,
    enqueued_at bigint NOT NULL,
    due_at bigint NOT NULL,
    available_at bigint NOT NULL,
    lane smallint NOT NULL,
    priority smallint NOT NULL,
    job_type int NOT NULL,
    payload_bytes int NOT NULL,
    runs int NOT NULL,
    attempts int NOT NULL,
    crashes int NOT NULL,
    state smallint NOT NULL,
    key_life smallint NOT NULL,
    dead_reason smallint,
    first_started_at bigint,
    previous_delay_ms bigint,
    -- The run that ended it; without an outcome, it ended while it waited.
    outcome smallint,
    attempt int,
    counted boolean,
    failed boolean,                         -- last_error is this run's own
    worker int,
    started_at bigint,
    ended_at bigint,
    decision text,
    queue text NOT NULL,                    -- where it was last claimed or waited
    resource text NOT NULL,
    key text,
    last_error bigint,
    progress text,
    payload text NOT NULL
  ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2);
  CREATE INDEX finished_by_age ON finished (state, finished_at);
  CREATE INDEX finished_key ON finished (key) WHERE key IS NOT NULL;

  CREATE TABLE runs (
    job uuid NOT NULL,
    run int NOT NULL,
    attempt int NOT NULL,
    outcome smallint NOT NULL,
    counted boolean NOT NULL,
    worker int NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    next_due_at bigint,
    decision text NOT NULL,
    error bigint,
    PRIMARY KEY (job, run)
  ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2);

  CREATE SEQUENCE settlements;

  CREATE TABLE errors (
    id bigint PRIMARY KEY,
    uses int NOT NULL,                      -- by runs on the ledger; with the last of them it goes
    error text NOT NULL
  );

  CREATE TABLE memos (
    job uuid NOT NULL,
    key text NOT NULL,
    value text NOT NULL
  );
  CREATE UNIQUE INDEX memos_key ON memos (job, md5(key));

  CREATE TABLE keys (
    name text NOT NULL,
    key text NOT NULL,
    job uuid NOT NULL,
    PRIMARY KEY (name, key)
  ) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);
  CREATE INDEX keys_job ON keys (job);

  -- One row: when a process last looked for expired leases without having to wait (0 for never), and until when none counts as expired.
  CREATE TABLE expiry (
    looked_at bigint NOT NULL,
    suspended_until bigint NOT NULL
  ) WITH (fillfactor = 10);
  INSERT INTO expiry VALUES (0, 0);

  CREATE TABLE counts (
    job_type int NOT NULL,                  -- one of those that are counted together
    enqueued bigint NOT NULL DEFAULT 0,
    completed bigint NOT NULL DEFAULT 0,    -- runs, by outcome
    failed bigint NOT NULL DEFAULT 0,
    crashed bigint NOT NULL DEFAULT 0,
    snoozed bigint NOT NULL DEFAULT 0,
    released bigint NOT NULL DEFAULT 0,
    deferred bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0,
    retries bigint NOT NULL DEFAULT 0,
    successful_retries bigint NOT NULL DEFAULT 0,
    dead_exhausted bigint NOT NULL DEFAULT 0,
    dead_unrecoverable bigint NOT NULL DEFAULT 0,
    dead_deadline bigint NOT NULL DEFAULT 0,
    dead_poison bigint NOT NULL DEFAULT 0,
    dead_no_handler bigint NOT NULL DEFAULT 0,
    now_completed bigint NOT NULL DEFAULT 0, -- jobs in a finished state
    now_dead bigint NOT NULL DEFAULT 0,
    now_cancelled bigint NOT NULL DEFAULT 0
  ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
`;

/**
 * One entry per version of the tables; forward only, and never edited once released. An entry that an older program
 * cannot work with raises `minimum_reader` in `schema_identity` to its own version.
 */
export const migrations: readonly string[] = [
  [identityTables, tables].join('\n'),
  gateTables,
  scheduleTables,
  workersTables,
  errorGroupTables,
  selectTables,
  resultsTables,
  asideTables,
  // How a bulk action was ordered; a version without this leaves it null.
  'ALTER TABLE operations ADD COLUMN options text; -- JSON',
  limitTables,
  enqueueTables,
  // Where a job was enqueued, for the traces of its runs; a version without this leaves it null.
  'ALTER TABLE live ADD COLUMN trace text; ALTER TABLE finished ADD COLUMN trace text;',
  historyTables,
  logTables,
  errorHistoryTables,
  /*
   * What a job remembers of runs that did not count: how many were deferred or released, when the first was deferred, and how
   * many were snoozed in a row. A version without these leaves them as they are, and counts no job that is dead for its runs.
   */
  `
  ALTER TABLE live ADD COLUMN given_back int NOT NULL DEFAULT 0, ADD COLUMN deferred_since bigint, ADD COLUMN snoozes int NOT NULL DEFAULT 0;
  ALTER TABLE counts ADD COLUMN dead_runs bigint NOT NULL DEFAULT 0;`,
  // Lines (../../turns.ts), as digests: 0 for fresh jobs without a resource.
  `
  ALTER TABLE partitions ADD COLUMN line bigint NOT NULL GENERATED ALWAYS AS (${lineDigest('lane', 'resource', 'name')}) STORED;
  DROP INDEX partitions_admissible;
  CREATE INDEX partitions_admissible ON partitions (queue, lane, priority, line, admissible_at);
  `,
  // When a running job is to run again, as was said while it runs. A version without this lets it wait as its settlement says, and may leave
  // the column as it is: so it counts only when it is not before the start of the run.
  'ALTER TABLE live ADD COLUMN run_now_at bigint;',
  reactionsTables,
  retentionTables,
];
