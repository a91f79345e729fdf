import { STATE } from '../../codes.ts';
import { countColumns } from '../counts.ts';
import { BY_INDEX, HERE, lookUp, OUTLIVING_KEYS, queueOf } from './shared.ts';

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
      last_error, fingerprint, tags, limits, trace, progress, spent_at, spent_count, payload)
    SELECT ended.id, ended.seq, now_ms(), ended.enqueued_at, ended.due_at, ended.available_at, p.lane, p.priority, ${queueOf('p.queue')},
      p.resource, ended.job_type, ended.payload_bytes, ended.runs, ended.attempts, ended.crashes, ${STATE.cancelled},
      ended.first_started_at, ended.previous_delay_ms, ended.key_life, ended.key, ended.last_error, ended.fingerprint, ended.tags, ended.limits, ended.trace, ended.progress,
      ended.spent_at, ended.spent_count, ended.payload
    FROM partitions p WHERE p.id = ended.partition;
    IF ended.key IS NOT NULL AND ended.key_life NOT IN (${OUTLIVING_KEYS}) THEN DELETE FROM keys WHERE job = p_id; END IF;
    INSERT INTO counts (job_type, now_cancelled) VALUES (ended.job_type, 1);
    PERFORM tell_ended(ARRAY[p_id]);
    PERFORM move_error(ended.fingerprint, ended.job_type, -1, 0, 0);
    IF ended.limits IS NOT NULL AND (
      SELECT free_slots(array_agg(p_id), array_agg(l.one ->> 0), array_agg(l.one ->> 1), '{}')
      FROM json_array_elements(ended.limits::json) AS l (one)) THEN
      -- It kept its turn, and others may start now. All processes are told, this one too: no claim waits for this answer.
      PERFORM pg_notify('mulligan_' || current_schema(), '');
    END IF;
    RETURN 'cancelled';
  END $$;

  -- Deletes finished jobs with all that was kept of them.
  CREATE FUNCTION forget(p_ids uuid[]) RETURNS void LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE unused bigint[];
  BEGIN
    PERFORM roll_up_jobs(p_ids);
    DELETE FROM reactions r USING unnest(p_ids) AS g (id) WHERE ${lookUp('r.job', 'g.id')};
    WITH gone AS (
      DELETE FROM finished f USING unnest(p_ids) AS g (id) WHERE ${lookUp('f.id', 'g.id')}
      RETURNING f.id, f.tags, f.job_type, f.state, f.fingerprint, CASE WHEN f.failed THEN f.last_error END AS error
    ), untagged AS (
      DELETE FROM job_tags t USING gone, unnest(gone.tags) AS u (tag)
      WHERE gone.tags IS NOT NULL AND t.tag = u.tag AND ${lookUp('t.job', 'gone.id')}
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
    DELETE FROM run_logs o USING unnest(p_ids) AS g (id) WHERE ${lookUp('o.job', 'g.id')};
    DELETE FROM memos m USING unnest(p_ids) AS g (id) WHERE ${lookUp('m.job', 'g.id')};
    DELETE FROM keys k USING unnest(p_ids) AS g (id) WHERE ${lookUp('k.job', 'g.id')} AND k.held_until IS NULL;
  END $$;

  -- What code says only becomes longer; null is for ever.
  CREATE FUNCTION write_retention(p_name text, p_state smallint, p_is_code boolean, p_kept bigint, p_removes boolean)
  RETURNS void LANGUAGE plpgsql ${HERE} AS $$
  BEGIN
    IF p_removes THEN
      DELETE FROM retention WHERE name = p_name AND state = p_state AND is_code = p_is_code;
    ELSE
      INSERT INTO retention AS r (name, state, is_code, kept_ms) VALUES (p_name, p_state, p_is_code, p_kept)
      ON CONFLICT (name, state, is_code) DO UPDATE SET kept_ms = CASE
        WHEN NOT p_is_code THEN p_kept
        WHEN r.kept_ms IS NULL OR p_kept IS NULL THEN NULL
        ELSE greatest(r.kept_ms, p_kept) END;
    END IF;
  END $$;

  -- Deletes up to p_limit jobs of a state that ended at or before this time and have one of these names, or none of them. It
  -- looks at p_looked jobs behind the place where the last look ended.
  CREATE FUNCTION prune(p_state smallint, p_keep bigint, p_from bigint, p_after uuid, p_names text[], p_others boolean, p_looked int,
    p_limit int, OUT pruned int, OUT until bigint, OUT last uuid, OUT has_more boolean)
  LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    oldest_kept bigint := now_ms() - p_keep;  -- known before the index is asked
    types int[] := array(SELECT t.id FROM job_types t WHERE t.name = ANY (p_names));
    seen int;
    chosen uuid[];
  BEGIN
    IF p_others AND cardinality(p_names) = 0 THEN
      -- All of them: nothing is passed over, so nothing is read that is not deleted.
      SELECT array_agg(old.id), max(old.finished_at) INTO chosen, until FROM (
        SELECT f.id, f.finished_at FROM finished f
        WHERE f.state = p_state AND f.finished_at >= p_from AND f.finished_at <= oldest_kept
        ORDER BY f.finished_at LIMIT p_limit FOR UPDATE SKIP LOCKED) old;
    ELSE
      WITH looked AS MATERIALIZED (
        SELECT f.id, f.finished_at, (f.job_type = ANY (types)) <> p_others AS fits,
          row_number() OVER (ORDER BY f.finished_at, f.id) AS n
        FROM finished f
        WHERE f.state = p_state AND f.finished_at >= p_from AND (f.finished_at > p_from OR f.id > p_after)
          AND f.finished_at <= oldest_kept
        ORDER BY f.finished_at, f.id LIMIT p_looked
      ), taken AS (
        SELECT f.id, l.n FROM looked l JOIN finished f ON f.id = l.id
        WHERE l.fits ORDER BY l.n LIMIT p_limit FOR UPDATE OF f SKIP LOCKED
      ), ending AS (
        SELECT CASE WHEN (SELECT count(*) FROM taken) < p_limit THEN (SELECT max(l.n) FROM looked l) ELSE (SELECT max(t.n) FROM taken t) END AS n
      )
      SELECT (SELECT count(*) FROM looked), (SELECT array_agg(t.id) FROM taken t), l.finished_at, l.id
      INTO seen, chosen, until, last
      FROM ending e LEFT JOIN looked l ON l.n = e.n;
    END IF;
    pruned := coalesce(cardinality(chosen), 0);
    has_more := coalesce(seen, 0) >= p_looked OR pruned >= p_limit;
    until := coalesce(until, p_from);
    last := coalesce(last, p_after);
    IF pruned > 0 THEN PERFORM forget(chosen); END IF;
  END $$;

  -- Deletes up to p_limit keys that were held until a time which is over. Answers how many.
  CREATE FUNCTION prune_keys(p_limit int) RETURNS int LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    store_now bigint := now_ms();
    pruned int;
  BEGIN
    DELETE FROM keys WHERE (name, key) IN (
      SELECT k.name, k.key FROM keys k WHERE k.held_until <= store_now
      ORDER BY k.held_until LIMIT p_limit FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
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
