/** Schedules: rules that enqueue a job at each of their times (sql/schedules.ts). */
export const scheduleTables = `
  CREATE TABLE schedules (
    name text PRIMARY KEY,
    version text NOT NULL,                  -- another one with each write
    next_at bigint,                         -- null when it has no next tick
    schedule text NOT NULL                  -- JSON, all of the above included
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
  CREATE INDEX schedules_next ON schedules (next_at) WHERE next_at IS NOT NULL;
`;
