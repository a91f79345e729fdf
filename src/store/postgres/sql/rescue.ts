import { BY_INDEX, HERE } from './shared.ts';

/** Looking for expired leases, and not looking for a while after an outage. */
export const rescueSql: string = `
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

  -- The store was away for this long, so nobody could extend a lease: for one more lease, none counts as expired. Unless
  -- somebody looked meanwhile: then it was only the caller that was cut off.
  CREATE FUNCTION pardon(p_away bigint, p_lease bigint) RETURNS void LANGUAGE plpgsql ${HERE} AS $$
  BEGIN
    UPDATE rescues SET none_until = greatest(none_until, now_ms() + p_lease) WHERE looked_at < now_ms() - p_away;
  END $$;
`;
