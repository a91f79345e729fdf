import { BY_INDEX, HERE, lookUp } from './shared.ts';

/** Looking for expired leases, and not looking for a while after an outage. */
export const rescueSql: string = `
  -- Of the leases that were due for a look, keeps those that are still held, until the first of them ends.
  CREATE FUNCTION look_later(p_now bigint) RETURNS void LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  BEGIN
    WITH due AS MATERIALIZED (
      SELECT ctid AS place FROM leases WHERE look_at <= p_now FOR UPDATE SKIP LOCKED
    ), taken AS (
      DELETE FROM leases USING due WHERE leases.ctid = due.place RETURNING leases.line, leases.jobs
    )
    INSERT INTO leases (line, look_at, jobs)
    SELECT t.line, min(l.lease_ends_at), array_agg(l.id)
    FROM (SELECT DISTINCT line, unnest(jobs) AS id FROM taken OFFSET 0) t JOIN live l ON ${lookUp('l.id', 't.id')}
    WHERE l.worker IS NOT NULL GROUP BY t.line;
  END $$;

  -- Jobs whose lease has run out.
  CREATE FUNCTION expired(p_limit int, OUT job live, OUT error text) RETURNS SETOF record LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    store_now bigint := now_ms();
    pardoned_until bigint;
  BEGIN
    UPDATE rescues SET looked_at = store_now RETURNING none_until INTO pardoned_until;
    IF store_now >= pardoned_until THEN
      -- First, so that jobs which have ended are looked up once.
      PERFORM look_later(store_now);
      RETURN QUERY
      SELECT l, (SELECT e.error FROM errors e WHERE e.id = l.last_error)
      FROM (SELECT DISTINCT unnest(jobs) AS id FROM leases WHERE look_at <= store_now OFFSET 0) t JOIN live l ON ${lookUp('l.id', 't.id')}
      WHERE l.worker IS NOT NULL AND l.lease_ends_at <= store_now
      ORDER BY l.lease_ends_at, l.seq LIMIT p_limit;
    END IF;
  END $$;

  -- The store was away for this long, so nobody could extend a lease: for one more lease, none counts as expired. Unless
  -- somebody looked meanwhile: then it was only the caller that was cut off.
  CREATE FUNCTION pardon(p_away bigint, p_lease bigint) RETURNS void LANGUAGE plpgsql ${HERE} AS $$
  BEGIN
    UPDATE rescues SET none_until = greatest(none_until, now_ms() + p_lease) WHERE looked_at < now_ms() - p_away;
  END $$;
`;
