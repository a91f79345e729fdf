import { PROBE_CANDIDATES } from '../../probe-candidates.ts';
import { holdUntil } from './gates.ts';
import { LONGEST_PARKING_MS, SHORT_PARKING_MS } from './partitions.ts';
import { BY_INDEX, CHECK_IDENTITY, FOR_GOOD, HERE, isOfResource, LANE, lookUp, queueOf } from './shared.ts';
import { BOUND_RETRIES, CUT_TO_BYTES, DUE_JOBS, LOCK_QUEUES, TAKEN, TAKING, takePicked } from './take.ts';

/** To name resources a claim reads so many partitions of each queue whose time has come, and so many whose time lies ahead. */
const READ_NOW = 32;
const READ_AHEAD = 8;
/** When so many of them have no due job, these are parked: they must not hide the others. */
const PARKED_FROM = 8;

const firstDue = (partition: string): string => `
  SELECT w.due_at FROM live w WHERE w.partition = ${partition} AND w.worker IS NULL ORDER BY w.due_at LIMIT 1`;

export const claimGatedSql: string = `
  /*
   * For an ordinary claim: the resources of gated partitions of these queues that have a due job and may be asked for it now,
   * as JSON, those that have waited longest first; and when the next may be. Only the first partitions of each queue are
   * read, so those among them without a due job are parked when they are many: see partitions.ts.
   */
  CREATE FUNCTION gated_names(p_queue text[], p_now bigint, p_took boolean, OUT names text, OUT next_at bigint)
  LANGUAGE plpgsql AS $$
  DECLARE
    idle bigint[];
    longest bigint;
  BEGIN
    SELECT json_agg(f.resource ORDER BY f.starts_at, f.id) FILTER (WHERE f.starts_at <= p_now),
      min(f.starts_at) FILTER (WHERE f.starts_at > p_now), array_agg(f.id) FILTER (WHERE f.starts_at <= p_now IS NOT TRUE)
    INTO names, next_at, idle
    FROM (
      SELECT c.id, c.resource, CASE WHEN d.due_at IS NOT NULL THEN greatest(c.gated_at, d.due_at) END AS starts_at
      FROM unnest(p_queue) AS q (queue) CROSS JOIN LATERAL (
        SELECT p.id, p.resource, p.gated_at FROM partitions p WHERE p.queue = q.queue AND p.gated_at <= p_now
        ORDER BY p.gated_at LIMIT ${READ_NOW}) c
      LEFT JOIN LATERAL (${firstDue('c.id')}) d ON true OFFSET 0
    ) f;
    next_at := least(next_at, (
      SELECT min(greatest(c.gated_at, d.due_at)) FROM unnest(p_queue) AS q (queue) CROSS JOIN LATERAL (
        SELECT p.id, p.gated_at FROM partitions p WHERE p.queue = q.queue AND p.gated_at > p_now AND p.gated_at < ${FOR_GOOD}
        ORDER BY p.gated_at LIMIT ${READ_AHEAD}) c
      CROSS JOIN LATERAL (${firstDue('c.id')}) d));
    IF cardinality(idle) >= ${PARKED_FROM} THEN
      IF NOT p_took THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
      idle := ARRAY (SELECT id FROM partitions WHERE id = ANY (idle) ORDER BY id FOR UPDATE SKIP LOCKED);
      longest := CASE WHEN has_strict() THEN ${SHORT_PARKING_MS} ELSE ${LONGEST_PARKING_MS} END;
      -- With the locks, and in a new statement: see partitions.ts.
      UPDATE partitions p SET gated_at = greatest(p.gate_at, least(p_now + longest, n.due_at))
      FROM (SELECT g.id, (${firstDue('g.id')}) AS due_at FROM unnest(idle) AS g (id) OFFSET 0) n
      WHERE ${lookUp('p.id', 'n.id')} AND p.gate_at IS NOT NULL AND (n.due_at > p_now) IS NOT FALSE;
    END IF;
  END $$;

  -- How many more retries of a queue may start, of which one is kept for a suspect that may start.
  CREATE FUNCTION retry_room(p_queue text, p_cap int, p_now bigint) RETURNS int LANGUAGE plpgsql AS $$
  DECLARE running record;
  BEGIN
    running := running_retries(p_queue);
    RETURN greatest(0, p_cap - running.retries - (running.suspects = 0 AND EXISTS (
      SELECT 1 FROM partitions p WHERE p.queue = p_queue AND p.lane = ${LANE.suspect} AND p.admissible_at <= p_now
        AND EXISTS (SELECT 1 FROM live w WHERE w.partition = p.id AND w.worker IS NULL AND w.due_at <= p_now)))::int);
  END $$;

  /*
   * The first call of a gated claim: the rows of the gate and of its parent; the gated partitions of the resource in these
   * queues that are not held, as JSON, each with the number of its due jobs (up to p_most); how many more retries of each
   * queue may start, null for any number; and, when the gate is open, the jobs that are due first, of all and of each partition, of which one may become the probe. p_known are
   * partitions of which the caller knows that nothing waits up to p_from. p_read: see \`claim\`.
   */
  CREATE FUNCTION gated_demand(
    p_resource text, p_parent text, p_queue text[], p_cap int[], p_most int,
    p_known bigint[], p_from_due bigint[], p_from_seq bigint[], p_read text[],
    OUT store_now bigint, OUT gate_version bigint, OUT gate text, OUT access bigint[], OUT parent_version bigint, OUT parent text,
    OUT waiting text, OUT room int[], OUT probes text
  ) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE is_open boolean;
  BEGIN
    store_now := now_ms();
    SELECT s.version, s.state, ARRAY[s.fresh_at, s.retry_at, s.suspect_at], s.opened_at IS NOT NULL
    INTO gate_version, gate, access, is_open
    FROM gates s WHERE s.kind = 'resource' AND s.name = p_resource;
    IF gate IS NULL THEN RETURN; END IF;
    SELECT s.version, s.state INTO parent_version, parent FROM gates s WHERE s.kind = 'parent' AND s.name = p_parent;
    room := ARRAY (
      SELECT CASE WHEN g.cap IS NOT NULL THEN retry_room(g.queue, g.cap, store_now) END
      FROM unnest(p_queue, p_cap) WITH ORDINALITY AS g (queue, cap, ord) ORDER BY g.ord);
    waiting := (
      SELECT json_agg(json_build_array(p.id, p.queue, p.lane, p.priority, p.resource, p.name, (
        SELECT count(*) FROM (SELECT 1 ${DUE_JOBS} LIMIT p_most) d)) ORDER BY p.id)
      FROM partitions p
      LEFT JOIN unnest(p_known, p_from_due, p_from_seq) AS k (id, from_due, from_seq) ON k.id = p.id
      CROSS JOIN LATERAL (SELECT p.id AS partition, coalesce(k.from_due, 0) AS from_due, coalesce(k.from_seq, -1) AS from_seq,
        ${FOR_GOOD} AS until_due, 0 AS until_seq OFFSET 0) g
      WHERE ${isOfResource('p_resource')} AND p.queue = ANY (p_read) AND p.gate_at IS NOT NULL
        AND ${holdUntil('p')} <= store_now);
    IF is_open THEN
      probes := (
        SELECT json_agg(json_build_array(c.id, c.partition, c.job_type) ORDER BY c.nth) FROM (
          SELECT w.id, w.partition, w.job_type, w.nth_of_partition, row_number() OVER (ORDER BY w.due_at, w.seq) AS nth
          FROM json_array_elements(waiting::json) AS a (partition)
          CROSS JOIN LATERAL (
            SELECT w.id, w.partition, w.job_type, w.due_at, w.seq, row_number() OVER (ORDER BY w.due_at, w.seq) AS nth_of_partition
            FROM live w
            WHERE w.partition = (a.partition ->> 0)::bigint AND w.worker IS NULL AND w.due_at <= store_now
            ORDER BY w.due_at, w.seq LIMIT ${PROBE_CANDIDATES}) w
          WHERE (a.partition ->> 2)::int <> ${LANE.retry} OR room[array_position(p_queue, ${queueOf('a.partition ->> 1')})] IS DISTINCT FROM 0
        ) c
        -- The first ones may all wait for room under a full key, which is not known here.
        WHERE c.nth <= ${PROBE_CANDIDATES} OR c.nth_of_partition = 1);
    END IF;
  END $$;

  /*
   * The second call: takes p_want due jobs of each of these partitions, or the job p_only of the only one, and writes the
   * gates that admitted them. \`done\` is false, and nothing is written, when a gate is not in the version that was read, or
   * when no job is left, or when a use (claim-limited.ts) is stale. The jobs are answered as by \`claim\`.
   */
  CREATE FUNCTION claim_gated(
    p_identity uuid, p_worker int, p_lease bigint, p_bytes bigint, p_queue text[], p_cap int[], p_gates json,
    p_partition bigint[], p_queue_of int[], p_lane smallint[], p_from_due bigint[], p_from_seq bigint[], p_want int[],
    p_only uuid, p_uses json, p_uses_of text[],
    OUT store_now bigint, OUT snapshot text, OUT done boolean, ${TAKEN}
  ) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    ${TAKING}
    most int[] := p_want;
    left_room int;
  BEGIN
    IF ${LANE.retry} = ANY (p_lane) THEN
      ${LOCK_QUEUES('g.cap IS NOT NULL', 'p_cap')}
    END IF;
    PERFORM lock_limits(p_uses);
    ${CHECK_IDENTITY}
    done := lock_gates(p_gates) AND stale_uses(p_uses) = '{}';
    store_now := now_ms();
    snapshot := pg_current_snapshot();
    IF NOT done THEN RETURN; END IF;
    ${BOUND_RETRIES}
    SELECT array_agg(next.id), array_agg(next.ord), array_agg(next.payload_bytes), sum(next.payload_bytes)
    INTO picked, picked_of, bytes, total_bytes
    FROM (
      SELECT g.ord::int, g.partition, g.from_due, g.from_seq, ${FOR_GOOD} AS until_due, 0 AS until_seq, g.most
      FROM unnest(p_partition, p_from_due, p_from_seq, most) WITH ORDINALITY AS g (partition, from_due, from_seq, most, ord)
      JOIN partitions p ON ${lookUp('p.id', 'g.partition')} AND p.gate_at IS NOT NULL AND ${holdUntil('p')} <= store_now
      ORDER BY g.ord OFFSET 0
    ) g
    CROSS JOIN LATERAL (
      SELECT w.id, g.ord, w.payload_bytes ${DUE_JOBS} AND (p_only IS NULL OR w.id = p_only) ORDER BY w.due_at, w.seq
      LIMIT g.most FOR UPDATE SKIP LOCKED
    ) next;
    IF picked IS NULL THEN
      done := false;
      RETURN;
    END IF;
    ${CUT_TO_BYTES}
    picked_of := picked_of[1:kept];
    ${takePicked()}
    IF behind IS NOT NULL THEN
      PERFORM fill_slots(p_uses, p_uses_of, id, taken_runs, picked_of, store_now);
    END IF;
    PERFORM save_gates(p_gates, store_now);
  END $$;
`;
