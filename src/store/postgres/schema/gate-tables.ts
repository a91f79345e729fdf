/*
 * Gates: one row per gate that has something to say, what happened to each, and what partitions carry along of the gate of
 * their resource (sql/gates.ts).
 */
export const gateTables = `
  CREATE SEQUENCE gate_versions;

  CREATE TABLE gates (
    kind text NOT NULL,                     -- resource, job or parent
    name text NOT NULL,
    parent text,                            -- of a keyed resource
    closed boolean NOT NULL,
    opened_at bigint,                       -- null unless it is open
    heard_at bigint NOT NULL,
    version bigint NOT NULL,                -- another one with each write; also a row that was deleted and made again has another
    -- From when on a gated claim may take fresh and redriven jobs, and retries; null when they are not gated.
    fresh_at bigint,
    retry_at bigint,
    suspect_at bigint NOT NULL,             -- from when on any claim may take a suspect
    state text NOT NULL,
    PRIMARY KEY (kind, name)
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
  CREATE INDEX gates_heard ON gates (heard_at, kind, name);
  CREATE INDEX gates_children ON gates (parent, heard_at, opened_at) WHERE parent IS NOT NULL;

  CREATE TABLE gate_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    name text NOT NULL,
    at bigint NOT NULL,
    event text NOT NULL
  );
  CREATE INDEX gate_history_gate ON gate_history (kind, name, id);
  CREATE INDEX gate_history_at ON gate_history (at);

  -- A partition with a gate_at is gated: only a gated claim takes its jobs. gate_at is when that may be, by the gate and by
  -- holds; gated_at is the same, or later while it is parked. For ordinary claims it is held for good.
  ALTER TABLE partitions ADD COLUMN gate_at bigint, ADD COLUMN gated_at bigint;
  CREATE INDEX partitions_gated ON partitions (queue, gated_at) WHERE gated_at IS NOT NULL;

  -- Attempts that an outage may have cost the job, and when the last of them was spent.
  ALTER TABLE live ADD COLUMN spent_at bigint, ADD COLUMN spent_count int;
  ALTER TABLE finished ADD COLUMN spent_at bigint, ADD COLUMN spent_count int;
`;
