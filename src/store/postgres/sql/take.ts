import { LANE, lookUp } from './shared.ts';

/*
 * How due jobs are taken under a lease, for every function that does. `picked` are the ids of rows that are locked, and
 * `picked_of` the positions of their partitions among those given.
 */

/**
 * The due jobs of a given partition `g`, in the range that is to be read: for `claim`, which counts and takes by it, `gated_demand`,
 * `claim_gated` and `claim_limited`. Only what all of these declare may be named here. A rule of `claim` alone is added where
 * sql/claim.ts uses it, to `next_due_at` there, and to NEXT_ADMISSION.
 */
export const DUE_JOBS = `
  FROM live w
  WHERE w.partition = g.partition AND w.worker IS NULL AND (w.due_at, w.seq) > (g.from_due, g.from_seq)
    AND (w.due_at, w.seq) <= (g.until_due, g.until_seq) AND w.due_at <= store_now`;

/** One claim at a time of queues with a bound, or two would fill the same room; in one order, so that no two wait for each other. */
export const LOCK_QUEUES = (condition: string, ...columns: readonly string[]): string => `
      PERFORM pg_advisory_xact_lock(hashtext(current_schema()), g.lock) FROM (
        SELECT DISTINCT hashtext(g.queue) AS lock
        FROM unnest(p_queue, ${columns.join(', ')}) AS g (queue, ${columns.map((column) => column.slice(2)).join(', ')})
        WHERE ${condition} ORDER BY 1) g;`;

/** Where partitions are given with how many jobs each may give, `most`: no more retries than their queue has room for. */
export const BOUND_RETRIES: string = `IF ${LANE.retry} = ANY (p_lane) THEN
      FOR q IN 1 .. cardinality(p_queue) LOOP
        CONTINUE WHEN p_cap[q] IS NULL;
        left_room := retry_room(p_queue[q], p_cap[q], store_now);
        FOR i IN 1 .. cardinality(p_partition) LOOP
          CONTINUE WHEN p_queue_of[i] <> q OR p_lane[i] <> ${LANE.retry};
          most[i] := least(most[i], left_room);
          left_room := left_room - most[i];
        END LOOP;
      END LOOP;
    END IF;`;

/** What the functions declare. */
export const TAKING = `
    picked uuid[];
    picked_of int[];
    bytes int[];
    total_bytes bigint;
    kept int;
    failed bigint[];                        -- errors that the jobs point at
    taken_runs int[];                       -- of each job`;

/**
 * What they answer: see sql/claim.ts. `spent` has three numbers per job with a note: its position, and the note. `behind` is JSON:
 * the position and the limits of each job that has some; `traces` the same with the trace.
 */
export const TAKEN =
  'OUT lease bigint[], OUT id uuid[], OUT numbers bigint[], OUT payloads text, OUT errors text, OUT spent bigint[], OUT behind text, OUT traces text';

/** Leaves out what does not fit into p_bytes; one job always does. */
export const CUT_TO_BYTES = `
      kept := cardinality(picked);
      WHILE total_bytes > p_bytes AND kept > 1 LOOP
        total_bytes := total_bytes - bytes[kept];
        kept := kept - 1;
      END LOOP;
      IF kept < cardinality(picked) THEN picked := picked[1:kept]; END IF;`;

/** `behind`: which of the jobs `t` are answered with their limits; those of a limited partition have its own. */
export const takePicked = (behind = 'true'): string => `
      WITH taken AS (
        UPDATE live SET runs = live.runs + 1, attempts = live.attempts + 1, worker = p_worker, alone = false,
          claimed_at = store_now, lease_ends_at = store_now + p_lease,
          first_started_at = coalesce(live.first_started_at, store_now)
        FROM unnest(picked, picked_of) WITH ORDINALITY AS g (id, given, ord) WHERE ${lookUp('live.id', 'g.id')}
        RETURNING live.id, live.runs, live.partition, live.job_type, live.due_at, live.seq, live.attempts, live.crashes,
          live.available_at, live.first_started_at, live.previous_delay_ms, live.given_back, live.deferred_since, live.snoozes, live.enqueued_at, live.last_error,
          live.spent_at, live.spent_count, live.limits, live.trace, live.payload, p_queue_of[g.given] AS queue_of, p_lane[g.given] AS lane, g.ord
      ), leased AS (
        INSERT INTO leases (queue, lane, check_at, lease_ms, jobs)
        SELECT p_queue[t.queue_of], t.lane, store_now + p_lease, p_lease, array_agg(t.id)
        FROM taken t GROUP BY t.queue_of, t.lane
        RETURNING id, queue, lane
      )
      SELECT array_agg(t.id), array_agg(ARRAY[t.runs, t.partition, t.job_type, t.due_at, t.seq, t.attempts, t.crashes,
          t.available_at, t.first_started_at, t.enqueued_at, t.previous_delay_ms, t.given_back, t.deferred_since, t.snoozes, t.last_error]),
        string_agg(t.payload, E'\\n'), array_agg(t.last_error) FILTER (WHERE t.last_error IS NOT NULL), array_agg(t.runs),
        array_agg(ARRAY[t.ord, t.spent_at, t.spent_count]) FILTER (WHERE t.spent_at IS NOT NULL),
        json_agg(json_build_array(t.ord, t.limits)) FILTER (WHERE t.limits IS NOT NULL AND ${behind}),
        json_agg(json_build_array(t.ord, t.trace)) FILTER (WHERE t.trace IS NOT NULL),
        (SELECT array_agg(ARRAY[l.id, array_position(p_queue, l.queue), l.lane]) FROM leased l)
      INTO id, numbers, payloads, failed, taken_runs, spent, behind, traces, lease
      -- No aggregate may ask for an order of its own: PostgreSQL would sort the rows for all of them.
      FROM (SELECT * FROM taken ORDER BY ord) t;
      IF failed IS NOT NULL THEN
        errors := (SELECT string_agg(e.error, E'\\n' ORDER BY e.id) FROM (SELECT DISTINCT unnest(failed) AS id OFFSET 0) used JOIN errors e ON ${lookUp('e.id', 'used.id')});
      END IF;`;
