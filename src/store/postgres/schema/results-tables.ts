/* Results: what handlers returned, and which jobs are waited for. */
export const resultsTables = `
  -- What the handler returned, as encodeResult in result.ts writes it.
  ALTER TABLE finished ADD COLUMN result text;

  -- Jobs that a process waits for: when one of them ends, that is notified, and its row goes. See sql/ended.ts.
  CREATE TABLE waits (
    job uuid PRIMARY KEY,
    until bigint NOT NULL                   -- then no process waits for it any more
  ) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500);
`;
