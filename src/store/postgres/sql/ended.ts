import { BY_INDEX, HERE, lookUp } from './shared.ts';

/** What a notification of the queue's channel begins with when it is about jobs; others are about work. */
export const ENDED = 'ended ';
export const CANCELLING = 'cancelling ';
/** So many ids fit into one notification, which may have 8,000 bytes. */
export const IDS_PER_NOTIFICATION = 200;

/*
 * A process that waits for a job writes a row in waits, and then looks whether the job has ended. Whatever ends a job looks
 * for that row in the same transaction, and notifies. While no job is waited for, that costs one look at an empty table.
 * A wait that begins between that look and the commit is missed: so a waiting process looks again after a moment.
 */
export const endedSql: string = `
  -- Watches those of these jobs that have not ended. Given in the order of ids, so that no two calls wait for each other.
  CREATE FUNCTION watch(p_ids uuid[], p_ms bigint) RETURNS void LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  BEGIN
    INSERT INTO waits (job, until)
    SELECT l.id, now_ms() + p_ms FROM unnest(p_ids) WITH ORDINALITY AS g (id, ord) JOIN live l ON ${lookUp('l.id', 'g.id')}
    ORDER BY g.ord
    ON CONFLICT (job) DO UPDATE SET until = greatest(waits.until, excluded.until);
  END $$;

  -- After these jobs may have ended, in the same transaction.
  CREATE FUNCTION tell_ended(p_ids uuid[]) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE waited uuid[];
  BEGIN
    IF NOT EXISTS (SELECT 1 FROM waits) THEN RETURN; END IF;
    WITH gone AS (
      DELETE FROM waits w USING unnest(p_ids) AS g (id)
      WHERE ${lookUp('w.job', 'g.id')} AND EXISTS (SELECT 1 FROM finished f WHERE f.id = w.job) RETURNING w.job
    ) SELECT array_agg(job) INTO waited FROM gone;
    PERFORM pg_notify('mulligan_' || current_schema(), '${ENDED}' || array_to_string(waited[part:part + ${IDS_PER_NOTIFICATION - 1}], ','))
    FROM generate_series(1, cardinality(waited), ${IDS_PER_NOTIFICATION}) AS part;
  END $$;

  CREATE FUNCTION prune_waits() RETURNS void LANGUAGE plpgsql ${HERE} AS $$
  BEGIN
    DELETE FROM waits WHERE until < now_ms();
  END $$;
`;
