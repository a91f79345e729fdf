import { STATE } from '../../codes.ts';
import { countColumns } from '../counts.ts';
import { BY_INDEX, HERE, LANE, lookUp, PRUNED, queueOf, STARTED } from './shared.ts';

export const operateSql: string = `
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
    INSERT INTO finished (id, seq, finished_at, enqueued_at, due_at, available_at, lane, priority, queue, resource,
      job_type, payload_bytes, runs, attempts, crashes, state, first_started_at, previous_delay_ms, key_life, key,
      last_error, fingerprint, progress, spent_at, spent_count, payload)
    SELECT ended.id, ended.seq, now_ms(), ended.enqueued_at, ended.due_at, ended.available_at, p.lane, p.priority, ${queueOf('p.queue')},
      p.resource, ended.job_type, ended.payload_bytes, ended.runs, ended.attempts, ended.crashes, ${STATE.cancelled},
      ended.first_started_at, ended.previous_delay_ms, ended.key_life, ended.key, ended.last_error, ended.fingerprint,
      ended.progress,
      ended.spent_at, ended.spent_count, ended.payload
    FROM partitions p WHERE p.id = ended.partition;
    IF ended.key IS NOT NULL AND ended.key_life <> ${PRUNED} THEN DELETE FROM keys WHERE job = p_id; END IF;
    INSERT INTO counts (job_type, now_cancelled) VALUES (ended.job_type, 1);
    PERFORM move_error(ended.fingerprint, ended.job_type, -1, 0, 0);
    RETURN 'cancelled';
  END $$;

  -- Dead jobs by any of these conditions, longest dead first. Each that is found is locked.
  CREATE FUNCTION dead(p_ids uuid[], p_name text, p_queue text, p_reason smallint, p_limit bigint)
  RETURNS SETOF finished LANGUAGE plpgsql ${HERE} SET enable_seqscan = off AS $$
  BEGIN
    RETURN QUERY SELECT f.* FROM finished f
    WHERE f.state = ${STATE.dead}
      AND (p_ids IS NULL OR f.id = ANY (p_ids))
      AND (p_name IS NULL OR f.job_type IN (SELECT id FROM job_types WHERE name = p_name))
      AND (p_queue IS NULL OR f.queue = p_queue)
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
    job_type job_types;
    policy jsonb;
    holder uuid;
    promised text[] := '{}';
    home bigint;
    admitted bigint[] := '{}';
  BEGIN
    FOR job IN SELECT * FROM dead(p_ids, p_name, p_queue, p_reason, p_limit) LOOP
      SELECT * INTO job_type FROM job_types t WHERE t.id = job.job_type;
      policy := job_type.policy::jsonb;
      job_id := job.id;
      why := NULL;
      IF NOT p_reset AND (job.attempts >= (policy->>'maxAttempts')::int OR job.crashes >= (policy->>'maxCrashes')::int)
      THEN
        why := 'nothing-left';
      ELSIF job.key IS NOT NULL AND job.key_life <> ${STARTED} THEN
        SELECT k.job INTO holder FROM keys k WHERE k.name = job_type.name AND k.key = job.key
          -- A key that is held until the first start is given up by a job that has started.
          AND NOT EXISTS (SELECT 1 FROM live h WHERE h.id = k.job AND h.runs > 0 AND h.key_life = ${STARTED});
        IF (FOUND AND holder <> job.id) OR json_build_array(job_type.name, job.key)::text = ANY (promised) THEN
          why := 'key-taken';
        ELSE
          promised := promised || json_build_array(job_type.name, job.key)::text;
        END IF;
      END IF;
      IF why IS NULL AND NOT p_dry_run THEN
        IF job.key IS NOT NULL AND job.key_life <> ${STARTED} THEN
          DELETE FROM keys k USING live h
          WHERE k.name = job_type.name AND k.key = job.key AND h.id = k.job AND h.runs > 0 AND h.key_life = ${STARTED};
          INSERT INTO keys (name, key, job) VALUES (job_type.name, job.key, job.id) ON CONFLICT DO NOTHING;
          -- Another transaction was quicker.
          SELECT keys.job INTO holder FROM keys WHERE keys.name = job_type.name AND keys.key = job.key;
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
        LOOP
          SELECT p.id INTO home FROM partitions_of(ARRAY[job_type.queue], ARRAY[${LANE.redrive}]::smallint[],
            ARRAY[job.priority], ARRAY[job.resource], ARRAY[job_type.name]) p;
          EXIT WHEN job.resource = '' OR home = ANY (admitted);
          -- One that is deleted between these two looks is made again.
          CONTINUE WHEN home IS NULL OR NOT admit(ARRAY[home]);
          admitted := admitted || home;
          EXIT;
        END LOOP;
        DELETE FROM finished WHERE finished.id = job.id;
        INSERT INTO live (id, seq, enqueued_at, due_at, available_at, partition, job_type, payload_bytes, runs, attempts,
          crashes, state, key_life, first_started_at, previous_delay_ms, key, last_error, fingerprint, progress, spent_at, spent_count,
          payload)
        VALUES (job.id, job.seq, job.enqueued_at, store_now, store_now, home, job.job_type, job.payload_bytes, job.runs,
          CASE WHEN p_reset THEN 0 ELSE job.attempts END, CASE WHEN p_reset THEN 0 ELSE job.crashes END,
          ${STATE.ready}, job.key_life,
          NULL, CASE WHEN NOT p_reset THEN job.previous_delay_ms END,
          job.key, job.last_error, job.fingerprint, job.progress, CASE WHEN NOT p_reset THEN job.spent_at END,
          CASE WHEN NOT p_reset THEN job.spent_count END, job.payload);
        INSERT INTO counts (job_type, now_dead) VALUES (job.job_type, -1);
        PERFORM move_error(job.fingerprint, job.job_type, 1, -1, 1);
      END IF;
      RETURN NEXT;
    END LOOP;
  END $$;

  -- Deletes finished jobs with all that was kept of them.
  CREATE FUNCTION forget(p_ids uuid[]) RETURNS void LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE unused bigint[];
  BEGIN
    WITH gone AS (
      DELETE FROM finished f USING unnest(p_ids) AS g (id) WHERE ${lookUp('f.id', 'g.id')}
      RETURNING f.job_type, f.state, f.fingerprint, CASE WHEN f.failed THEN f.last_error END AS error
    ), erased AS (
      DELETE FROM runs r USING unnest(p_ids) AS g (id) WHERE ${lookUp('r.job', 'g.id')} RETURNING r.error
    ), released AS (
      UPDATE errors SET uses = errors.uses - u.uses
      FROM (
        SELECT error, count(*) AS uses FROM (SELECT error FROM gone UNION ALL SELECT error FROM erased) e
        WHERE error IS NOT NULL GROUP BY error ORDER BY error OFFSET 0
      ) u
      WHERE ${lookUp('errors.id', 'u.error')}
      RETURNING errors.id, errors.uses
    ), counted AS (
      INSERT INTO counts (job_type, now_completed, now_dead, now_cancelled)
      SELECT job_type, -count(*) FILTER (WHERE state = ${STATE.completed}), -count(*) FILTER (WHERE state = ${STATE.dead}),
        -count(*) FILTER (WHERE state = ${STATE.cancelled})
      FROM gone GROUP BY job_type
    ), grouped AS (
      INSERT INTO error_counts (fingerprint, job_type, dead)
      SELECT fingerprint, job_type, -count(*) FROM gone WHERE state = ${STATE.dead} AND fingerprint IS NOT NULL
      GROUP BY fingerprint, job_type
    )
    SELECT array_agg(id) INTO unused FROM released WHERE uses <= 0;
    DELETE FROM errors WHERE id = ANY (unused);
    DELETE FROM memos m USING unnest(p_ids) AS g (id) WHERE ${lookUp('m.job', 'g.id')};
    DELETE FROM keys k USING unnest(p_ids) AS g (id) WHERE ${lookUp('k.job', 'g.id')};
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
  DECLARE
    oldest_kept bigint := now_ms() - p_keep;  -- known before the index is asked
    chosen uuid[];
  BEGIN
    SELECT array_agg(old.id), max(old.finished_at) INTO chosen, until FROM (
      SELECT f.id, f.finished_at FROM finished f
      WHERE f.state = p_state AND f.finished_at >= p_from AND f.finished_at <= oldest_kept
      ORDER BY f.finished_at LIMIT p_limit FOR UPDATE SKIP LOCKED) old;
    pruned := coalesce(cardinality(chosen), 0);
    IF pruned > 0 THEN PERFORM forget(chosen); END IF;
  END $$;

  -- Adds up what transactions have counted, for each queue and name. Only one transaction at a time does this.
  CREATE FUNCTION fold_counts() RETURNS void LANGUAGE plpgsql ${HERE} AS $$
  BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext(current_schema()), hashtext('mulligan: counts')) THEN RETURN; END IF;
    WITH gone AS (DELETE FROM counts RETURNING *)
    INSERT INTO counts (job_type, ${countColumns.join(', ')})
    SELECT t.counted_as, ${countColumns.map((column) => `sum(${column})`).join(', ')}
    FROM gone JOIN job_types t ON t.id = gone.job_type GROUP BY t.counted_as;
  END $$;
`;
