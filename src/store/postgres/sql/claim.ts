import { APART } from './aside.ts';
import { FOUND_PARTITIONS, NEXT_ADMISSION } from './partitions.ts';
import { BY_INDEX, FOR_GOOD, HERE, IS_SAME, LANE, lookUp, queueOf, SAY_REPLACED } from './shared.ts';
import { CUT_TO_BYTES, DUE_JOBS, LOCK_QUEUES, TAKEN, TAKING, takePicked } from './take.ts';

/** When a queue has more rows of leases than this, counting its running retries makes one row of them. */
const MANY_LEASES = 100;

/** Of limited partitions a claim reads so many to tell whether jobs wait in them. When there are more, it says that they do. */
const FEW_LIMITED = 32;

const GIVEN = 'p_partition, p_from_due, p_from_seq, p_until_due, p_until_seq, p_want';
const AS_GIVEN = 'partition, from_due, from_seq, until_due, until_seq, want';

export const claimSql: string = `
  -- How many retries and suspects of a queue are running.
  CREATE FUNCTION running_retries(p_queue text, OUT retries int, OUT suspects int) LANGUAGE plpgsql AS $$
  BEGIN
    -- In one statement, which finds each running job in some row of leases, also when that is folded meanwhile.
    SELECT count(*), count(*) FILTER (WHERE t.lane = ${LANE.suspect}) INTO retries, suspects
    FROM (
      SELECT DISTINCT lane, unnest(jobs) AS id FROM leases
      WHERE queue = p_queue AND lane IN (${LANE.retry}, ${LANE.suspect}) OFFSET 0
    ) t
      JOIN live l ON ${lookUp('l.id', 't.id')} JOIN partitions p ON ${lookUp('p.id', 'l.partition')}
    WHERE l.worker IS NOT NULL AND ${queueOf('p.queue')} = p_queue AND p.lane = t.lane;
    IF (SELECT count(*) FROM leases WHERE queue = p_queue AND lane = ${LANE.retry}) > ${MANY_LEASES} THEN
      -- Only rows that no other transaction is changing, such as a search for expired leases.
      PERFORM fold_leases(ARRAY (
        SELECT id FROM leases WHERE queue = p_queue AND lane = ${LANE.retry} FOR UPDATE SKIP LOCKED));
    END IF;
  END $$;

  -- Puts what is still held of these leases, which the caller has locked, into one row per queue and lane.
  CREATE FUNCTION fold_leases(p_lease bigint[]) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    WITH folded AS (
      DELETE FROM leases WHERE id = ANY (p_lease) RETURNING queue, lane, lease_ms, jobs
    )
    INSERT INTO leases (queue, lane, check_at, lease_ms, jobs)
    SELECT t.queue, t.lane, min(l.lease_ends_at), max(t.lease_ms), array_agg(l.id)
    FROM (SELECT queue, lane, unnest(jobs) AS id, max(lease_ms) AS lease_ms FROM folded GROUP BY 1, 2, 3 OFFSET 0) t
      JOIN live l ON ${lookUp('l.id', 't.id')}
    WHERE l.worker IS NOT NULL GROUP BY t.queue, t.lane;
  END $$;

  /*
   * Takes due jobs from the given partitions, which come in the order in which they are to be served. Of each it reads one
   * range, after p_from and up to p_until, and counts up to p_most of what is due. When all that was counted fits into
   * p_limit it takes everything; else no more than p_want of each, and the caller shares the rest by the numbers in \`due\`.
   * What is not p_open is only counted.
   *
   * p_queue_of is the position of a partition's queue in p_queue. p_trial: the queue gives a suspect and nothing else.
   * p_cap: maxRetriesInFlight. p_known are all partitions of these queues, as far as the caller knows; when it knows that
   * there are more it is null, and partitions that give a job, or have none, pass the turn on.
   * Of those it is then offered p_breadth of each queue, lane, priority and line. p_read are the queues whose partitions the worker
   * may read: p_queue, and those of jobs aside that it knows; p_limited are those of limited partitions. p_asides are the rows
   * of \`asides\` and \`limited_queues\` that the caller knows for p_queue.
   *
   * Answers first of the claim: \`due\` is how much of each given partition was counted, null when it is not admissible;
   * \`room\` is how many suspects (on trial) or retries of each queue might start, null for any number; \`suspects_wait\`
   * says of each queue whether a suspect might, before this claim; \`cut_short\` says that the payloads reached p_bytes;
   * \`offer\` is what \`candidates\` answers, null when p_known are all; \`gated\` is what \`gated_names\` answers; \`limited\` says whether jobs wait in p_limited; \`asides\` are the rows for p_queue, null when they are p_asides; \`lease\` has per row of leases its id, the position
   * of its queue and its lane. Then of the jobs: their ids, their numbers, a row each, and their payloads. Texts are JSON,
   * which has no line breaks, so they are joined by them; of each error that jobs point at there is one text, in the order
   * of the pointers. Arrays are made and read in a fraction of the time that as many rows take.
   */
  CREATE FUNCTION claim(
    p_identity uuid, p_worker int, p_lease bigint, p_limit int, p_bytes bigint,
    p_queue text[], p_trial boolean[], p_cap int[], p_known bigint[], p_breadth int,
    p_partition bigint[], p_queue_of int[], p_lane smallint[], p_open boolean[],
    p_from_due bigint[], p_from_seq bigint[], p_until_due bigint[], p_until_seq bigint[], p_want int[], p_most int[],
    p_read text[], p_asides bigint[], p_limited text[],
    OUT store_now bigint, OUT snapshot text, OUT next_due_at bigint, OUT suspects_wait boolean[], OUT cut_short boolean,
    OUT due int[], OUT room int[], OUT offer text, OUT gated text, OUT asides text, OUT limited boolean, ${TAKEN}
  ) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    bounded boolean := true = ANY (p_trial) OR cardinality(array_remove(p_cap, NULL)) > 0;
    is_same boolean;
    is_known boolean;
    has_gated boolean;
    has_known_asides boolean;
    total_due bigint;
    suspect_due boolean;
    running record;
    left_room int;
    ${TAKING}
    bound int[];                            -- of each partition: no more than this may start
  BEGIN
    IF bounded THEN
      ${LOCK_QUEUES('g.trial OR g.cap IS NOT NULL', 'p_trial', 'p_cap')}
    END IF;
    store_now := now_ms();
    -- After the time: a transaction that is not in it began later.
    snapshot := pg_current_snapshot();

    -- All that is read before jobs are taken, in one statement: each costs a claim as much as several look-ups.
    SELECT array_agg(g.due), coalesce(sum(g.due) FILTER (WHERE g.open), 0), min(g.next_due_at),
      ${IS_SAME}, CASE WHEN p_known IS NOT NULL THEN
        ARRAY (SELECT f.id FROM (${FOUND_PARTITIONS}) f ORDER BY f.id) = p_known END,
      EXISTS (SELECT 1 FROM partitions p WHERE p.queue = ANY (p_read || p_limited) AND p.gated_at IS NOT NULL),
      ARRAY (SELECT a.id FROM ${APART} a ORDER BY a.id) = p_asides
    INTO due, total_due, next_due_at, is_same, is_known, has_gated, has_known_asides
    FROM (
      SELECT g.open,
        CASE WHEN p.admissible_at <= store_now THEN (
          SELECT count(*)::int FROM (SELECT 1 ${DUE_JOBS} LIMIT g.most) d) END AS due,
        CASE WHEN p.admissible_at < ${FOR_GOOD} THEN (
          SELECT greatest(w.due_at, p.admissible_at) FROM live w WHERE w.partition = p.id AND w.worker IS NULL
            AND w.due_at > CASE WHEN p.admissible_at <= store_now THEN store_now ELSE -1 END
          ORDER BY w.due_at LIMIT 1) END AS next_due_at
      FROM unnest(${GIVEN}, p_most, p_open) AS g (${AS_GIVEN}, most, open)
        LEFT JOIN partitions p ON ${lookUp('p.id', 'g.partition')}
      OFFSET 0 -- so that each is counted once
    ) g;
    IF NOT is_same THEN ${SAY_REPLACED} END IF;

    IF bounded OR ${LANE.suspect} = ANY (p_lane) THEN
      -- What running retries and suspects leave room for.
      room := array_fill(NULL::int, ARRAY[cardinality(p_queue)]);
      suspects_wait := array_fill(false, ARRAY[cardinality(p_queue)]);
      bound := array_fill(NULL::int, ARRAY[cardinality(p_partition)]);
      FOR q IN 1 .. cardinality(p_queue) LOOP
        suspect_due := EXISTS (SELECT 1 FROM unnest(p_queue_of, p_lane, due) AS g (queue_of, lane, due)
          WHERE g.queue_of = q AND g.lane = ${LANE.suspect} AND g.due > 0);
        CONTINUE WHEN NOT suspect_due AND NOT p_trial[q] AND p_cap[q] IS NULL;
        running := running_retries(p_queue[q]);
        suspect_due := suspect_due AND running.suspects = 0 AND running.retries < coalesce(p_cap[q], running.retries + 1);
        suspects_wait[q] := suspect_due;
        -- Not \`greatest\` alone, which would take a missing cap for 0.
        room[q] := CASE WHEN p_trial[q] THEN suspect_due::int
          WHEN p_cap[q] IS NOT NULL THEN greatest(0, p_cap[q] - running.retries - suspect_due::int) END;
        left_room := room[q];
        FOR i IN 1 .. cardinality(p_partition) LOOP
          CONTINUE WHEN room[q] IS NULL OR p_queue_of[i] <> q OR NOT p_open[i] OR coalesce(due[i], 0) = 0
            OR p_lane[i] NOT IN (${LANE.retry}, ${LANE.suspect});
          bound[i] := least(due[i], left_room);
          left_room := left_room - bound[i];
          total_due := total_due - due[i] + bound[i];
        END LOOP;
      END LOOP;
    END IF;

    IF total_due > 0 THEN
      -- In a statement of its own, which costs less than a running sum of the bytes.
      SELECT array_agg(next.id), array_agg(g.ord::int), array_agg(next.payload_bytes), sum(next.payload_bytes)
      INTO picked, picked_of, bytes, total_bytes
      FROM unnest(${GIVEN}, p_open, due, bound) WITH ORDINALITY AS g (${AS_GIVEN}, open, due, bound, ord)
      CROSS JOIN LATERAL (
        SELECT w.id, w.payload_bytes ${DUE_JOBS} ORDER BY w.due_at, w.seq
        LIMIT least(g.due, g.bound, CASE WHEN total_due > p_limit THEN g.want END) FOR UPDATE SKIP LOCKED
      ) next
      WHERE g.open AND g.due > 0;
      ${CUT_TO_BYTES}
      cut_short := kept < cardinality(picked_of);
      IF cut_short THEN next_due_at := store_now; END IF;
    END IF;

    IF picked IS NOT NULL THEN
      ${takePicked()}
      IF behind IS NOT NULL THEN
        PERFORM fill_trial_slots(behind, id, taken_runs, store_now);
      END IF;
    END IF;

    IF is_known IS NOT TRUE THEN
      IF p_known IS NULL THEN
        PERFORM pass_on(array_agg(g.partition), array_agg(g.due < g.most))
        FROM unnest(p_partition, due, p_most) WITH ORDINALITY AS g (partition, due, most, ord)
        WHERE g.due = 0 OR g.ord = ANY (picked_of[1:kept]);
        IF coalesce(kept, 0) < p_limit THEN next_due_at := least(next_due_at, (${NEXT_ADMISSION})); END IF;
      END IF;
      offer := candidates(p_read, p_breadth, p_known IS NULL AND coalesce(kept, 0) = p_limit);
    END IF;
    IF has_gated THEN
      SELECT g.names, least(next_due_at, g.next_at) INTO gated, next_due_at
      FROM gated_names(p_read || p_limited, store_now, picked IS NOT NULL) g;
    END IF;
    IF NOT has_known_asides THEN
      asides := (SELECT coalesce(json_agg(json_build_array(a.id, a.under)), '[]') FROM ${APART} a);
    END IF;
    IF p_limited <> '{}' THEN
      SELECT coalesce(bool_or(w.waits), false) OR count(*) > ${FEW_LIMITED} INTO limited FROM (
        SELECT f.waits FROM partitions p
        LEFT JOIN LATERAL (SELECT true AS waits FROM live w WHERE w.partition = p.id AND w.worker IS NULL LIMIT 1) f ON true
        WHERE p.queue = ANY (p_limited) AND p.gate_at IS NULL LIMIT ${FEW_LIMITED} + 1) w;
    END IF;
  END $$;
`;
