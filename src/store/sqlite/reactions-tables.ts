/*
 * What is stored as a job when another one dies. A version without this writes none, and stores nothing at a death. Rows go with their job by
 * a trigger, also when such a version deletes it: the number of the job may be given to another one.
 */
export const reactionsTables = `
  CREATE TABLE reactions (
    job INTEGER PRIMARY KEY,
    reaction TEXT NOT NULL                 -- JSON: Reaction in store.ts
  ) STRICT;

  CREATE TRIGGER reactions_of_job AFTER DELETE ON jobs BEGIN
    DELETE FROM reactions WHERE job = OLD.seq;
  END;
`;
