/*
 * What an enqueue asks beside the jobs themselves.
 *
 *   key_windows  keys that are held until a time, whatever becomes of the job that took them. A version without them does not
 *                ask, so it may store a second job of the key within the window.
 *   limit_lists  in which lists of several limits a key occurs. A partition is found by the whole list of its limits, so this
 *                finds all partitions in which jobs of one key wait. A version without it adds none, and an enqueue then
 *                overlooks jobs that wait only in partitions which that version has made. Pruning deletes those without a
 *                partition.
 */
export const enqueueTables = `
  CREATE TABLE key_windows (
    name INTEGER NOT NULL,                 -- of the jobs
    key TEXT NOT NULL,
    job TEXT NOT NULL,                     -- the id of the one that took it; it may be gone
    until INTEGER NOT NULL,
    PRIMARY KEY (name, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX key_windows_until ON key_windows (until);

  CREATE TABLE limit_lists (
    name TEXT NOT NULL,                    -- of the limit
    key TEXT NOT NULL,
    limits TEXT NOT NULL,                  -- as limitsText writes them
    PRIMARY KEY (name, key, limits)
  ) STRICT, WITHOUT ROWID;
  INSERT OR IGNORE INTO limit_lists (name, key, limits)
  SELECT one.value ->> 0, one.value ->> 1, p.limits FROM partitions p, json_each(p.limits) AS one
  WHERE p.limits IS NOT NULL AND json_array_length(p.limits) > 1;
`;
