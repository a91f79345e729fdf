import { OPERATIONS_KEPT_MS, RESUMED_WITHIN_MS } from '../../change.ts';
import { STATE } from '../../codes.ts';
import {
  BY_INDEX,
  CHECK_IDENTITY,
  FOR_GOOD,
  HERE,
  isLimited,
  LANE,
  limitedUnder,
  lookUp,
  STARTED,
  WINDOW,
} from './shared.ts';

/*
 * Bulk actions. The process selects the jobs of the next part and names them here; `change` takes each that is still as it
 * was selected, and moves the operation on in the same transaction. When another call has moved it on meanwhile (another
 * process, or this call itself, whose answer was lost), nothing is changed.
 */

/** The jobs of p_ids that the operation concerns, in their order. */
const GIVEN = 'unnest(p_ids) WITH ORDINALITY AS g (id, ord)';

/** The names (0) or the keys (1) of the limits of a job, as JSON. Each part of the text stays as it was written. */
const listed = (part: 0 | 1): string =>
  `(SELECT '[' || string_agg((l.one -> ${part})::text, ',' ORDER BY l.ord) || ']'
              FROM json_array_elements(job.limits::json) WITH ORDINALITY AS l (one, ord))`;

export const changeSql: string = `
  -- The unfinished operation of the same order, or a new one.
  CREATE FUNCTION begin_operation(p_id uuid, p_action text, p_request text, p_by text, p_selection text, p_options text)
  RETURNS SETOF operations LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE store_now bigint := now_ms();
  BEGIN
    RETURN QUERY SELECT * FROM operations o WHERE o.id = p_id;
    IF FOUND THEN RETURN; END IF;
    UPDATE operations o SET state = 'stopped', note = 'not continued for a day', ended_at = store_now, updated_at = store_now
    WHERE o.action = p_action AND md5(o.request) = md5(p_request) AND o.ended_at IS NULL
      AND o.updated_at <= store_now - ${RESUMED_WITHIN_MS};
    INSERT INTO operations
      (id, action, by, request, selection, state, started_at, updated_at, changed, skipped, canary, next_due_at, options)
    VALUES (p_id, p_action, p_by, p_request, p_selection, 'running', store_now, store_now, 0, 0, '{}', 0, p_options)
    ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT * FROM operations o WHERE o.action = p_action AND md5(o.request) = md5(p_request) AND o.ended_at IS NULL;
  END $$;

  CREATE FUNCTION stop_operation(p_id uuid, p_note text) RETURNS SETOF operations LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE store_now bigint := now_ms();
  BEGIN
    UPDATE operations SET state = 'stopped', note = p_note, ended_at = store_now, updated_at = store_now
    WHERE operations.id = p_id AND operations.state <> 'stopped';
    RETURN QUERY SELECT * FROM operations o WHERE o.id = p_id;
  END $$;

  -- An order that this transaction carries out; nothing when p_id is null.
  CREATE FUNCTION record_order(p_id uuid, p_action text, p_by text, p_selection text, p_note text, p_changed bigint)
  RETURNS void LANGUAGE plpgsql ${HERE} AS $$
  DECLARE store_now bigint := now_ms();
  BEGIN
    IF p_id IS NULL THEN RETURN; END IF;
    INSERT INTO operations
      (id, action, by, request, selection, state, started_at, updated_at, ended_at, changed, skipped, canary, note, next_due_at)
    VALUES (p_id, p_action, p_by, p_id::text, p_selection, 'done', store_now, store_now, store_now, p_changed, 0, '{}', p_note, 0)
    ON CONFLICT (id) DO NOTHING;
  END $$;

  CREATE FUNCTION prune_operations() RETURNS void LANGUAGE plpgsql ${HERE} AS $$
  BEGIN
    DELETE FROM operations WHERE updated_at <= now_ms() - ${OPERATIONS_KEPT_MS};
  END $$;

  -- Brings a dead job back, due at p_due. Null, or why not.
  CREATE FUNCTION redrive(job finished, job_type job_types, p_home bigint, p_due bigint, p_reset boolean, p_payload text)
  RETURNS text LANGUAGE plpgsql AS $$
  DECLARE
    store_now bigint := now_ms();
    holder uuid;
  BEGIN
    IF NOT p_reset AND (job.attempts >= (job_type.policy::jsonb->>'maxAttempts')::bigint
      OR job.crashes >= (job_type.policy::jsonb->>'maxCrashes')::bigint) THEN
      RETURN 'nothing-left';
    END IF;
    IF job.key IS NOT NULL AND job.key_life NOT IN (${STARTED}, ${WINDOW}) THEN
      -- A key that is held until the first start is given up by a job that has started.
      DELETE FROM keys k USING live h
      WHERE k.name = job_type.name AND k.key = job.key AND h.id = k.job AND h.runs > 0 AND h.key_life = ${STARTED};
      DELETE FROM keys k WHERE k.name = job_type.name AND k.key = job.key AND k.held_until <= store_now;
      INSERT INTO keys (name, key, job) VALUES (job_type.name, job.key, job.id) ON CONFLICT DO NOTHING;
      SELECT keys.job INTO holder FROM keys WHERE keys.name = job_type.name AND keys.key = job.key;
      IF holder IS DISTINCT FROM job.id THEN RETURN 'key-taken'; END IF;
    END IF;
    INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision, error, settled_at)
      SELECT job.id, job.runs, job.attempt, job.outcome, job.counted, job.worker, job.started_at, job.ended_at,
        NULL, job.decision, CASE WHEN job.failed THEN job.last_error END, job.finished_at
      WHERE job.outcome IS NOT NULL;
    DELETE FROM finished WHERE finished.id = job.id;
    INSERT INTO live (id, seq, enqueued_at, due_at, available_at, partition, job_type, payload_bytes, runs, attempts,
      crashes, state, key_life, first_started_at, previous_delay_ms, key, last_error, fingerprint, tags, limits, trace, progress, spent_at,
      spent_count, payload)
    VALUES (job.id, job.seq, job.enqueued_at, p_due, p_due, p_home, job.job_type,
      CASE WHEN p_payload IS NULL THEN job.payload_bytes ELSE octet_length(p_payload) END, job.runs,
      CASE WHEN p_reset THEN 0 ELSE job.attempts END, CASE WHEN p_reset THEN 0 ELSE job.crashes END,
      CASE WHEN p_due > store_now THEN ${STATE.scheduled} ELSE ${STATE.ready} END, job.key_life,
      NULL, CASE WHEN NOT p_reset THEN job.previous_delay_ms END,
      job.key, job.last_error, job.fingerprint, job.tags, job.limits, job.trace, job.progress, CASE WHEN NOT p_reset THEN job.spent_at END,
      CASE WHEN NOT p_reset THEN job.spent_count END, coalesce(p_payload, job.payload));
    RETURN NULL;
  END $$;

  -- The partitions in which these jobs wait, of those that may be parked.
  CREATE FUNCTION crowded_homes(p_ids uuid[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
  BEGIN
    RETURN ARRAY (
      SELECT DISTINCT l.partition FROM ${GIVEN} JOIN live l ON ${lookUp('l.id', 'g.id')}
        JOIN partitions p ON ${lookUp('p.id', 'l.partition')}
      WHERE (p.resource <> '' OR ${isLimited('p.queue')}) AND l.worker IS NULL ORDER BY 1);
  END $$;

  -- Lets those of these jobs start now that have not started since p_since: a waiting one is due, of a running one the next wait ends.
  -- Due times lie p_interval apart, from p_next on. Answers each job, whether it is due sooner than before, and when the next one would be due.
  CREATE FUNCTION run_now(p_ids uuid[], p_since bigint, p_next double precision, p_interval double precision)
  RETURNS TABLE (id uuid, is_taken boolean, next_due double precision) LANGUAGE plpgsql AS $$
  #variable_conflict use_column
  DECLARE
    store_now bigint := now_ms();
    due bigint;
    one record;
  BEGIN
    next_due := p_next;
    PERFORM 1 FROM ${GIVEN} JOIN live l ON ${lookUp('l.id', 'g.id')} ORDER BY l.id FOR UPDATE OF l;
    FOR one IN
      SELECT l.id, l.worker FROM ${GIVEN} JOIN live l ON ${lookUp('l.id', 'g.id')}
      WHERE (l.worker IS NOT NULL OR l.due_at > store_now) AND NOT l.cancel_requested
        AND (l.claimed_at IS NULL OR l.claimed_at <= p_since)
      ORDER BY g.ord
    LOOP
      next_due := greatest(store_now, next_due);
      due := CASE WHEN p_interval = 0 THEN store_now ELSE floor(next_due) END;
      next_due := next_due + p_interval;
      IF one.worker IS NULL THEN
        UPDATE live l SET due_at = due, available_at = least(l.available_at, due) WHERE l.id = one.id AND due < l.due_at;
      ELSE
        UPDATE live l SET run_now_at = CASE WHEN l.run_now_at >= l.claimed_at THEN least(l.run_now_at, due) ELSE due END
        WHERE l.id = one.id;
      END IF;
      id := one.id;
      is_taken := FOUND;
      RETURN NEXT;
    END LOOP;
  END $$;

  /*
   * In a caller's transaction: lets these jobs start now, and leaves a record of an operation that is done. Answers each of them, and first
   * a row without a job, with the time; or that row alone, with the partitions to be admitted outside (is_admitted) before it is called
   * again. p_notice is sent to all who listen, once this is committed.
   */
  CREATE FUNCTION run_now_inside(p_identity uuid, p_operation uuid, p_request text, p_by text, p_selection text, p_options text, p_ids uuid[],
    p_admitted boolean, p_notice text)
  RETURNS TABLE (job uuid, at bigint, parked text) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    homes bigint[] := crowded_homes(p_ids);
    taken uuid[];
  BEGIN
    ${CHECK_IDENTITY}
    at := now_ms();
    IF homes <> '{}' AND NOT is_admitted(homes, p_admitted) THEN
      parked := homes::text;
      RETURN NEXT;
      RETURN;
    END IF;
    RETURN NEXT;
    -- Also those that start before the commit: they cannot see what this transaction has written. Jobs that are due are locked until then.
    taken := ARRAY (SELECT r.id FROM run_now(p_ids, ${FOR_GOOD}, 0, 0) r WHERE r.is_taken);
    INSERT INTO operations
      (id, action, by, request, selection, state, started_at, updated_at, ended_at, changed, skipped, canary, next_due_at, options)
    VALUES (p_operation, 'runNow', p_by, p_request, p_selection, 'done', at, at, at, cardinality(taken), 0, '{}', 0, p_options);
    IF p_notice IS NOT NULL THEN PERFORM pg_notify('mulligan_' || current_schema(), p_notice); END IF;
    RETURN QUERY SELECT t.id, NULL::bigint, NULL::text FROM unnest(taken) AS t (id);
  END $$;

  /*
   * Answers each job that was looked at with why it was skipped, null, or 'cancelling' when it was told to stop; or a row without a job when the operation is not
   * where p_from says. p_to is where it is afterwards, p_is_end whether it is done then.
   */
  CREATE FUNCTION change(
    p_operation uuid, p_action text, p_from text, p_to text, p_is_end boolean, p_ids uuid[], p_interval double precision,
    p_reset boolean, p_canary int, p_payload text, p_options text
  ) RETURNS TABLE (job_id uuid, why text) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    store_now bigint := now_ms();
    operation operations;
    job finished;
    job_type job_types;
    home bigint;
    home_of text;
    redriven int[] := '{}';
    next_due double precision;
    due bigint;
    taken uuid[] := '{}';
    told uuid[] := '{}';
    answer text;
    passed int := 0;
    one record;
  BEGIN
    SELECT * INTO operation FROM operations WHERE id = p_operation FOR UPDATE;
    IF NOT FOUND OR operation.ended_at IS NOT NULL OR operation.cursor IS DISTINCT FROM p_from THEN
      RETURN NEXT;
      RETURN;
    END IF;
    next_due := operation.next_due_at;

    IF p_action = 'discard' THEN
      taken := ARRAY (
        SELECT f.id FROM ${GIVEN} JOIN finished f ON ${lookUp('f.id', 'g.id')}
        WHERE f.state = ${STATE.dead} AND f.finished_at <= operation.started_at ORDER BY f.id FOR UPDATE OF f);
      IF cardinality(taken) > 0 THEN PERFORM forget(taken); END IF;

    ELSIF p_action = 'cancel' THEN
      FOR one IN SELECT g.id FROM ${GIVEN} ORDER BY g.id LOOP
        answer := cancel(one.id);
        IF answer IN ('cancelled', 'cancelling') THEN taken := taken || one.id; END IF;
        IF answer = 'cancelling' THEN told := told || one.id; END IF;
      END LOOP;

    ELSIF p_action = 'runNow' THEN
      PERFORM admit(crowded_homes(p_ids));
      FOR one IN SELECT * FROM run_now(p_ids, operation.started_at, next_due, p_interval) LOOP
        next_due := one.next_due;
        IF one.is_taken THEN
          taken := taken || one.id;
        ELSE
          job_id := one.id;
          why := 'due-sooner';
          passed := passed + 1;
          RETURN NEXT;
        END IF;
      END LOOP;

    ELSIF p_action = 'redrive' THEN
      PERFORM 1 FROM ${GIVEN} JOIN finished f ON ${lookUp('f.id', 'g.id')} ORDER BY f.id FOR UPDATE OF f;
      FOR job IN
        SELECT f.* FROM ${GIVEN} JOIN finished f ON ${lookUp('f.id', 'g.id')}
        WHERE f.state = ${STATE.dead} AND f.finished_at <= operation.started_at ORDER BY g.ord
      LOOP
        IF job_type.id IS DISTINCT FROM job.job_type THEN
          SELECT * INTO job_type FROM job_types t WHERE t.id = job.job_type;
        END IF;
        IF home_of IS DISTINCT FROM json_build_array(job.job_type, job.priority, job.resource, job.limits)::text THEN
          LOOP
            SELECT p.id INTO home FROM partitions_of(
              ARRAY[CASE WHEN job.limits IS NULL THEN job_type.queue ELSE ${limitedUnder('job_type.queue', listed(0))} END],
              ARRAY[${LANE.redrive}]::smallint[], ARRAY[job.priority], ARRAY[job.resource],
              ARRAY[CASE WHEN job.limits IS NULL THEN job_type.name ELSE job_type.name || E'\\x01' || ${listed(1)} END]) p;
            -- One that is deleted between these two looks is made again.
            EXIT WHEN home IS NOT NULL AND ((job.resource = '' AND job.limits IS NULL) OR admit(ARRAY[home]));
          END LOOP;
          home_of := json_build_array(job.job_type, job.priority, job.resource, job.limits)::text;
        END IF;
        next_due := greatest(store_now, next_due);
        due := CASE WHEN p_interval = 0 THEN store_now ELSE floor(next_due) END;
        job_id := job.id;
        why := redrive(job, job_type, home, due, p_reset, p_payload);
        IF why IS NULL THEN
          next_due := next_due + p_interval;
          taken := taken || job.id;
          redriven := redriven || job.job_type;
          PERFORM move_error(job.fingerprint, job.job_type, 1, -1, 1);
        ELSE
          passed := passed + 1;
          RETURN NEXT;
        END IF;
      END LOOP;
      INSERT INTO counts (job_type, now_dead) SELECT r.id, -count(*) FROM unnest(redriven) AS r (id) GROUP BY r.id;
    END IF;

    UPDATE operations o SET cursor = p_to, changed = o.changed + cardinality(taken), skipped = o.skipped + passed,
      canary = o.canary || taken[1 : greatest(0, p_canary - cardinality(o.canary))], next_due_at = next_due,
      updated_at = store_now, options = coalesce(p_options, o.options), ended_at = CASE WHEN p_is_end THEN store_now END,
      state = CASE WHEN p_is_end THEN 'done' ELSE 'running' END
    WHERE o.id = p_operation;
    RETURN QUERY SELECT t.id, CASE WHEN t.id = ANY (told) THEN 'cancelling' END FROM unnest(taken) AS t (id);
  END $$;
`;
