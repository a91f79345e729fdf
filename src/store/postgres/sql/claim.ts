import { lanes } from '../../../job.ts';
import { BY_INDEX, HERE, LANE, lookUp, SAY_REPLACED } from './shared.ts';

/** Of stretches `l` of lines: the first jobs of each that are due and that nobody else is about to take. */
const nextOfEach = (limit: string): string => `
  CROSS JOIN LATERAL (
    SELECT w.id, w.due_at, w.seq FROM live w
    WHERE w.line = l.line AND w.worker IS NULL AND (w.due_at, w.seq) > (l.from_due, l.from_seq)
      AND (w.due_at, w.seq) <= (l.until_due, l.until_seq) AND w.due_at <= store_now
    ORDER BY w.due_at, w.seq LIMIT ${limit} FOR UPDATE SKIP LOCKED
  ) next`;

/** So many rows of leases are read for a count, before they are made one. */
const MANY_CLAIMS = 100;

/** Starts a run of each job that was picked. */
const TAKE = `
  UPDATE live SET runs = live.runs + 1, attempts = live.attempts + 1, worker = p_worker,
    claimed_at = store_now, lease_ends_at = store_now + p_lease,
    first_started_at = coalesce(live.first_started_at, store_now)
  FROM picked WHERE ${lookUp('live.id', 'picked.id')}
  RETURNING live.id, live.runs, live.line, live.kind, live.due_at, live.seq, live.attempts, live.crashes,
    live.available_at, live.first_started_at, live.previous_delay_ms, live.enqueued_at, live.last_error,
    live.payload`;

/** What was taken, column by column, as the type `claimed` has it. */
const columns = (errors: string, lease: string): string => `
  array_agg(id), array_agg(runs), array_agg(line), array_agg(kind), array_agg(due_at), array_agg(seq),
  array_agg(attempts), array_agg(crashes), array_agg(available_at), array_agg(first_started_at),
  array_agg(previous_delay_ms), array_agg(enqueued_at), array_agg(last_error), ${errors},
  string_agg(payload, E'\\n'), ${lease}`;

const textsOf = (errors: string): string => `
  SELECT string_agg(e.error, E'\\n' ORDER BY e.id)
  FROM (SELECT DISTINCT unnest(${errors}) AS id OFFSET 0) used JOIN errors e ON ${lookUp('e.id', 'used.id')}`;

/** When the first job of a line falls due that is not due yet. */
const nextDue = (line: string): string => `
  SELECT w.due_at FROM live w WHERE w.line = ${line} AND w.worker IS NULL AND w.due_at > store_now
  ORDER BY w.due_at LIMIT 1`;

export const claimSql: string = `
  /*
   * How many second chances of a queue run now. Claims of many go by, so every now and then what is still held of them is
   * put into one row.
   */
  CREATE FUNCTION running_retries(p_queue text) RETURNS bigint LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    retry_lines int[] := ARRAY (
      SELECT id FROM lines WHERE queue = p_queue AND lane IN (${LANE.retry}, ${LANE.suspect}));
    running bigint;
  BEGIN
    -- In one statement, which sees each running job in some row of leases, whoever moves it to another meanwhile.
    SELECT count(*) INTO running
    FROM (SELECT DISTINCT unnest(jobs) AS id FROM leases WHERE line = ANY (retry_lines) OFFSET 0) t
      JOIN live l ON ${lookUp('l.id', 't.id')}
    WHERE l.worker IS NOT NULL AND l.line = ANY (retry_lines);
    IF (SELECT count(*) FROM leases WHERE line = ANY (retry_lines)) > ${MANY_CLAIMS} THEN
      -- Only rows that nobody else is about to change, such as a look for expired leases.
      WITH due AS MATERIALIZED (
        SELECT ctid AS place FROM leases WHERE line = ANY (retry_lines) FOR UPDATE SKIP LOCKED
      ), taken AS (
        DELETE FROM leases USING due WHERE leases.ctid = due.place RETURNING leases.jobs
      )
      INSERT INTO leases (line, look_at, jobs)
      SELECT retry_lines[1], min(l.lease_ends_at), array_agg(l.id)
      FROM (SELECT DISTINCT unnest(jobs) AS id FROM taken OFFSET 0) t JOIN live l ON ${lookUp('l.id', 't.id')}
      WHERE l.worker IS NOT NULL HAVING count(*) > 0;
    END IF;
    RETURN running;
  END $$;

  /*
   * Jobs of one claim, column by column: a row of arrays is made and read in a fraction of the time that as many rows
   * take. Texts are JSON, which has no line breaks, so they are joined by them. Of each error that jobs point at there
   * is one text, in the order of the pointers.
   */
  CREATE TYPE claimed AS (
    id uuid[], run int[], line int[], kind int[], due_at bigint[], seq bigint[], attempts int[], crashes int[],
    available_at bigint[], first_started_at bigint[], previous_delay_ms bigint[], enqueued_at bigint[],
    last_error bigint[], error text, payload text, lease bigint
  );

  /*
   * Fills the places of a claim as store/fill.ts says it, from stretches of lines: after p_from, up to p_until. They come
   * sorted by queue, lane and priority; p_queue_of is the position of a line's queue in p_queue. When there are lines
   * newer than p_newest, nothing is taken: the caller does not know all it should ask for. The last row has no ids and
   * tells, in the columns named here:
   * line: the newest there is, due_at: the store's time, available_at: when the next job falls due,
   * run: 1 when a suspect waits that may run, error: the snapshot, payload: the paused queues as JSON.
   */
  CREATE FUNCTION claim(
    p_worker int, p_lease bigint, p_limit int,
    p_queue text[], p_share int[], p_retry int[], p_redrive int[], p_suspect int[], p_cap int[],
    p_line int[], p_queue_of int[], p_lane smallint[], p_priority smallint[], p_from_due bigint[], p_from_seq bigint[],
    p_until_due bigint[], p_until_seq bigint[], p_newest int
  ) RETURNS SETOF claimed LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    store_now bigint;
    places int := p_limit;                  -- of the claim
    room int;                               -- of the queue, in this turn
    wanted int;
    got int;
    step_lane smallint;
    first_line int;
    last_line int;
    lines_count int := coalesce(array_length(p_line, 1), 0);
    paused text[] := ARRAY (SELECT queue FROM paused_queues);
    for_retry int[] := p_retry;
    for_redrive int[] := p_redrive;
    for_suspect int[] := p_suspect;
    retry_room int[] := p_cap;
    is_empty boolean[] := array_fill(false, ARRAY[cardinality(p_queue) * ${lanes.length}]);
    taken_before int;
    q int;
    batch claimed;
    newest int;
    next_due bigint;
    last_row claimed;
  BEGIN
    SELECT max(id) INTO newest FROM lines;
    last_row.line := ARRAY[newest];
    IF newest > p_newest THEN RETURN NEXT last_row; RETURN; END IF;
    IF coalesce(newest, 0) < p_newest THEN ${SAY_REPLACED} END IF;

    -- By name, so that two claims never wait for each other's queues.
    FOR q IN SELECT position::int FROM unnest(p_queue) WITH ORDINALITY AS g (queue, position) ORDER BY g.queue LOOP
      IF p_queue[q] = ANY (paused) THEN
        FOR lane IN 1 .. ${lanes.length} LOOP is_empty[(q - 1) * ${lanes.length} + lane] := true; END LOOP;
      ELSIF p_cap[q] IS NOT NULL THEN
        -- One at a time, or two claims would fill the same room.
        PERFORM pg_advisory_xact_lock(hashtext(current_schema()), hashtext(p_queue[q]));
        retry_room[q] := greatest(0, p_cap[q] - running_retries(p_queue[q]));
      END IF;
    END LOOP;
    store_now := now_ms();
    -- After the time: whoever is not in it began later.
    last_row.error := pg_current_snapshot();

    <<turns>>
    FOR turn IN 1 .. 2 LOOP
      FOR q IN 1 .. cardinality(p_queue) LOOP
        EXIT turns WHEN places <= 0;
        room := CASE turn WHEN 1 THEN least(places, p_share[q]) ELSE places END;
        FOR step IN 1 .. 8 LOOP
          -- Whoever asks for suspects has made room to run one alone.
          EXIT WHEN room <= 0 OR (p_suspect[q] > 0 AND step > 1);
          step_lane := CASE step
            WHEN 1 THEN ${LANE.suspect} WHEN 2 THEN ${LANE.retry} WHEN 3 THEN ${LANE.redrive}
            WHEN 4 THEN ${LANE.retry} WHEN 5 THEN ${LANE.redrive}
            WHEN 6 THEN ${LANE.fresh} WHEN 7 THEN ${LANE.retry} ELSE ${LANE.redrive} END;
          wanted := least(room, CASE step
            WHEN 1 THEN for_suspect[q] WHEN 2 THEN for_retry[q] WHEN 3 THEN for_redrive[q]
            -- What the one lane leaves, the other may borrow.
            WHEN 4 THEN CASE WHEN is_empty[(q - 1) * ${lanes.length} + ${LANE.redrive + 1}] THEN for_redrive[q] ELSE 0 END
            WHEN 5 THEN CASE WHEN is_empty[(q - 1) * ${lanes.length} + ${LANE.retry + 1}] THEN for_retry[q] ELSE 0 END
            ELSE room END);
          CONTINUE WHEN wanted <= 0 OR is_empty[(q - 1) * ${lanes.length} + step_lane + 1];

          taken_before := places;
          first_line := 1;
          WHILE first_line <= lines_count LOOP
            last_line := first_line;
            WHILE last_line < lines_count AND p_queue_of[last_line + 1] = p_queue_of[first_line]
              AND p_lane[last_line + 1] = p_lane[first_line] AND p_priority[last_line + 1] = p_priority[first_line]
            LOOP last_line := last_line + 1; END LOOP;
            IF p_queue_of[first_line] = q AND p_lane[first_line] = step_lane THEN
              got := wanted - (taken_before - places);
              IF step_lane IN (${LANE.retry}, ${LANE.suspect}) THEN got := least(got, coalesce(retry_room[q], got)); END IF;
              EXIT WHEN got <= 0;
              -- Lines that share a priority, in due order.
              WITH picked AS MATERIALIZED (
                SELECT next.id
                FROM unnest(p_line[first_line:last_line],
                  p_from_due[first_line:last_line], p_from_seq[first_line:last_line],
                  p_until_due[first_line:last_line], p_until_seq[first_line:last_line]
                ) AS l (line, from_due, from_seq, until_due, until_seq) ${nextOfEach('got')}
                ORDER BY next.due_at, next.seq LIMIT got
              ), taken AS (${TAKE}), leased AS (
                INSERT INTO leases (line, look_at, jobs)
                SELECT p_line[first_line], store_now + p_lease, array_agg(t.id) FROM taken t HAVING count(*) > 0
                RETURNING leases.id
              )
              SELECT ${columns('NULL', '(SELECT leased.id FROM leased)')} INTO batch
              FROM (SELECT * FROM taken t ORDER BY t.due_at, t.seq) in_order;
              got := coalesce(cardinality(batch.id), 0);
              IF cardinality(array_remove(batch.last_error, NULL)) > 0 THEN
                batch.error := (${textsOf('batch.last_error')});
              END IF;
              IF got > 0 THEN RETURN NEXT batch; END IF;
              places := places - got;
              IF step_lane IN (${LANE.retry}, ${LANE.suspect}) THEN retry_room[q] := retry_room[q] - got; END IF;
            END IF;
            first_line := last_line + 1;
          END LOOP;
          got := taken_before - places;
          IF got < wanted THEN is_empty[(q - 1) * ${lanes.length} + step_lane + 1] := true; END IF;
          room := room - got;
          IF step = 1 THEN for_suspect[q] := for_suspect[q] - got;
          ELSIF step IN (2, 5) THEN for_retry[q] := for_retry[q] - got;
          ELSIF step IN (3, 4) THEN for_redrive[q] := for_redrive[q] - got;
          END IF;
        END LOOP;
      END LOOP;
    END LOOP;

    last_row.due_at := ARRAY[store_now];
    last_row.payload := array_to_json(paused);
    FOR i IN 1 .. lines_count LOOP
      CONTINUE WHEN p_queue[p_queue_of[i]] = ANY (paused);
      IF places > 0 THEN
        next_due := least(next_due, (${nextDue('p_line[i]')}));
      END IF;
      IF p_lane[i] = ${LANE.suspect} AND coalesce(retry_room[p_queue_of[i]], 1) > 0 AND EXISTS (
        SELECT 1 FROM live w WHERE w.line = p_line[i] AND w.worker IS NULL AND w.due_at <= store_now)
      THEN last_row.run := '{1}'; END IF;
    END LOOP;
    last_row.available_at := ARRAY[next_due];
    RETURN NEXT last_row;
  END $$;

  /*
   * The same for a claim that may take whatever is due, so that nothing has to be shared out: one statement, which takes
   * the server half as long to begin. Should there be more than p_limit, in lines that have to share it, nothing is
   * taken, and the last row says so: run: 1 when the other one has to see to it. A row per line.
   */
  CREATE FUNCTION claim_all(
    p_worker int, p_lease bigint, p_limit int, p_queue text[], p_line int[], p_queue_of int[],
    p_from_due bigint[], p_from_seq bigint[], p_until_due bigint[], p_until_seq bigint[], p_newest int
  ) RETURNS SETOF claimed LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    store_now bigint := now_ms();
  BEGIN
    RETURN QUERY
    WITH known AS MATERIALIZED (
      SELECT coalesce((SELECT max(id) FROM lines), 0) AS newest, ARRAY (SELECT queue FROM paused_queues) AS paused
    ), given AS MATERIALIZED (
      SELECT l.* FROM known, unnest(p_line, p_queue_of, p_from_due, p_from_seq, p_until_due, p_until_seq)
        AS l (line, queue, from_due, from_seq, until_due, until_seq)
      WHERE known.newest = p_newest AND NOT p_queue[l.queue] = ANY (known.paused)
    ), found AS MATERIALIZED (
      SELECT next.id, next.due_at, next.seq FROM given l ${nextOfEach('p_limit')}
    ), fits AS MATERIALIZED (
      SELECT p_line[1] = ALL (p_line) OR (SELECT count(*) FROM found) <= p_limit AS yes
    ), picked AS MATERIALIZED (
      SELECT found.id FROM found, fits WHERE fits.yes ORDER BY found.due_at, found.seq LIMIT p_limit
    ), taken AS (${TAKE}), leased AS (
      INSERT INTO leases (line, look_at, jobs)
      SELECT t.line, store_now + p_lease, array_agg(t.id) FROM taken t GROUP BY t.line
      RETURNING leases.id, leases.line
    )
    SELECT ${columns(`(${textsOf('array_agg(last_error)')})`, '(SELECT leased.id FROM leased WHERE leased.line = in_order.line)')}
    FROM (SELECT * FROM taken t ORDER BY t.line, t.due_at, t.seq) in_order GROUP BY line
    UNION ALL
    SELECT NULL, CASE WHEN newest < p_newest OR NOT fits.yes THEN '{1}'::int[] END, ARRAY[newest], NULL, ARRAY[store_now],
      NULL, NULL, NULL,
      ARRAY[(SELECT min(due_at) FROM given l CROSS JOIN LATERAL (${nextDue('l.line')}) next)],
      NULL, NULL, NULL, NULL, pg_current_snapshot()::text, array_to_json(paused)::text, NULL
    FROM known, fits;
  END $$;
`;
