/*
 * Error groups (store/error-groups.ts). `error_counts` are additions, each transaction its own rows, so that no two
 * settlements wait for one another; pruning adds them up. The fingerprint of a job is that of its last failure.
 */
export const errorGroupTables = `
  ALTER TABLE live ADD COLUMN fingerprint text;
  ALTER TABLE finished ADD COLUMN fingerprint text;

  CREATE TABLE error_counts (
    fingerprint text NOT NULL,
    job_type int NOT NULL,                  -- one of those that are counted together, as in counts
    attempt int NOT NULL DEFAULT 0,         -- that completed the recovered ones; 0 for all else
    first_seen bigint,
    last_seen bigint,
    failures bigint NOT NULL DEFAULT 0,
    jobs bigint NOT NULL DEFAULT 0,
    failing bigint NOT NULL DEFAULT 0,
    dead bigint NOT NULL DEFAULT 0,
    recovered bigint NOT NULL DEFAULT 0,
    redriven bigint NOT NULL DEFAULT 0,
    recurred bigint NOT NULL DEFAULT 0
  ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
  CREATE INDEX error_counts_fingerprint ON error_counts (fingerprint);

  CREATE TABLE error_samples (
    fingerprint text PRIMARY KEY,
    seen_at bigint NOT NULL,
    job uuid NOT NULL,
    error text NOT NULL                     -- JSON
  );
`;
