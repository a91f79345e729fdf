/*
 * Logs: the last lines of runs, apart from live, finished and runs, whose rows stay small. A version without this writes none, and
 * leaves the logs of jobs that it deletes.
 */
export const logTables = `
  CREATE TABLE run_logs (
    job uuid NOT NULL,
    run int NOT NULL,
    log text NOT NULL,                      -- JSON, as LogLines in worker/log-lines.ts writes it
    PRIMARY KEY (job, run)
  ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2);
`;
