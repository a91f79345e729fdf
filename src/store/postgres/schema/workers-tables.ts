/** Workers, as they describe themselves. (The table `workers` interns their ids for the ledger.) */
export const workersTables = `
  CREATE TABLE worker_registry (
    id text PRIMARY KEY,
    started_at bigint NOT NULL,
    seen_at bigint NOT NULL,
    description text NOT NULL               -- JSON
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
`;
