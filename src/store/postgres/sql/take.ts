import { lookUp } from './shared.ts';

/*
 * How due jobs are taken under a lease, for every function that does. `picked` are the ids of rows that are locked, and
 * `picked_of` the positions of their partitions among those given.
 */

/** The due jobs of a given partition `g`, in the range that is to be read. */
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

/** What the functions declare. */
export const TAKING = `
    picked uuid[];
    picked_of int[];
    bytes int[];
    total_bytes bigint;
    kept int;
    failed bigint;`;

/** What they answer: see sql/claim.ts. `spent` has three numbers per job with a note: its position, and the note. */
export const TAKEN =
  'OUT lease bigint[], OUT id uuid[], OUT numbers bigint[], OUT payloads text, OUT errors text, OUT spent bigint[]';

/** Its position among the numbers of a job. */
const LAST_ERROR = 12;

/** Leaves out what does not fit into p_bytes; one job always does. */
export const CUT_TO_BYTES = `
      kept := cardinality(picked);
      WHILE total_bytes > p_bytes AND kept > 1 LOOP
        total_bytes := total_bytes - bytes[kept];
        kept := kept - 1;
      END LOOP;
      IF kept < cardinality(picked) THEN picked := picked[1:kept]; END IF;`;

export const TAKE_PICKED: string = `
      WITH taken AS (
        UPDATE live SET runs = live.runs + 1, attempts = live.attempts + 1, worker = p_worker, alone = false,
          claimed_at = store_now, lease_ends_at = store_now + p_lease,
          first_started_at = coalesce(live.first_started_at, store_now)
        FROM unnest(picked, picked_of) WITH ORDINALITY AS g (id, given, ord) WHERE ${lookUp('live.id', 'g.id')}
        RETURNING live.id, live.runs, live.partition, live.job_type, live.due_at, live.seq, live.attempts, live.crashes,
          live.available_at, live.first_started_at, live.previous_delay_ms, live.enqueued_at, live.last_error,
          live.spent_at, live.spent_count, live.payload, p_queue_of[g.given] AS queue_of, p_lane[g.given] AS lane, g.ord
      ), leased AS (
        INSERT INTO leases (queue, lane, check_at, lease_ms, jobs)
        SELECT p_queue[t.queue_of], t.lane, store_now + p_lease, p_lease, array_agg(t.id)
        FROM taken t GROUP BY t.queue_of, t.lane
        RETURNING id, queue, lane
      )
      SELECT array_agg(t.id), array_agg(ARRAY[t.runs, t.partition, t.job_type, t.due_at, t.seq, t.attempts, t.crashes,
          t.available_at, t.first_started_at, t.enqueued_at, t.previous_delay_ms, t.last_error]),
        string_agg(t.payload, E'\\n'), count(t.last_error),
        array_agg(ARRAY[t.ord, t.spent_at, t.spent_count]) FILTER (WHERE t.spent_at IS NOT NULL),
        (SELECT array_agg(ARRAY[l.id, array_position(p_queue, l.queue), l.lane]) FROM leased l)
      INTO id, numbers, payloads, failed, spent, lease
      FROM (SELECT * FROM taken ORDER BY ord) t;
      IF failed > 0 THEN
        errors := (SELECT string_agg(e.error, E'\\n' ORDER BY e.id) FROM (
          SELECT DISTINCT numbers[i][${LAST_ERROR}] AS id FROM generate_subscripts(numbers, 1) AS i OFFSET 0
        ) used JOIN errors e ON ${lookUp('e.id', 'used.id')});
      END IF;`;
