/*
 * Jobs that wait aside (../../aside.ts) have partitions under queues of their own, named by `asideQueue`. This table tells
 * which of those belong to a queue. A row is made before the first partition, and deleted after the last (sql/aside.ts).
 */
export const asideTables = `
  CREATE TABLE asides (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text NOT NULL,
    aside text NOT NULL UNIQUE              -- the queue of the partitions
  );
  CREATE INDEX asides_queue ON asides (queue);
`;
