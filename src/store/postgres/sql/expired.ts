import { BY_INDEX, HERE, lookUp } from './shared.ts';

export const expiredSql: string = `
  -- What the rule of store/expiry.ts needs to know.
  CREATE FUNCTION outage(OUT store_now bigint, OUT looked_at bigint, OUT longest_lease bigint)
  LANGUAGE plpgsql ${HERE} AS $$
  BEGIN
    store_now := now_ms();
    SELECT nullif(e.looked_at, 0) INTO looked_at FROM expiry e;
    SELECT coalesce(max(l.lease_ms), 0) INTO longest_lease FROM leases l;
  END $$;

  -- Jobs whose lease has expired; none before p_suspended_until, or before what another process said. p_looked_at is when
  -- this process last searched without having to wait: only its client can tell, so it says so with its next search.
  CREATE FUNCTION expired(p_limit int, p_suspended_until bigint, p_looked_at bigint, OUT job live, OUT error text)
  RETURNS SETOF record LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    store_now bigint := now_ms();
    none_until bigint;
  BEGIN
    -- One search at a time.
    SELECT suspended_until INTO none_until FROM expiry FOR UPDATE;
    UPDATE expiry SET looked_at = p_looked_at WHERE looked_at < p_looked_at OR looked_at > store_now;
    IF p_suspended_until > none_until THEN
      UPDATE expiry SET suspended_until = p_suspended_until;
      none_until := p_suspended_until;
    END IF;
    IF store_now >= none_until THEN
      -- First, so that jobs which have ended are looked up once. Leases that are still held are checked again later.
      PERFORM fold_leases(ARRAY (SELECT id FROM leases WHERE check_at <= store_now FOR UPDATE SKIP LOCKED));
      RETURN QUERY
      SELECT l, (SELECT e.error FROM errors e WHERE e.id = l.last_error)
      FROM (SELECT DISTINCT unnest(jobs) AS id FROM leases WHERE check_at <= store_now OFFSET 0) t
        JOIN live l ON ${lookUp('l.id', 't.id')}
      WHERE l.worker IS NOT NULL AND l.lease_ends_at <= store_now
      ORDER BY l.lease_ends_at, l.seq LIMIT p_limit;
    END IF;
  END $$;
`;
