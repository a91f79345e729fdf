/*
 * Failures over time (../../error-history.ts): sql/history.ts writes them together with the history. A version without this
 * moves the mark of the history alone: failures that it adds up are missing here.
 */
export const errorHistoryTables = `
  CREATE TABLE error_series (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fingerprint text NOT NULL,
    job_type int NOT NULL,                  -- one of those that are counted together, as in counts
    seen_at bigint NOT NULL,                -- the last bucket of five minutes in which one failed
    UNIQUE (fingerprint, job_type)
  ) WITH (fillfactor = 50);

  CREATE TABLE error_history (
    series bigint NOT NULL,
    step_ms int NOT NULL,                   -- the size of the bucket
    at bigint NOT NULL,                     -- its start
    failures bigint NOT NULL,
    dead bigint NOT NULL,
    PRIMARY KEY (series, step_ms, at)
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);
`;
