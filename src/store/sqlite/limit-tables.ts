/*
 * Limits (../../limit/): what they allow, who counts in them, and which partitions wait for room.
 *
 * A job behind limits waits in a partition under a queue of its own (../limited-queue.ts). `limits` and `limited_name` say
 * what its jobs share beyond other partitions; its `name` is its own number, negative, so that it is found by those two only.
 * A version without limits claims none of these jobs, and leaves rows of `limit_slots` behind when it cancels a job or
 * settles a crash: pruning finds them (forget-limits.ts).
 */
export const limitTables = `
  ALTER TABLE jobs ADD COLUMN limits TEXT;             -- as limitsText writes them; null for none

  ALTER TABLE partitions ADD COLUMN limits TEXT;       -- of its jobs; null when they have none
  ALTER TABLE partitions ADD COLUMN limited_name INTEGER; -- what its name would be without limits
  ALTER TABLE partitions ADD COLUMN waits_for TEXT;    -- the key that had no room when it was last read, as limitsText writes it
  ALTER TABLE partitions ADD COLUMN waits_turn INTEGER; -- the order of those that wait for one key
  CREATE INDEX partitions_limits ON partitions (limits, queue, lane, priority, resource, limited_name)
    WHERE limits IS NOT NULL;
  CREATE INDEX partitions_wait ON partitions (waits_for, lane, priority, waits_turn) WHERE waits_for IS NOT NULL;

  CREATE TABLE limited_queues (
    queue INTEGER NOT NULL,
    limited INTEGER NOT NULL,              -- the queue of the partitions
    is_aside INTEGER NOT NULL,             -- 1 when their jobs also wait aside
    PRIMARY KEY (queue, limited)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE limit_rules (
    name TEXT NOT NULL,                    -- of the limit
    is_key INTEGER NOT NULL,               -- 0 for the limit itself
    key TEXT NOT NULL,                     -- '' for the limit itself
    code TEXT,                             -- JSON: what definitions say
    operator TEXT,                         -- JSON: what an operator said
    PRIMARY KEY (name, is_key, key)
  ) STRICT, WITHOUT ROWID;

  -- One row for each limit of a job that runs, or has run and keeps its turn.
  CREATE TABLE limit_slots (
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    seq INTEGER NOT NULL,                  -- of the job
    state INTEGER NOT NULL,                -- see SLOT in limit-slots.ts
    keeps_turn INTEGER NOT NULL,           -- 1 when it keeps its turn should it have to run again
    PRIMARY KEY (name, key, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX limit_slots_total ON limit_slots (name, state) WHERE state > 0;

  CREATE TABLE limit_rates (
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    next_start_at REAL NOT NULL,           -- see ../../limit/rate.ts; a row whose time has passed says nothing
    PRIMARY KEY (name, key)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE limit_freed (
    waits_for TEXT PRIMARY KEY             -- a key that may have room: the partitions that wait for it are to be brought back
  ) STRICT, WITHOUT ROWID;
`;
