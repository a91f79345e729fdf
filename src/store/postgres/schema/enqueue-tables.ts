/*
 * held_until: keys that are held until a time, whatever becomes of the job that took them. A version without this holds such a
 * key until the job ends, and pays no heed to the time: it may let another job in too soon, or find the key held until a newer
 * process prunes.
 * enqueue_locks: see sql/on-limit.ts.
 */
export const enqueueTables = `
  ALTER TABLE keys ADD COLUMN held_until bigint; -- null when the life of the job decides
  CREATE INDEX keys_held_until ON keys (held_until) WHERE held_until IS NOT NULL;

  CREATE TABLE enqueue_locks (
    id int PRIMARY KEY,
    uses bigint NOT NULL
  ) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
`;
