import { BY_INDEX, FENCE, HERE, lookUp, queueOf } from './shared.ts';

export const heartbeatSql: string = `
  CREATE FUNCTION heartbeat(p_id uuid[], p_run int[], p_worker int[], p_lease bigint[], p_alone boolean[],
    p_progress text[])
  RETURNS TABLE (ord bigint, lease_ends_at bigint, cancel_requested boolean) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE store_now bigint := now_ms();
  BEGIN
    RETURN QUERY
    WITH renewed AS (
      UPDATE live l SET lease_ends_at = store_now + g.lease, alone = coalesce(g.alone, l.alone),
        progress = coalesce(g.progress, l.progress)
      FROM (
        SELECT g.*, before.lease_ends_at AS before
        FROM unnest(p_id, p_run, p_worker, p_lease, p_alone, p_progress) WITH ORDINALITY
          AS g (id, run, worker, lease, alone, progress, ord) JOIN live before ON ${lookUp('before.id', 'g.id')} OFFSET 0
      ) g
      WHERE ${FENCE}
      RETURNING g.ord, l.id, l.partition, g.before, g.lease, l.lease_ends_at, l.cancel_requested
    ), shortened AS (
      -- The row of its claim is checked later than that.
      INSERT INTO leases (queue, lane, check_at, lease_ms, jobs)
      SELECT ${queueOf('p.queue')}, p.lane, b.lease_ends_at, b.lease, ARRAY[b.id]
      FROM renewed b JOIN partitions p ON ${lookUp('p.id', 'b.partition')} WHERE b.lease_ends_at < b.before
    )
    SELECT b.ord, b.lease_ends_at, b.cancel_requested FROM renewed b;
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
