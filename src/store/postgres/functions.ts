import { keyLifeCodes, laneCodes, outcomeCodes, STATE } from '../codes.ts';
import { addCounts, countColumns } from './counts.ts';

const OUTCOME = Object.fromEntries(outcomeCodes.map((outcome, code) => [outcome, code])) as Record<
  (typeof outcomeCodes)[number],
  number
>;
const LANE = Object.fromEntries(laneCodes.map((lane, code) => [lane, code])) as Record<
  (typeof laneCodes)[number],
  number
>;
const STARTED = keyLifeCodes.indexOf('started');
const PRUNED = keyLifeCodes.indexOf('pruned');

/*
 * The plans are known, so the planner is not asked: a queue's tables are empty at one moment and full at the next,
 * and a plan made for the one is a disaster in the other. Rows are found by index, in the order they are given.
 */
const BY_INDEX = `
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET plan_cache_mode = force_generic_plan SET jit = off`;
const HERE = 'SET search_path FROM CURRENT';

/** So many jobs can be numbered in one call. */
export const LARGEST_CALL = 65_536;

const numbering = `
  CREATE FUNCTION worker_of(p_name text) RETURNS int LANGUAGE plpgsql ${HERE} AS $$
  DECLARE found_id int;
  BEGIN
    INSERT INTO workers (name) SELECT p_name WHERE NOT EXISTS (SELECT 1 FROM workers WHERE name = p_name)
      ON CONFLICT DO NOTHING;
    SELECT id INTO found_id FROM workers WHERE name = p_name;
    RETURN found_id;
  END $$;

  CREATE FUNCTION line_of(p_queue text, p_resource text, p_lane smallint, p_priority smallint) RETURNS int
  LANGUAGE plpgsql ${HERE} AS $$
  DECLARE found_id int;
  BEGIN
    SELECT id INTO found_id FROM lines
      WHERE queue = p_queue AND resource = p_resource AND lane = p_lane AND priority = p_priority;
    IF found_id IS NULL THEN
      -- Numbers become visible in their order: whoever knows the newest knows them all.
      LOCK TABLE lines IN SHARE ROW EXCLUSIVE MODE;
      INSERT INTO lines (queue, resource, lane, priority) VALUES (p_queue, p_resource, p_lane, p_priority)
        ON CONFLICT DO NOTHING;
      SELECT id INTO found_id FROM lines
        WHERE queue = p_queue AND resource = p_resource AND lane = p_lane AND priority = p_priority;
    END IF;
    RETURN found_id;
  END $$;

  CREATE FUNCTION kind_of(p_line int, p_name text, p_retry_queue text, p_policy text) RETURNS int
  LANGUAGE plpgsql ${HERE} AS $$
  DECLARE found_id int;
  BEGIN
    FOR tries IN 1 .. 2 LOOP
      SELECT id INTO found_id FROM kinds WHERE line = p_line AND name = p_name AND md5(policy) = md5(p_policy)
        AND coalesce(retry_queue, '') = coalesce(p_retry_queue, '');
      EXIT WHEN found_id IS NOT NULL;
      INSERT INTO kinds (line, name, retry_queue, policy) VALUES (p_line, p_name, p_retry_queue, p_policy)
        ON CONFLICT DO NOTHING;
    END LOOP;
    RETURN found_id;
  END $$;
`;

const enqueue = `
  -- Who gets its key; null for whoever does, else the job that holds it.
  CREATE FUNCTION take_key(p_id uuid, p_name text, p_key text) RETURNS uuid LANGUAGE plpgsql ${HERE} AS $$
  DECLARE holder uuid;
  BEGIN
    LOOP
      -- Sent again: whatever became of it, it is not another job.
      IF EXISTS (SELECT 1 FROM live WHERE id = p_id) OR EXISTS (SELECT 1 FROM finished WHERE id = p_id) THEN
        RETURN NULL;
      END IF;
      INSERT INTO keys (name, key, job) VALUES (p_name, p_key, p_id) ON CONFLICT DO NOTHING;
      IF FOUND THEN RETURN NULL; END IF;
      SELECT job INTO holder FROM keys WHERE name = p_name AND key = p_key;
      -- It ended meanwhile.
      CONTINUE WHEN NOT FOUND;
      IF holder = p_id THEN RETURN NULL; END IF;
      -- A key that is held until the first start is given up by whoever has started.
      IF EXISTS (SELECT 1 FROM live WHERE id = holder AND runs > 0 AND key_life = ${STARTED}) THEN
        UPDATE keys SET job = p_id WHERE name = p_name AND key = p_key AND job = holder;
        CONTINUE WHEN NOT FOUND;
        RETURN NULL;
      END IF;
      RETURN holder;
    END LOOP;
  END $$;

  -- Answers only the jobs whose key was taken. p_notice is told to all who listen, once this is committed.
  CREATE FUNCTION enqueue(
    p_id uuid[], p_kind int[], p_delay bigint[], p_due bigint[], p_key_life smallint[], p_key text[], p_payload text[],
    p_notice text
  ) RETURNS TABLE (ord bigint, holder uuid) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    store_now bigint := now_ms();
    -- One number per call, and room for its jobs after it.
    first_seq bigint := nextval('acceptance') * ${LARGEST_CALL};
    refused bigint[] := '{}';
    keyed record;
    by_whom uuid;
    again record;
  BEGIN
    FOR keyed IN
      SELECT g.id, k.name, g.key, g.ord FROM unnest(p_id, p_kind, p_key) WITH ORDINALITY AS g (id, kind, key, ord)
      JOIN kinds k ON k.id = g.kind WHERE g.key IS NOT NULL ORDER BY k.name, g.key, g.ord
    LOOP
      by_whom := take_key(keyed.id, keyed.name, keyed.key);
      CONTINUE WHEN by_whom IS NULL;
      refused := refused || keyed.ord;
      ord := keyed.ord;
      holder := by_whom;
      RETURN NEXT;
    END LOOP;

    WITH added AS (
      INSERT INTO live (id, seq, enqueued_at, due_at, available_at, line, kind, runs, attempts, crashes, state, key_life,
        key, payload)
      SELECT g.id, first_seq + g.ord, store_now, g.due_at, greatest(g.due_at, store_now), k.line, g.kind, 0, 0, 0,
        CASE WHEN g.due_at > store_now THEN ${STATE.scheduled} ELSE ${STATE.ready} END, g.key_life, g.key, g.payload
      FROM (
        SELECT g.*, coalesce(g.due, store_now + g.delay) AS due_at
        FROM unnest(p_id, p_kind, p_delay, p_due, p_key_life, p_key, p_payload)
          WITH ORDINALITY AS g (id, kind, delay, due, key_life, key, payload, ord)
        WHERE refused = '{}' OR NOT g.ord = ANY (refused)
      -- LEFT: a kind that is not there must fail here, not leave its jobs out.
      ) g LEFT JOIN kinds k ON k.id = g.kind
      ON CONFLICT DO NOTHING
      RETURNING kind
    )
    INSERT INTO counts (kind, enqueued) SELECT a.kind, count(*) FROM added a GROUP BY a.kind;

    -- Sent again after it had ended. Its row had left this table before ours could come in, so by now the other table
    -- shows it, and this statement sees what the one before could not.
    FOR again IN
      DELETE FROM live USING unnest(p_id) AS g (id), finished f
      WHERE f.id = g.id AND live.id = g.id RETURNING live.kind
    LOOP
      INSERT INTO counts (kind, enqueued) VALUES (again.kind, -1);
    END LOOP;
    IF p_notice IS NOT NULL THEN PERFORM pg_notify('mulligan_' || current_schema(), p_notice); END IF;
  END $$;
`;

const claim = `
  CREATE TYPE claimed AS (
    id uuid, run int, line int, kind int, due_at bigint, seq bigint, attempts int, crashes int, available_at bigint,
    first_started_at bigint, previous_delay_ms bigint, enqueued_at bigint, last_error text, payload text
  );

  /*
   * Fills the places of a claim as store/fill.ts says it. Lines come sorted by queue, lane and priority; p_queue_of is
   * the position of a line's queue in p_queue. When there are lines newer than p_newest, nothing is taken: the caller
   * does not know all it should ask for. The last row has no id and tells, in the columns named here:
   * line: the newest there is, due_at: the store's time, available_at: when the next job falls due,
   * run: 1 when a suspect waits, payload: the paused queues as JSON.
   */
  CREATE FUNCTION claim(
    p_worker int, p_lease bigint, p_limit int,
    p_queue text[], p_share int[], p_retry int[], p_redrive int[], p_suspect int[], p_cap int[],
    p_line int[], p_queue_of int[], p_lane smallint[], p_priority smallint[], p_from_due bigint[], p_from_seq bigint[],
    p_newest int
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
    is_empty boolean[] := array_fill(false, ARRAY[cardinality(p_queue) * ${laneCodes.length}]);
    taken_before int;
    q int;
    last_row claimed;
  BEGIN
    SELECT max(id) INTO last_row.line FROM lines;
    IF last_row.line > p_newest THEN RETURN NEXT last_row; RETURN; END IF;

    -- By name, so that two claims never wait for each other's queues.
    FOR q IN SELECT position::int FROM unnest(p_queue) WITH ORDINALITY AS g (queue, position) ORDER BY g.queue LOOP
      IF p_queue[q] = ANY (paused) THEN
        FOR lane IN 1 .. ${laneCodes.length} LOOP is_empty[(q - 1) * ${laneCodes.length} + lane] := true; END LOOP;
      ELSIF p_cap[q] IS NOT NULL THEN
        -- One at a time, or two claims would fill the same room.
        PERFORM pg_advisory_xact_lock(hashtext(current_schema()), hashtext(p_queue[q]));
        SELECT greatest(0, p_cap[q] - count(*)) INTO got
          FROM live JOIN lines ON lines.id = live.line
          WHERE live.worker IS NOT NULL AND lines.queue = p_queue[q]
            AND lines.lane IN (${LANE.retry}, ${LANE.suspect});
        retry_room[q] := got;
      END IF;
    END LOOP;
    store_now := now_ms();

    <<turns>>
    FOR turn IN 1 .. 2 LOOP
      FOR q IN 1 .. cardinality(p_queue) LOOP
        EXIT turns WHEN places <= 0;
        room := CASE turn WHEN 1 THEN least(places, p_share[q]) ELSE places END;
        FOR step IN 1 .. 8 LOOP
          EXIT WHEN room <= 0;
          step_lane := CASE step
            WHEN 1 THEN ${LANE.suspect} WHEN 2 THEN ${LANE.retry} WHEN 3 THEN ${LANE.redrive}
            WHEN 4 THEN ${LANE.retry} WHEN 5 THEN ${LANE.redrive}
            WHEN 6 THEN ${LANE.fresh} WHEN 7 THEN ${LANE.retry} ELSE ${LANE.redrive} END;
          wanted := least(room, CASE step
            WHEN 1 THEN for_suspect[q] WHEN 2 THEN for_retry[q] WHEN 3 THEN for_redrive[q]
            -- What the one lane leaves, the other may borrow.
            WHEN 4 THEN CASE WHEN is_empty[(q - 1) * ${laneCodes.length} + ${LANE.redrive + 1}] THEN for_redrive[q] ELSE 0 END
            WHEN 5 THEN CASE WHEN is_empty[(q - 1) * ${laneCodes.length} + ${LANE.retry + 1}] THEN for_retry[q] ELSE 0 END
            ELSE room END);
          CONTINUE WHEN wanted <= 0 OR is_empty[(q - 1) * ${laneCodes.length} + step_lane + 1];

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
              -- Lines that share a priority, in due order, from the places where each line was left.
              RETURN QUERY
              WITH picked AS MATERIALIZED (
                SELECT next.id
                FROM unnest(p_line[first_line:last_line], p_from_due[first_line:last_line],
                  p_from_seq[first_line:last_line]) AS l (line, due, seq)
                CROSS JOIN LATERAL (
                  SELECT w.id, w.due_at, w.seq FROM live w
                  WHERE w.line = l.line AND w.worker IS NULL AND (w.due_at, w.seq) > (l.due, l.seq)
                    AND w.due_at <= store_now
                  ORDER BY w.due_at, w.seq LIMIT got FOR UPDATE SKIP LOCKED
                ) next
                ORDER BY next.due_at, next.seq LIMIT got
              ), taken AS (
                UPDATE live SET runs = live.runs + 1, attempts = live.attempts + 1, worker = p_worker,
                  claimed_at = store_now, lease_ends_at = store_now + p_lease,
                  first_started_at = coalesce(live.first_started_at, store_now)
                FROM picked WHERE live.id = picked.id
                RETURNING live.id, live.runs, live.line, live.kind, live.due_at, live.seq, live.attempts, live.crashes,
                  live.available_at, live.first_started_at, live.previous_delay_ms, live.enqueued_at, live.last_error,
                  live.payload
              )
              SELECT * FROM taken t ORDER BY t.due_at, t.seq;
              GET DIAGNOSTICS got = ROW_COUNT;
              places := places - got;
              IF step_lane IN (${LANE.retry}, ${LANE.suspect}) THEN retry_room[q] := retry_room[q] - got; END IF;
            END IF;
            first_line := last_line + 1;
          END LOOP;
          got := taken_before - places;
          IF got < wanted THEN is_empty[(q - 1) * ${laneCodes.length} + step_lane + 1] := true; END IF;
          room := room - got;
          IF step = 1 THEN for_suspect[q] := for_suspect[q] - got;
          ELSIF step IN (2, 5) THEN for_retry[q] := for_retry[q] - got;
          ELSIF step IN (3, 4) THEN for_redrive[q] := for_redrive[q] - got;
          END IF;
        END LOOP;
      END LOOP;
    END LOOP;

    last_row.due_at := store_now;
    last_row.payload := array_to_json(paused);
    FOR i IN 1 .. lines_count LOOP
      CONTINUE WHEN p_queue[p_queue_of[i]] = ANY (paused);
      IF places > 0 THEN
        last_row.available_at := least(last_row.available_at,
          (SELECT w.due_at FROM live w WHERE w.line = p_line[i] AND w.worker IS NULL AND w.due_at > store_now
           ORDER BY w.due_at LIMIT 1));
      END IF;
      IF p_lane[i] = ${LANE.suspect} AND EXISTS (
        SELECT 1 FROM live w WHERE w.line = p_line[i] AND w.worker IS NULL AND w.due_at <= store_now)
      THEN last_row.run := 1; END IF;
    END LOOP;
    RETURN NEXT last_row;
  END $$;

  -- Jobs whose lease has run out, from the place where the last look ended. The last row only tells the store's time.
  CREATE FUNCTION expired(p_limit int, p_from bigint, OUT job claimed, OUT worker int, OUT claimed_at bigint,
    OUT lease_ends_at bigint, OUT cancel_requested boolean)
  RETURNS SETOF record LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    store_now bigint := now_ms();
    pardoned_until bigint;
  BEGIN
    UPDATE rescues SET looked_at = store_now RETURNING none_until INTO pardoned_until;
    IF store_now >= pardoned_until THEN
      RETURN QUERY
      SELECT (l.id, l.runs, l.line, l.kind, l.due_at, l.seq, l.attempts, l.crashes, l.available_at, l.first_started_at,
        l.previous_delay_ms, l.enqueued_at, l.last_error, l.payload)::claimed, l.worker, l.claimed_at, l.lease_ends_at,
        l.cancel_requested
      FROM live l
      WHERE l.worker IS NOT NULL AND l.lease_ends_at <= store_now AND l.lease_ends_at > p_from
      ORDER BY l.lease_ends_at, l.seq LIMIT p_limit;
    END IF;
    RETURN QUERY SELECT NULL::claimed, NULL::int, store_now, NULL::bigint, NULL::boolean;
  END $$;
`;

const pardon = `
  -- The store was away for this long, so nobody could extend a lease: for one more lease, none counts as expired. Unless
  -- somebody looked meanwhile: then it was only the caller that was cut off.
  CREATE FUNCTION pardon(p_away bigint, p_lease bigint) RETURNS void LANGUAGE plpgsql ${HERE} AS $$
  BEGIN
    UPDATE rescues SET none_until = greatest(none_until, now_ms() + p_lease) WHERE looked_at < now_ms() - p_away;
  END $$;
`;

const FENCE = 'l.id = g.id AND l.runs = g.run AND l.worker = g.worker';
/** In a storm all errors are alike, so texts are sent once, and pointed at by position. */
const GIVEN = `
  SELECT g.id, g.run, g.worker, g.outcome, g.state, g.counted, g.delay, g.line, g.backoff, g.reason,
    p_errors[g.error] AS error, p_decisions[g.decision] AS decision, g.started, g.ended, g.ord
  FROM unnest(p_id, p_run, p_worker, p_outcome, p_state, p_counted, p_delay, p_line, p_backoff, p_reason, p_error,
    p_decision, p_started, p_ended) WITH ORDINALITY AS g (id, run, worker, outcome, state, counted, delay, line, backoff,
    reason, error, decision, started, ended, ord)`;
/** A crash is only believed while the lease is over: a worker that came back in time keeps its run. */
const BELIEVED = `(g.outcome <> ${OUTCOME.crashed} OR l.lease_ends_at <= store_now)`;

/** Ends runs: the row leaves `live` for `finished`, and takes its last run along. */
const end = (given: string, condition: string, state = 'g.state', reason = 'g.reason'): string => `
    WITH gone AS (
      -- OFFSET 0 keeps what is given in one piece: each row of it is looked up, in its order.
      DELETE FROM live l USING (${given} OFFSET 0) g
      WHERE ${FENCE} AND ${condition}
      RETURNING g.ord, g.outcome, g.counted, g.worker, g.started, g.ended, g.decision, g.error, ${state} AS state,
        ${reason} AS dead_reason, l.attempts AS attempt, l.id, l.seq, l.enqueued_at, l.due_at, l.available_at, l.line, l.kind,
        l.runs, l.crashes, l.first_started_at, l.previous_delay_ms, l.key_life, l.key, l.last_error, l.progress, l.payload
    ), kept AS (
      INSERT INTO finished (id, seq, finished_at, enqueued_at, due_at, available_at, line, kind, runs, attempts, crashes,
        state, dead_reason, first_started_at, previous_delay_ms, outcome, attempt, counted, failed, worker, started_at,
        ended_at, decision, key_life, key, last_error, progress, payload)
      SELECT id, seq, store_now, enqueued_at, due_at, available_at, line, kind, runs,
        CASE WHEN counted THEN attempt ELSE attempt - 1 END,
        CASE outcome WHEN ${OUTCOME.crashed} THEN crashes + 1 ELSE crashes END,
        state, dead_reason, first_started_at, previous_delay_ms, outcome, attempt, counted, error IS NOT NULL, worker,
        started, ended, decision, key_life, key, coalesce(error, last_error), progress, payload
      FROM gone
    ), freed AS (
      DELETE FROM keys USING gone WHERE gone.key IS NOT NULL AND gone.key_life <> ${PRUNED} AND keys.job = gone.id
    ), added AS (
      ${addCounts('gone')}
    )
    SELECT array_agg(gone.ord) INTO just_landed FROM gone;`;

/** Runs that all completed, under one worker: what a settlement nearly always is. */
const COMPLETIONS = `
  SELECT g.id, g.run, p_worker AS worker, ${OUTCOME.completed}::smallint AS outcome, ${STATE.completed}::smallint AS state,
    true AS counted, NULL::smallint AS reason, NULL::text AS error, p_decision AS decision, g.started, g.ended, g.ord
  FROM unnest(p_id, p_run, p_started, p_ended) WITH ORDINALITY AS g (id, run, started, ended, ord)`;

const settle = `
  -- Answers the positions of those that landed; null when all did.
  CREATE FUNCTION complete(p_id uuid[], p_run int[], p_worker int, p_decision text, p_started bigint[], p_ended bigint[])
  RETURNS bigint[] LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    store_now bigint := now_ms();
    just_landed bigint[];
  BEGIN
    ${end(COMPLETIONS, 'true')}
    IF cardinality(just_landed) = cardinality(p_id) THEN RETURN NULL; END IF;
    RETURN coalesce(just_landed, '{}');
  END $$;

  -- Answers only what did not simply land: 1 for a job that a cancel ended instead, 2 for a stale settlement.
  CREATE FUNCTION settle(
    p_id uuid[], p_run int[], p_worker int[], p_outcome smallint[], p_state smallint[], p_counted boolean[],
    p_delay bigint[], p_line int[], p_backoff bigint[], p_reason smallint[], p_error int[], p_decision int[],
    p_started bigint[], p_ended bigint[], p_errors text[], p_decisions text[]
  ) RETURNS TABLE (at bigint, answer int) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    store_now bigint := now_ms();
    landed bigint[] := '{}';
    just_landed bigint[];
    cancelled bigint[] := '{}';
    late record;
  BEGIN
    -- What ends and what waits is written one after the other; locked it is in the order of ids, as by everybody else.
    PERFORM 1 FROM unnest(p_id) AS g (id) JOIN live l ON l.id = g.id FOR UPDATE OF l;
    ${end(`${GIVEN} WHERE g.delay IS NULL`, BELIEVED)}
    landed := landed || coalesce(just_landed, '{}');

    IF cardinality(landed) < cardinality(p_id) THEN
      WITH put AS (
        UPDATE live l SET
          state = g.state,
          attempts = CASE WHEN g.counted THEN l.attempts ELSE l.attempts - 1 END,
          crashes = CASE g.outcome WHEN ${OUTCOME.crashed} THEN l.crashes + 1 ELSE l.crashes END,
          -- A job handed back for now keeps its place in the line.
          due_at = CASE g.state WHEN ${STATE.ready} THEN l.due_at ELSE store_now + g.delay END,
          line = g.line,
          previous_delay_ms = coalesce(g.backoff, l.previous_delay_ms),
          last_error = coalesce(g.error, l.last_error),
          worker = NULL, lease_ends_at = NULL
        FROM (${GIVEN} WHERE g.delay IS NOT NULL OFFSET 0) g
        WHERE ${FENCE} AND ${BELIEVED} AND NOT l.cancel_requested
        RETURNING g.ord, l.id, g.run, g.outcome, g.counted, g.worker, g.started, g.ended, store_now + g.delay AS next,
          g.decision, g.error, CASE WHEN g.counted THEN l.attempts ELSE l.attempts + 1 END AS attempt,
          l.kind, NULL::smallint AS dead_reason, l.state
      ), kept AS (
        INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision, error)
        SELECT id, run, attempt, outcome, counted, worker, started, ended, next, decision, error FROM put
      ), added AS (
        ${addCounts('put')}
      )
      SELECT array_agg(put.ord) INTO just_landed FROM put;
      landed := landed || coalesce(just_landed, '{}');
    END IF;

    IF cardinality(landed) < cardinality(p_id) THEN
      -- Perhaps only because a cancel has come in meanwhile.
      ${end(`${GIVEN} WHERE g.delay IS NOT NULL`, `${BELIEVED} AND l.cancel_requested`, `${STATE.cancelled}::smallint`, 'NULL::smallint')}
      cancelled := coalesce(just_landed, '{}');
      FOR late IN ${GIVEN} WHERE NOT g.ord = ANY (landed) LOOP
        at := late.ord;
        IF late.ord = ANY (cancelled) THEN
          answer := 1;
          RETURN NEXT;
        ELSIF late.outcome = ${OUTCOME.crashed} OR NOT (
          EXISTS (SELECT 1 FROM finished f WHERE f.id = late.id AND f.runs = late.run AND f.worker = late.worker
                  AND f.outcome = late.outcome)
          OR EXISTS (SELECT 1 FROM runs r WHERE r.job = late.id AND r.run = late.run AND r.worker = late.worker
                     AND r.outcome = late.outcome)) THEN
          answer := 2;
          RETURN NEXT;
        END IF;
      END LOOP;
    END IF;
  END $$;
`;

const heartbeat = `
  CREATE FUNCTION heartbeat(p_id uuid[], p_run int[], p_worker int[], p_lease bigint[], p_progress text[])
  RETURNS TABLE (ord bigint, lease_ends_at bigint, cancel_requested boolean) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE store_now bigint := now_ms();
  BEGIN
    RETURN QUERY
    UPDATE live l SET lease_ends_at = store_now + g.lease, progress = coalesce(g.progress, l.progress)
    FROM unnest(p_id, p_run, p_worker, p_lease, p_progress) WITH ORDINALITY AS g (id, run, worker, lease, progress, ord)
    WHERE ${FENCE}
    RETURNING g.ord, l.lease_ends_at, l.cancel_requested;
  END $$;

  -- The first result stored under a key stays. False when the lease was lost.
  CREATE FUNCTION remember(p_id uuid, p_run int, p_worker int, p_key text, p_value text) RETURNS boolean
  LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  BEGIN
    PERFORM 1 FROM live WHERE id = p_id AND runs = p_run AND worker = p_worker FOR UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
    INSERT INTO memos (job, key, value) VALUES (p_id, p_key, p_value) ON CONFLICT DO NOTHING;
    RETURN true;
  END $$;
`;

const operate = `
  -- One job. Answers what became of it: cancelled, cancelling, already-ended or not-found.
  CREATE FUNCTION cancel(p_id uuid) RETURNS text LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE ended live;
  BEGIN
    SELECT * INTO ended FROM live WHERE id = p_id FOR UPDATE;
    IF NOT FOUND THEN
      IF EXISTS (SELECT 1 FROM finished WHERE id = p_id) THEN RETURN 'already-ended'; END IF;
      -- It may have been brought back between these two looks.
      IF EXISTS (SELECT 1 FROM live WHERE id = p_id) THEN RETURN cancel(p_id); END IF;
      RETURN 'not-found';
    END IF;
    IF ended.worker IS NOT NULL THEN
      UPDATE live SET cancel_requested = true WHERE id = p_id;
      RETURN 'cancelling';
    END IF;
    DELETE FROM live WHERE id = p_id;
    INSERT INTO finished (id, seq, finished_at, enqueued_at, due_at, available_at, line, kind, runs, attempts, crashes,
      state, first_started_at, previous_delay_ms, key_life, key, last_error, progress, payload)
    VALUES (ended.id, ended.seq, now_ms(), ended.enqueued_at, ended.due_at, ended.available_at, ended.line, ended.kind, ended.runs,
      ended.attempts, ended.crashes, ${STATE.cancelled}, ended.first_started_at, ended.previous_delay_ms, ended.key_life,
      ended.key, ended.last_error, ended.progress, ended.payload);
    IF ended.key IS NOT NULL AND ended.key_life <> ${PRUNED} THEN DELETE FROM keys WHERE job = p_id; END IF;
    INSERT INTO counts (kind, now_cancelled) VALUES (ended.kind, 1);
    RETURN 'cancelled';
  END $$;

  -- Dead jobs by any of these conditions, longest dead first. Each that is found is locked.
  CREATE FUNCTION dead(p_ids uuid[], p_name text, p_queue text, p_reason smallint, p_limit bigint)
  RETURNS SETOF finished LANGUAGE plpgsql ${HERE} SET enable_seqscan = off AS $$
  BEGIN
    RETURN QUERY SELECT f.* FROM finished f
    WHERE f.state = ${STATE.dead}
      AND (p_ids IS NULL OR f.id = ANY (p_ids))
      AND (p_name IS NULL OR f.kind IN (SELECT id FROM kinds WHERE name = p_name))
      AND (p_queue IS NULL OR f.line IN (SELECT id FROM lines WHERE queue = p_queue))
      AND (p_reason IS NULL OR f.dead_reason = p_reason)
    ORDER BY f.finished_at, f.seq LIMIT p_limit FOR UPDATE;
  END $$;

  -- Answers each job with why it was refused, or null when it waits again (or would, in a dry run).
  CREATE FUNCTION redrive(
    p_ids uuid[], p_name text, p_queue text, p_reason smallint, p_limit bigint, p_reset boolean, p_dry_run boolean
  ) RETURNS TABLE (job_id uuid, why text) LANGUAGE plpgsql ${HERE} SET enable_seqscan = off AS $$
  DECLARE
    store_now bigint := now_ms();
    job finished;
    kind kinds;
    policy jsonb;
    holder uuid;
    promised text[] := '{}';
    home_line lines;
  BEGIN
    FOR job IN SELECT * FROM dead(p_ids, p_name, p_queue, p_reason, p_limit) LOOP
      SELECT * INTO kind FROM kinds WHERE kinds.id = job.kind;
      policy := kind.policy::jsonb;
      job_id := job.id;
      why := NULL;
      IF NOT p_reset AND (job.attempts >= (policy->>'maxAttempts')::int OR job.crashes >= (policy->>'maxCrashes')::int)
      THEN
        why := 'nothing-left';
      ELSIF job.key IS NOT NULL AND job.key_life <> ${STARTED} THEN
        SELECT keys.job INTO holder FROM keys WHERE keys.name = kind.name AND keys.key = job.key;
        IF (FOUND AND holder <> job.id) OR kind.name || ' ' || job.key = ANY (promised) THEN
          why := 'key-taken';
        ELSE
          promised := promised || (kind.name || ' ' || job.key);
        END IF;
      END IF;
      IF why IS NULL AND NOT p_dry_run THEN
        IF job.key IS NOT NULL AND job.key_life <> ${STARTED} THEN
          INSERT INTO keys (name, key, job) VALUES (kind.name, job.key, job.id) ON CONFLICT DO NOTHING;
          -- Somebody was quicker.
          SELECT keys.job INTO holder FROM keys WHERE keys.name = kind.name AND keys.key = job.key;
          IF holder IS DISTINCT FROM job.id THEN
            why := 'key-taken';
            RETURN NEXT;
            CONTINUE;
          END IF;
        END IF;
        INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision, error)
          SELECT job.id, job.runs, job.attempt, job.outcome, job.counted, job.worker, job.started_at, job.ended_at,
            NULL, job.decision, CASE WHEN job.failed THEN job.last_error END
          WHERE job.outcome IS NOT NULL;
        SELECT * INTO home_line FROM lines WHERE lines.id = kind.line;
        DELETE FROM finished WHERE finished.id = job.id;
        INSERT INTO live (id, seq, enqueued_at, due_at, available_at, line, kind, runs, attempts, crashes, state, key_life,
          first_started_at, previous_delay_ms, key, last_error, progress, payload)
        VALUES (job.id, job.seq, job.enqueued_at, store_now, store_now,
          line_of(home_line.queue, home_line.resource, ${LANE.redrive}::smallint, home_line.priority), job.kind,
          job.runs, CASE WHEN p_reset THEN 0 ELSE job.attempts END, CASE WHEN p_reset THEN 0 ELSE job.crashes END,
          ${STATE.ready}, job.key_life,
          CASE WHEN NOT p_reset THEN job.first_started_at END, CASE WHEN NOT p_reset THEN job.previous_delay_ms END,
          job.key, job.last_error, job.progress, job.payload);
        INSERT INTO counts (kind, now_dead) VALUES (job.kind, -1);
      END IF;
      RETURN NEXT;
    END LOOP;
  END $$;

  -- Deletes finished jobs with all that was kept of them.
  CREATE FUNCTION forget(p_ids uuid[]) RETURNS void LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  BEGIN
    WITH gone AS (DELETE FROM finished f USING unnest(p_ids) AS g (id) WHERE f.id = g.id RETURNING f.kind, f.state)
    INSERT INTO counts (kind, now_completed, now_dead, now_cancelled)
    SELECT kind, -count(*) FILTER (WHERE state = ${STATE.completed}), -count(*) FILTER (WHERE state = ${STATE.dead}),
      -count(*) FILTER (WHERE state = ${STATE.cancelled})
    FROM gone GROUP BY kind;
    DELETE FROM runs r USING unnest(p_ids) AS g (id) WHERE r.job = g.id;
    DELETE FROM memos m USING unnest(p_ids) AS g (id) WHERE m.job = g.id;
    DELETE FROM keys k USING unnest(p_ids) AS g (id) WHERE k.job = g.id;
  END $$;

  CREATE FUNCTION discard(p_ids uuid[], p_name text, p_queue text, p_reason smallint, p_limit bigint)
  RETURNS SETOF uuid LANGUAGE plpgsql ${HERE} AS $$
  DECLARE chosen uuid[] := ARRAY (SELECT id FROM dead(p_ids, p_name, p_queue, p_reason, p_limit));
  BEGIN
    PERFORM forget(chosen);
    RETURN QUERY SELECT unnest(chosen);
  END $$;

  -- Up to p_limit jobs of a state that ended at or before this time, from the place where the last look ended.
  CREATE FUNCTION prune(p_state smallint, p_from bigint, p_keep bigint, p_limit int, OUT pruned int, OUT until bigint)
  LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE chosen uuid[];
  BEGIN
    SELECT array_agg(old.id), max(old.finished_at) INTO chosen, until FROM (
      SELECT f.id, f.finished_at FROM finished f
      WHERE f.state = p_state AND f.finished_at >= p_from AND f.finished_at <= now_ms() - p_keep
      ORDER BY f.finished_at LIMIT p_limit FOR UPDATE SKIP LOCKED) old;
    pruned := coalesce(cardinality(chosen), 0);
    IF pruned > 0 THEN PERFORM forget(chosen); END IF;
  END $$;

  -- Adds up what transactions have counted. Whoever finds another at it leaves it to that one.
  CREATE FUNCTION fold_counts() RETURNS void LANGUAGE plpgsql ${HERE} AS $$
  BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext(current_schema()), hashtext('mulligan: counts')) THEN RETURN; END IF;
    WITH gone AS (DELETE FROM counts RETURNING *)
    INSERT INTO counts (kind, ${countColumns.join(', ')})
    SELECT kind, ${countColumns.map((column) => `sum(${column})`).join(', ')}
    FROM gone GROUP BY kind;
  END $$;
`;

export const functions: string = [numbering, enqueue, claim, pardon, settle, heartbeat, operate].join('\n');
