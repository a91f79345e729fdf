/*
 * What is stored as a job when another one dies. A version without this writes none, stores nothing at a death, and leaves the row behind when
 * it deletes the job.
 */
export const reactionsTables = `
  CREATE TABLE reactions (
    job uuid PRIMARY KEY,
    reaction text NOT NULL                  -- JSON: Reaction in store.ts
  ) WITH (autovacuum_vacuum_scale_factor = 0.05);
`;
