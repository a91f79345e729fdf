import { BY_INDEX, FOR_GOOD, HERE, isOfResource, LANE, lookUp, queueOf } from './shared.ts';

/*
 * A gate is one row that TypeScript reads, changes and writes back (gates.ts, claim-gated.ts). A write names the version
 * of the row that was read, 0 for none, and does nothing when the row has another one by now.
 *
 * The partitions of a resource carry along what its gate means for them (src/gate/access.ts): no claim reads a row of this
 * table. A gated partition is held for good, as far as ordinary claims and parking are concerned, and has a gate_at. Three
 * transactions write that: one that makes partitions, one that holds a queue or a resource, and one that writes a gate.
 * None of them may miss what another one does at the same time:
 *
 *   - One that writes a gate first locks its row FOR UPDATE. One that makes a row takes an advisory lock instead, since
 *     there is nothing to lock yet. Then, in a new statement, it writes all partitions of the resource that it can see.
 *   - One that makes or holds partitions first takes the advisory lock shared, and locks the rows of the gates concerned
 *     FOR SHARE, until it ends. Then, in a new statement, it reads gates and holds.
 *
 * So one of the two waits for the other, and sees what that one did. Rows are locked in the order of kind and name, before
 * anything is written; partitions after gates, and in the order of their ids.
 */

/** The lock of gates that have no row yet, as arguments. */
const NEW_GATES = `hashtext(current_schema()), hashtext('mulligan: new gates')`;

const GIVEN_GATES = `json_to_recordset(p_gates) AS g (kind text, name text, version bigint, saves boolean, parent text,
  closed boolean, opened_at bigint, heard_at bigint, fresh_at bigint, retry_at bigint, suspect_at bigint, state text, events json)`;
const SAME_GATE = `s.kind = g.kind AND ${lookUp('s.name', 'g.name')}`;
const IN_ORDER = 'ORDER BY s.kind COLLATE "C", s.name COLLATE "C"';

/** Keeps the gates of these resources, a list or a query, from being written. */
export const keepGates = (resources: string): string => `
      PERFORM pg_advisory_xact_lock_shared(${NEW_GATES});
      PERFORM 1 FROM gates s WHERE s.kind = 'resource' AND s.name = ANY (${resources}) ${IN_ORDER} FOR SHARE;`;

/** Until when a partition is held. Two look-ups, since one with OR would read all holds. */
const heldUntil = (queue: string, resource: string): string => `
  greatest(0, (SELECT until FROM holds WHERE scope = 'queue' AND holds.name = ${queue}),
    (SELECT until FROM holds WHERE scope = 'resource' AND holds.name = ${resource}))`;

/** Until when a hold keeps a partition back, whatever its gate says. */
export const holdUntil = (partition: string): string =>
  heldUntil(queueOf(`${partition}.queue`), `${partition}.resource`);

/** `held_until` and `gate_at` of a partition, by the holds and the gate that concern it. */
export const admissionOf = (partition: string): string => `
  SELECT greatest(h.until, CASE WHEN h.gate_at IS NULL THEN h.suspect_at ELSE ${FOR_GOOD} END) AS held_until,
    CASE WHEN h.gate_at IS NOT NULL THEN greatest(h.until, h.gate_at) END AS gate_at
  FROM (
    SELECT ${holdUntil(partition)} AS until,
      CASE ${partition}.lane WHEN ${LANE.suspect} THEN NULL WHEN ${LANE.retry} THEN s.retry_at ELSE s.fresh_at END AS gate_at,
      CASE ${partition}.lane WHEN ${LANE.suspect} THEN s.suspect_at END AS suspect_at
    FROM (SELECT 1) one LEFT JOIN gates s ON s.kind = 'resource' AND ${lookUp('s.name', `${partition}.resource`)}
    OFFSET 0
  ) h`;

/** Times that have passed are all the same: then the one before stays, and partitions need not be written. */
const timeKept = (column: string, before: string, after: string): string => `
      CASE WHEN ${before}.${column} <= p_now AND ${after}.${column} <= p_now THEN ${before}.${column} ELSE ${after}.${column} END`;

export const gatesSql: string = `
  CREATE FUNCTION read_gates(p_kind text[], p_name text[])
  RETURNS TABLE (store_now bigint, kind text, name text, version bigint, state text) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  BEGIN
    RETURN QUERY SELECT n.store_now, s.kind, s.name, s.version, s.state
    FROM (SELECT now_ms() AS store_now OFFSET 0) n LEFT JOIN (
      unnest(p_kind, p_name) AS g (kind, name) JOIN gates s ON ${SAME_GATE}) ON true;
  END $$;

  -- The rows of one parent: how many reported since then, and how many of those opened.
  CREATE FUNCTION children_of(p_parent text, p_since bigint, OUT active bigint, OUT opened bigint)
  LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  BEGIN
    SELECT count(*), count(*) FILTER (WHERE s.opened_at >= p_since) INTO active, opened
    FROM gates s WHERE s.parent = p_parent AND s.heard_at >= p_since;
  END $$;

  -- Locks these gates. False when one of them is not in the version that was read.
  CREATE FUNCTION lock_gates(p_gates json) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    IF EXISTS (SELECT 1 FROM ${GIVEN_GATES} WHERE g.version = 0) THEN PERFORM pg_advisory_xact_lock(${NEW_GATES}); END IF;
    PERFORM 1 FROM ${GIVEN_GATES} JOIN gates s ON ${SAME_GATE} ${IN_ORDER} FOR UPDATE OF s;
    -- With the locks, and in a new statement: what is there now stays.
    RETURN NOT EXISTS (
      SELECT 1 FROM ${GIVEN_GATES} LEFT JOIN gates s ON ${SAME_GATE} WHERE coalesce(s.version, 0) <> g.version);
  END $$;

  -- Writes those of these gates, which are locked, that are to be saved, and what happened to them.
  CREATE FUNCTION save_gates(p_gates json, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE changed text[];
  BEGIN
    -- Which of them mean something else for partitions.
    changed := ARRAY (
      SELECT g.name FROM ${GIVEN_GATES} LEFT JOIN gates s ON ${SAME_GATE}
      WHERE g.saves AND g.kind = 'resource' AND (s.fresh_at, s.retry_at, coalesce(s.suspect_at, 0)) IS DISTINCT FROM (
        ${timeKept('fresh_at', 's', 'g')}, ${timeKept('retry_at', 's', 'g')}, ${timeKept('suspect_at', 's', 'g')}));
    INSERT INTO gates (kind, name, parent, closed, opened_at, heard_at, version, fresh_at, retry_at, suspect_at, state)
    SELECT g.kind, g.name, g.parent, g.closed, g.opened_at, g.heard_at, nextval('gate_versions'), g.fresh_at, g.retry_at,
      g.suspect_at, g.state
    FROM ${GIVEN_GATES} WHERE g.saves
    ON CONFLICT (kind, name) DO UPDATE SET closed = excluded.closed, opened_at = excluded.opened_at,
      heard_at = excluded.heard_at, version = excluded.version, state = excluded.state,
      fresh_at = ${timeKept('fresh_at', 'gates', 'excluded')}, retry_at = ${timeKept('retry_at', 'gates', 'excluded')},
      suspect_at = ${timeKept('suspect_at', 'gates', 'excluded')};
    INSERT INTO gate_history (kind, name, at, event)
    SELECT g.kind, g.name, (e.event ->> 'at')::double precision::bigint, e.event::text
    FROM ${GIVEN_GATES} CROSS JOIN LATERAL json_array_elements(g.events) WITH ORDINALITY AS e (event, ord)
    WHERE g.saves ORDER BY e.ord;
    IF changed <> '{}' THEN PERFORM copy_access(changed); END IF;
  END $$;

  -- Writes what gates mean to the partitions of their resources.
  CREATE FUNCTION copy_access(p_resource text[]) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE locked bigint[];
  BEGIN
    locked := ARRAY (
      SELECT p.id FROM unnest(p_resource) AS g (name) JOIN partitions p ON ${isOfResource('g.name')}
      ORDER BY p.id FOR NO KEY UPDATE OF p);
    UPDATE partitions p SET held_until = a.held_until, admissible_at = a.held_until, gate_at = a.gate_at, gated_at = a.gate_at
    FROM (
      SELECT m.id, a.* FROM unnest(locked) AS g (id) JOIN partitions m ON ${lookUp('m.id', 'g.id')}
      CROSS JOIN LATERAL (${admissionOf('m')}) a OFFSET 0
    ) a
    WHERE ${lookUp('p.id', 'a.id')} AND (p.held_until <> a.held_until OR p.gate_at IS DISTINCT FROM a.gate_at);
  END $$;

  -- False, and nothing is written, when one of these gates is not in the version that was read.
  CREATE FUNCTION write_gates(p_gates json) RETURNS boolean LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  BEGIN
    IF NOT lock_gates(p_gates) THEN RETURN false; END IF;
    PERFORM save_gates(p_gates, now_ms());
    RETURN true;
  END $$;

  -- Up to p_limit gates, those that were not heard of for longest first, after the last one that was read; and whether a
  -- job waits behind each.
  CREATE FUNCTION quiet_gates(p_heard bigint, p_kind text, p_name text, p_limit int)
  RETURNS TABLE (store_now bigint, heard_at bigint, kind text, name text, version bigint, state text, waited_for boolean)
  LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  BEGIN
    RETURN QUERY SELECT now_ms(), s.heard_at, s.kind, s.name, s.version, s.state, s.kind = 'resource' AND EXISTS (
      SELECT 1 FROM partitions p WHERE ${isOfResource('s.name')}
        AND EXISTS (SELECT 1 FROM live w WHERE w.partition = p.id AND w.worker IS NULL))
    FROM (
      SELECT s.* FROM gates s WHERE (s.heard_at, s.kind, s.name) > (p_heard, p_kind, p_name)
      ORDER BY s.heard_at, s.kind, s.name LIMIT p_limit
    ) s;
  END $$;

  -- Deletes these gates, unless they were written since, and up to p_limit rows of history that are older than p_keep.
  CREATE FUNCTION forget_gates(p_gates json, p_keep bigint, p_limit int) RETURNS void LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    gone text[];
    oldest_kept bigint := now_ms() - p_keep;
  BEGIN
    PERFORM 1 FROM ${GIVEN_GATES} JOIN gates s ON ${SAME_GATE} ${IN_ORDER} FOR UPDATE OF s;
    WITH deleted AS (
      DELETE FROM gates s USING ${GIVEN_GATES} WHERE ${SAME_GATE} AND s.version = g.version RETURNING s.kind, s.name
    ) SELECT array_agg(d.name) INTO gone FROM deleted d WHERE d.kind = 'resource';
    IF gone IS NOT NULL THEN PERFORM copy_access(gone); END IF;
    DELETE FROM gate_history WHERE id IN (
      SELECT h.id FROM gate_history h WHERE h.at <= oldest_kept ORDER BY h.at LIMIT p_limit FOR UPDATE SKIP LOCKED);
  END $$;
`;
