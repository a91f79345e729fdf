import { STATE } from '../../codes.ts';

/*
 * Selecting jobs by their last error and by tags; and bulk actions (sql/change.ts). Versions without these leave the columns
 * null, and rows of job_tags behind when they delete a job: what reads job_tags joins the jobs.
 */
export const selectTables: string = `
  ALTER TABLE live ADD COLUMN tags text[];
  ALTER TABLE finished ADD COLUMN tags text[];

  CREATE TABLE job_tags (
    tag text NOT NULL,
    job uuid NOT NULL,
    PRIMARY KEY (tag, job)
  ) WITH (autovacuum_vacuum_scale_factor = 0.05);

  -- A claim changes none of these columns, so it still writes to no index.
  CREATE INDEX live_fingerprint ON live (fingerprint, partition, due_at, seq) WHERE fingerprint IS NOT NULL;
  CREATE INDEX finished_fingerprint ON finished (fingerprint, state, finished_at, seq) WHERE fingerprint IS NOT NULL;
  CREATE INDEX finished_dead_type ON finished (job_type, finished_at) WHERE state = ${STATE.dead};

  CREATE TABLE operations (
    id uuid PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    action text NOT NULL,
    by text NOT NULL,
    request text NOT NULL,                  -- what makes two orders the same
    selection text NOT NULL,                -- JSON
    state text NOT NULL,
    started_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    ended_at bigint,
    changed bigint NOT NULL,
    skipped bigint NOT NULL,
    canary uuid[] NOT NULL,                 -- the first jobs that were changed
    note text,
    cursor text,                            -- JSON: the job that was looked at last; null for none
    next_due_at double precision NOT NULL   -- of the next job, where due times are spread
  );
  CREATE UNIQUE INDEX operations_running ON operations (action, md5(request)) WHERE ended_at IS NULL;
  CREATE UNIQUE INDEX operations_seq ON operations (seq);
`;
