import { STATE } from '../../codes.ts';
import { BY_INDEX, HERE, STARTED } from './shared.ts';

/** In the array of longest waits: debounced, without a bound. */
export const UNBOUNDED = -1;

export const debounceSql: string = `
  -- Replaces the waiting job that holds a key, when it has never started and holds the key until its first start (true);
  -- otherwise leaves it alone (false). Null when it no longer holds the key: it has started or ended meanwhile.
  CREATE FUNCTION replace_job(p_id uuid, p_partition bigint, p_job_type int, p_due bigint, p_longest_wait bigint, p_tags text[],
    p_limits text, p_trace text, p_payload text)
  RETURNS boolean LANGUAGE plpgsql ${HERE} AS $$
  DECLARE
    store_now bigint := now_ms();
    next_due bigint;
    holder live;
  BEGIN
    SELECT * INTO holder FROM live WHERE id = p_id FOR UPDATE;
    IF NOT FOUND THEN RETURN CASE WHEN EXISTS (SELECT 1 FROM keys WHERE job = p_id) THEN false END; END IF;
    IF holder.key_life <> ${STARTED} THEN RETURN false; END IF;
    IF holder.runs > 0 THEN RETURN NULL; END IF;
    next_due := greatest(store_now, CASE p_longest_wait WHEN ${UNBOUNDED} THEN p_due
      ELSE least(p_due, holder.enqueued_at + p_longest_wait) END);
    UPDATE live SET tags = p_tags, limits = p_limits, trace = p_trace, payload = p_payload, payload_bytes = octet_length(p_payload), partition = p_partition,
      job_type = p_job_type, due_at = next_due, available_at = next_due,
      state = CASE WHEN next_due > store_now THEN ${STATE.scheduled} ELSE ${STATE.ready} END
    WHERE id = p_id;
    DELETE FROM job_tags t USING unnest(holder.tags) AS u (tag) WHERE t.tag = u.tag AND t.job = p_id;
    INSERT INTO job_tags (tag, job) SELECT DISTINCT t.tag, p_id FROM unnest(p_tags) AS t (tag);
    RETURN true;
  END $$;

  -- Cancels jobs that would run again after the debounced job that takes the key now, with an older input: they started
  -- before, so that they gave the key up, and wait. One that is locked is being claimed, and so is left alone.
  CREATE FUNCTION supersede(p_name text, p_key text) RETURNS void LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE older record;
  BEGIN
    FOR older IN
      SELECT l.id FROM live l JOIN job_types t ON t.id = l.job_type
      WHERE l.key = p_key AND t.name = p_name AND l.key_life = ${STARTED} AND l.runs > 0 AND l.worker IS NULL
      ORDER BY l.id FOR UPDATE OF l SKIP LOCKED
    LOOP
      PERFORM cancel(older.id);
    END LOOP;
  END $$;
`;
