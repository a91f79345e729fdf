/*
 * Error groups: `error_counts` has the counters of store/error-groups.ts, `error_samples` the first error of each group. The
 * fingerprint of a job is that of its last failure.
 */
export const errorGroupTables = `
  ALTER TABLE jobs ADD COLUMN fingerprint TEXT;

  CREATE TABLE error_counts (
    fingerprint TEXT NOT NULL,
    queue INTEGER NOT NULL,                -- where the jobs were enqueued
    name INTEGER NOT NULL,
    attempt INTEGER NOT NULL,              -- that completed the recovered ones; 0 for all else
    first_seen INTEGER,
    last_seen INTEGER,
    failures INTEGER NOT NULL,
    jobs INTEGER NOT NULL,
    failing INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    recovered INTEGER NOT NULL,
    redriven INTEGER NOT NULL,
    recurred INTEGER NOT NULL,
    PRIMARY KEY (fingerprint, queue, name, attempt)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE error_samples (
    fingerprint TEXT PRIMARY KEY,
    job TEXT NOT NULL,
    error TEXT NOT NULL                    -- JSON
  ) STRICT, WITHOUT ROWID;
`;
