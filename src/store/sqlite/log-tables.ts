/*
 * Logs: the last lines of runs, apart from jobs and runs, whose rows stay small. A version without this writes none. Rows go with
 * their job by a trigger, also when such a version deletes it: the number of the job may be given to another one.
 */
export const logTables = `
  CREATE TABLE run_logs (
    job INTEGER NOT NULL,
    run INTEGER NOT NULL,
    log TEXT NOT NULL,                     -- JSON, as LogLines in worker/log-lines.ts writes it
    PRIMARY KEY (job, run)
  ) STRICT;

  CREATE TRIGGER run_logs_of_job AFTER DELETE ON jobs BEGIN
    DELETE FROM run_logs WHERE job = OLD.seq;
  END;
`;
