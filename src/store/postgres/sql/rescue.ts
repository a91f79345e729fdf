import { BY_INDEX, HERE, lookUp } from './shared.ts';

/** How long it may take until everybody has noticed that the store is back. */
const RECONNECT_MS = 3_000;

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

  /*
   * The store was away for this long, so nobody could extend a lease: for a while, none counts as expired. Unless somebody
   * looked meanwhile: then it was only the caller that was cut off.
   *
   * For how long: whoever lives beats three times a lease, so when the store went away, two thirds of his lease were left,
   * and he beats again within a third. That is at most half of what was left then of any lease that is in danger now.
   */
  CREATE FUNCTION pardon(p_away bigint) RETURNS void LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    store_now bigint := now_ms();
    longest_left bigint;
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM rescues WHERE looked_at < store_now - p_away) THEN RETURN; END IF;
    SELECT max(l.lease_ends_at) - (store_now - p_away) INTO longest_left
    FROM (SELECT DISTINCT unnest(jobs) AS id FROM leases OFFSET 0) t JOIN live l ON ${lookUp('l.id', 't.id')}
    WHERE l.worker IS NOT NULL AND l.lease_ends_at <= store_now + p_away;
    UPDATE rescues SET none_until = greatest(none_until, store_now + ${RECONNECT_MS} + coalesce(longest_left, 0) / 2)
    WHERE looked_at < store_now - p_away;
  END $$;
`;
