import { APART } from './aside.ts';
import { GIVEN_USES, holdersFor, RECHECK_MS, STEADY_HOLDERS, WOKEN_PER_PLACE } from './limits.ts';
import { OF_TIER, tiersOf } from './partitions.ts';
import { BY_INDEX, CHECK_IDENTITY, FOR_GOOD, FULL, HERE, LANE, lookUp } from './shared.ts';
import { BOUND_RETRIES, CUT_TO_BYTES, DUE_JOBS, LOCK_QUEUES, TAKEN, TAKING, takePicked } from './take.ts';

/** Of each tier so many partitions are read whose time lies ahead, to know when the next job may start. */
const READ_AHEAD = 3;

const COLUMNS = 'p.id, p.queue, p.lane, p.priority, p.resource, p.name';

/** A claim may read p: its time has come, or that of another look at its key. */
const MAY_READ = (p: string): string =>
  `(${p}.admissible_at <= store_now OR ${p}.admissible_at BETWEEN ${FULL} AND ${FULL} + store_now)`;

export const claimLimitedSql: string = `
  /*
   * The first call of a limited claim. Of each queue in p_read, lane, priority and line it answers the first p_breadth partitions that
   * are admissible, as JSON, each with when it was last served, the number of its due jobs, whether there are more that were not
   * counted, and when the next one falls due. Of each it counts up to p_limit, or
   * where it found p_breadth of them, up to p_enough; how much of their keys is
   * in use (\`read_uses\`); how many more retries of each queue may start, null for any number; and when the first of the
   * partitions that are not admissible may give a job. \`asides\`: see \`claim\`.
   */
  CREATE FUNCTION limited_demand(p_queue text[], p_cap int[], p_read text[], p_asides bigint[], p_breadth int, p_limit int, p_enough int,
    OUT store_now bigint, OUT asides text, OUT waiting text, OUT settings text, OUT uses text, OUT room int[], OUT next_at bigint
  ) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE offered bigint[];
  BEGIN
    store_now := now_ms();
    IF ARRAY (SELECT a.id FROM ${APART} a ORDER BY a.id) <> p_asides THEN
      asides := (SELECT coalesce(json_agg(json_build_array(a.id, a.under)), '[]') FROM ${APART} a);
    END IF;
    WITH RECURSIVE ${tiersOf('true')}, offered AS MATERIALIZED (
      SELECT c.* FROM tiers g CROSS JOIN LATERAL (
        (SELECT ${COLUMNS}, p.admissible_at AS served_at FROM partitions p
          WHERE ${OF_TIER} AND p.admissible_at <= store_now ORDER BY p.admissible_at LIMIT p_breadth)
        UNION ALL
        (SELECT ${COLUMNS}, p.admissible_at - ${FULL} FROM partitions p
          WHERE ${OF_TIER} AND p.admissible_at BETWEEN ${FULL} AND ${FULL} + store_now ORDER BY p.admissible_at LIMIT p_breadth)
      ) c
    ), counted AS MATERIALIZED (
      SELECT CASE WHEN count(*) < p_breadth THEN p_limit ELSE p_enough END AS most FROM offered
    )
    SELECT json_agg(json_build_array(o.id, o.queue, o.lane, o.priority, o.resource, o.name, o.served_at, least(d.due, m.most), d.due > m.most,
        CASE WHEN d.due <= m.most THEN (SELECT w.due_at FROM live w WHERE w.partition = o.id AND w.worker IS NULL AND w.due_at > store_now
          ORDER BY w.due_at LIMIT 1) END) ORDER BY o.served_at),
      array_agg(o.id), (
        SELECT min(greatest(c.admissible_at, first.due_at)) FROM tiers g
        CROSS JOIN LATERAL (
          SELECT p.id, p.admissible_at FROM partitions p
          WHERE ${OF_TIER} AND p.admissible_at > store_now AND p.admissible_at < ${FULL} ORDER BY p.admissible_at LIMIT ${READ_AHEAD}) c
        CROSS JOIN LATERAL (
          SELECT w.due_at FROM live w WHERE w.partition = c.id AND w.worker IS NULL ORDER BY w.due_at LIMIT 1) first)
    INTO waiting, offered, next_at
    FROM offered o CROSS JOIN counted m CROSS JOIN LATERAL (
      SELECT count(*) AS due FROM (
        SELECT 1 FROM live w WHERE w.partition = o.id AND w.worker IS NULL AND w.due_at <= store_now
        LIMIT (SELECT most + 1 FROM counted)) d) d;
    IF offered IS NULL THEN RETURN; END IF;
    SELECT u.settings, u.uses INTO settings, uses FROM (
      SELECT array_agg(k.limit_name) AS limits, array_agg(k.key) AS keys FROM (
        SELECT DISTINCT k.limit_name, k.key
        FROM unnest(offered) AS g (id) JOIN limit_partitions k ON ${lookUp('k.partition', 'g.id')}) k) k, read_uses(k.limits, k.keys) u;
    room := ARRAY (
      SELECT CASE WHEN g.cap IS NOT NULL THEN retry_room(g.queue, g.cap, store_now) END
      FROM unnest(p_queue, p_cap) WITH ORDINALITY AS g (queue, cap, ord) ORDER BY g.ord);
  END $$;

  /*
   * The second call: takes up to p_want due jobs of each of these partitions, of which p_uses_of has the uses, unless one of
   * these is stale. Then it sends partitions behind the others that were served, and parks those that have no due jobs
   * (p_is_empty), whose key has no room before a time (p_until), or whose key is held by p_bound jobs; p_blocked_by is the use
   * that is to blame. Last it wakes parked partitions of the keys p_free, which have room left.
   */
  CREATE FUNCTION claim_limited(
    p_identity uuid, p_worker int, p_lease bigint, p_bytes bigint, p_queue text[], p_cap int[], p_uses json,
    p_partition bigint[], p_queue_of int[], p_lane smallint[], p_want int[], p_uses_of text[],
    p_is_empty boolean[], p_until bigint[], p_bound int[], p_blocked_by int[], p_free int[],
    OUT store_now bigint, OUT stale boolean, OUT cut_short boolean, OUT woken boolean, ${TAKEN}
  ) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    ${TAKING}
    most int[] := p_want;
    left_room int;
    stale_ones int[];
    blocked int[];
  BEGIN
    IF ${LANE.retry} = ANY (p_lane) THEN
      ${LOCK_QUEUES('g.cap IS NOT NULL', 'p_cap')}
    END IF;
    PERFORM lock_limits(p_uses);
    ${CHECK_IDENTITY}
    store_now := now_ms();
    -- With the locks, and in a new statement: what is in use now stays, or gets less.
    stale_ones := stale_uses(p_uses);
    stale := stale_ones <> '{}';
    FOR i IN 1 .. cardinality(p_partition) LOOP
      IF stale AND p_uses_of[i]::int[] && stale_ones THEN most[i] := 0; END IF;
    END LOOP;
    ${BOUND_RETRIES}
    SELECT array_agg(next.id), array_agg(next.ord), array_agg(next.payload_bytes), sum(next.payload_bytes)
    INTO picked, picked_of, bytes, total_bytes
    FROM (
      SELECT g.ord::int, g.partition, 0 AS from_due, -1 AS from_seq, ${FOR_GOOD} AS until_due, 0 AS until_seq, g.most
      FROM unnest(p_partition, most) WITH ORDINALITY AS g (partition, most, ord)
      JOIN partitions p ON ${lookUp('p.id', 'g.partition')} AND p.gate_at IS NULL AND ${MAY_READ('p')}
      WHERE g.most > 0 ORDER BY g.ord OFFSET 0
    ) g
    CROSS JOIN LATERAL (
      SELECT w.id, g.ord, w.payload_bytes ${DUE_JOBS} ORDER BY w.due_at, w.seq LIMIT g.most FOR UPDATE SKIP LOCKED
    ) next;
    IF picked IS NULL THEN
      PERFORM set_config('synchronous_commit', 'off', true);
    ELSE
      ${CUT_TO_BYTES}
      cut_short := kept < cardinality(picked_of);
      picked_of := picked_of[1:kept];
      ${takePicked('false')}
      PERFORM fill_slots(p_uses, p_uses_of, id, taken_runs, picked_of, store_now);
    END IF;

    blocked := ARRAY (
      SELECT g.ord FROM unnest(p_lane, p_want, p_until, p_bound, p_blocked_by) WITH ORDINALITY AS g (lane, want, until, bound, blocked_by, ord)
      JOIN ${GIVEN_USES} ON u.ord = g.blocked_by
      -- A time was reckoned with what should have been taken.
      WHERE (g.until IS NOT NULL AND g.want = coalesce(cardinality(array_positions(picked_of, g.ord::int)), 0)) 
        OR CASE WHEN g.bound IS NOT NULL THEN g.bound <= (SELECT ${holdersFor('g.lane')} FROM ${STEADY_HOLDERS}) END);
    UPDATE partitions p SET admissible_at = greatest(p.held_until, coalesce(n.until, ${FULL} + store_now + ${RECHECK_MS}))
    FROM (
      SELECT p.id, g.until FROM unnest(p_partition, p_until) WITH ORDINALITY AS g (id, until, ord)
      JOIN partitions p ON ${lookUp('p.id', 'g.id')} AND ${MAY_READ('p')}
      WHERE g.ord = ANY (blocked) FOR NO KEY UPDATE OF p SKIP LOCKED
    ) n WHERE ${lookUp('p.id', 'n.id')};
    UPDATE limit_partitions b SET blocked_at = store_now
    FROM (
      SELECT g.id, u.limit_name FROM unnest(p_partition, p_blocked_by) WITH ORDINALITY AS g (id, blocked_by, ord)
      JOIN ${GIVEN_USES} ON u.ord = g.blocked_by WHERE g.ord = ANY (blocked) OFFSET 0
    ) n WHERE ${lookUp('b.partition', 'n.id')} AND b.limit_name = n.limit_name;
    PERFORM pass_on(array_agg(g.partition), array_agg(g.is_empty))
    FROM unnest(p_partition, p_is_empty) WITH ORDINALITY AS g (partition, is_empty, ord)
    WHERE NOT g.ord = ANY (blocked) AND (g.is_empty OR g.ord = ANY (picked_of));
    woken := p_free <> '{}' AND (
      SELECT wake_blocked(array_agg(u.limit_name), array_agg(u.key), array_agg(${WOKEN_PER_PLACE}), true) FROM ${GIVEN_USES} WHERE u.ord = ANY (p_free));
  END $$;
`;
