/*
 * Limits (src/limit/). A limited partition lies under a queue of its own (../../limited-queue.ts), which `limited_queues` names:
 * not `asides`, from which an older version lets jobs wait among all others after a while. sql/limits.ts says how they work.
 */
export const limitTables = `
  -- JSON, as limitsText writes it; null for none.
  ALTER TABLE live ADD COLUMN limits text;
  ALTER TABLE finished ADD COLUMN limits text;

  CREATE TABLE limited_queues (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text NOT NULL,
    under text NOT NULL UNIQUE              -- the queue of the partitions
  );
  CREATE INDEX limited_queues_queue ON limited_queues (queue);

  CREATE SEQUENCE limit_versions;

  CREATE TABLE limit_settings (
    name text PRIMARY KEY,
    version bigint NOT NULL,                -- another one whenever the rules of the limit or of one of its keys change
    has_total boolean NOT NULL,             -- some rule bounds the jobs of all keys, so they are to be counted
    code text,                              -- JSON
    operator text                           -- JSON
  );

  -- Keys that have rules of their own, or a rate.
  CREATE TABLE limit_keys (
    limit_name text NOT NULL,
    key text NOT NULL,
    next_start_at double precision NOT NULL DEFAULT 0,
    code text,                              -- JSON
    operator text,                          -- JSON
    PRIMARY KEY (limit_name, key)
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
  CREATE INDEX limit_keys_unused ON limit_keys (next_start_at) WHERE code IS NULL AND operator IS NULL;

  -- The jobs that one claim took of a partition, and that hold places of a key; see sql/limits.ts for when they do.
  CREATE TABLE limit_slots (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    limit_name text NOT NULL,
    key text NOT NULL,
    jobs uuid[] NOT NULL,
    runs int[] NOT NULL,                    -- of each job
    keeps_turn boolean NOT NULL,
    spacing double precision NOT NULL       -- by which each start moved next_start_at on
  ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
  CREATE INDEX limit_slots_key ON limit_slots (limit_name, key);

  -- Where jobs of a key wait. It goes with the partition, whichever version deletes that.
  CREATE TABLE limit_partitions (
    limit_name text NOT NULL,
    key text NOT NULL,
    partition bigint NOT NULL REFERENCES partitions (id) ON DELETE CASCADE,
    blocked_at bigint,                      -- since when it is parked because this key has no room
    PRIMARY KEY (partition, limit_name)
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
  CREATE INDEX limit_partitions_key ON limit_partitions (limit_name, key, blocked_at);
`;
