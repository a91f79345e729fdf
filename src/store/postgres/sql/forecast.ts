import { MINUTE_MS } from '../../../duration.ts';
import { LANE, STATE } from '../../codes.ts';
import {
  endedStates,
  FORECAST_MINUTES,
  FORECAST_PARTITIONS,
  forecastLanes,
  RATE_ROWS,
  RUNNING_COUNTED,
} from '../../forecast.ts';
import { plain } from '../connection/arrays.ts';
import { BY_INDEX, HERE, queueOf } from './shared.ts';

/* Each function reads an index in its order and stops: none reads more rows than it is told to. */

/** The queues by steps through the index, so that their number counts and not that of the partitions. */
const PARTITIONS = `
  WITH RECURSIVE queues (queue) AS (
    (SELECT queue FROM partitions ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT p.queue FROM partitions p WHERE p.queue > queues.queue ORDER BY p.queue LIMIT 1)
    FROM queues WHERE queue IS NOT NULL)
  SELECT p.id, ${queueOf('queues.queue')}, l.lane, p.resource
  FROM unnest('${plain(forecastLanes.map((lane) => LANE[lane]))}'::smallint[]) WITH ORDINALITY l (lane, ord)
  CROSS JOIN queues
  CROSS JOIN LATERAL (
    SELECT id, resource FROM partitions p WHERE p.queue = queues.queue AND p.lane = l.lane LIMIT ${FORECAST_PARTITIONS + 1}) p
  WHERE queues.queue IS NOT NULL AND ($1::text IS NULL OR ${queueOf('queues.queue')} = $1)
  ORDER BY l.ord LIMIT ${FORECAST_PARTITIONS + 1}`;

/** Rows of running jobs stay in their partition; they are as many as there are places. */
export const LANES: string = `
  SELECT p.id, d.n, l.n, d.first
  FROM unnest($1::bigint[]) p (id)
  CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(due_at) AS first FROM (
      SELECT due_at FROM live WHERE partition = p.id AND due_at <= $2 AND worker IS NULL ORDER BY due_at LIMIT $3) a) d
  CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (SELECT 1 FROM live WHERE partition = p.id AND due_at > $2 LIMIT $4) b) l`;
export const UPCOMING: string = `
  SELECT p.id, m.minute, j.job_type, count(*), max(j.due_at)
  FROM unnest($1::bigint[]) p (id)
  CROSS JOIN generate_series(0, ${FORECAST_MINUTES - 1}) m (minute)
  CROSS JOIN LATERAL (
    SELECT job_type, due_at FROM live
    WHERE partition = p.id AND due_at > $2::bigint + m.minute * ${MINUTE_MS} AND due_at <= $2::bigint + (m.minute + 1) * ${MINUTE_MS}
    ORDER BY due_at LIMIT $3) j
  GROUP BY 1, 2, 3`;
const isWanted = `($2::text IS NULL OR ${queueOf('queue')} = $2)`;
export const ENDED: string = `
  SELECT count(*), count(*) FILTER (WHERE ${isWanted}), min(finished_at)
  FROM unnest('${plain([STATE.completed, STATE.dead, STATE.cancelled])}'::smallint[]) s (state)
  CROSS JOIN LATERAL (
    SELECT queue, finished_at FROM finished
    WHERE state = s.state AND finished_at > $1 ORDER BY finished_at DESC LIMIT ${RATE_ROWS}) f
  GROUP BY s.state`;
/** Newest first by id, which begins with the time at which it was made. */
export const ARRIVED: string = `
  SELECT count(*), count(*) FILTER (WHERE NOT is_later AND ${isWanted}), min(enqueued_at) FROM (
    SELECT enqueued_at, runs = 0 AND due_at > $3 AS is_later, queue
    FROM (SELECT * FROM live ORDER BY id DESC LIMIT ${RATE_ROWS}) l JOIN partitions p ON p.id = l.partition) a
  WHERE enqueued_at > $1
  UNION ALL
  SELECT count(*), count(*) FILTER (WHERE ${isWanted}), min(enqueued_at)
  FROM (SELECT enqueued_at, queue FROM finished ORDER BY id DESC LIMIT ${RATE_ROWS}) f WHERE enqueued_at > $1`;

/** Jobs that are claimed, by the claims that have not ended: they are as many as there are places, and some that have ended. */
export const RUNNING: string = `
  SELECT ${queueOf('queue')}, count(*) FROM (
    SELECT DISTINCT l.id, p.queue FROM (SELECT jobs FROM leases LIMIT ${RUNNING_COUNTED}) c
    CROSS JOIN unnest(c.jobs) j (id) JOIN live l ON l.id = j.id JOIN partitions p ON p.id = l.partition
    WHERE l.worker IS NOT NULL LIMIT ${RUNNING_COUNTED}) r
  GROUP BY 1`;
const ENDED_STATES = `
  SELECT * FROM (
    SELECT t.queue, ${endedStates.map((state) => `sum(now_${state}) AS ${state}`).join(', ')}
    FROM counts c JOIN job_types t ON t.id = c.job_type GROUP BY t.queue) s
  WHERE ${endedStates.map((state) => `${state} <> 0`).join(' OR ')}`;

const LIKE_A_CLAIM = `LANGUAGE sql STABLE ${HERE} ${BY_INDEX}`;

export const forecastSql: string = `
  CREATE FUNCTION forecast_partitions(text)
  RETURNS TABLE (id bigint, queue text, lane smallint, resource text) ${LIKE_A_CLAIM} AS $$ ${PARTITIONS} $$;

  CREATE FUNCTION forecast_lanes(bigint[], bigint, bigint, bigint)
  RETURNS TABLE (id bigint, due bigint, later bigint, oldest_due_at bigint) ${LIKE_A_CLAIM} AS $$ ${LANES} $$;

  CREATE FUNCTION forecast_upcoming(bigint[], bigint, bigint)
  RETURNS TABLE (id bigint, minute int, job_type int, jobs bigint, last_due_at bigint) ${LIKE_A_CLAIM} AS $$ ${UPCOMING} $$;

  CREATE FUNCTION forecast_running() RETURNS TABLE (queue text, jobs bigint) ${LIKE_A_CLAIM} AS $$ ${RUNNING} $$;

  -- Every row of counts is added up, whatever its job type.
  CREATE FUNCTION forecast_states() RETURNS TABLE (queue text, completed bigint, dead bigint, cancelled bigint) LANGUAGE sql STABLE ${HERE} AS $$ ${ENDED_STATES} $$;

  CREATE FUNCTION forecast_ended(bigint, text)
  RETURNS TABLE (jobs bigint, wanted bigint, oldest_at bigint) ${LIKE_A_CLAIM} AS $$ ${ENDED} $$;

  CREATE FUNCTION forecast_arrived(bigint, text, bigint)
  RETURNS TABLE (jobs bigint, wanted bigint, oldest_at bigint) ${LIKE_A_CLAIM} AS $$ ${ARRIVED} $$;
`;
