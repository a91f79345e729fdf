/*
 * Jobs that wait aside (../aside.ts) have partitions under queues of their own, named by `asideQueue`. This table tells
 * which of those belong to a queue, for as long as a job waits in one.
 */
export const asideTables = `
  CREATE TABLE asides (
    queue INTEGER NOT NULL,
    aside INTEGER NOT NULL,                -- the queue of the partitions
    PRIMARY KEY (queue, aside)
  ) STRICT, WITHOUT ROWID;
`;
