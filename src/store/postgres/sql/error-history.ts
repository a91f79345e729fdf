import { OUTCOME } from '../../codes.ts';
import { ERROR_SERIES, ERROR_SERIES_KEPT, ERROR_SERIES_SAFE_MS, errorHistorySteps } from '../../error-history.ts';
import { plain } from '../connection/arrays.ts';
import { BY_INDEX, HERE, lookUp } from './shared.ts';

const [FINE, HOURS] = errorHistorySteps;

/**
 * The fingerprint in the JSON of an error. It is not read as JSON: a single text that PostgreSQL refuses as such (one with
 * \u0000, for example) would stop the counting for good. Quotes in a message are escaped, so only the key matches.
 */
const fingerprintIn = (error: string): string => `substring(${error} FROM '"fingerprint":"([^"\\\\]+)"')`;

/** Parts of the statement that adds up: counts those of the ended runs that failed. `ended` has at, job_type, outcome, is_dead and error. */
export const addFailures = (ended: string): string => `
    failed AS MATERIALIZED (
      SELECT k.at, k.fingerprint, t.counted_as AS job_type, sum(k.failures) AS failures, sum(k.dead) AS dead
      FROM (
        SELECT r.at, r.job_type, ${fingerprintIn('x.error')} AS fingerprint, r.failures, r.dead
        FROM (
          SELECT e.at / ${FINE.stepMs} * ${FINE.stepMs} AS at, e.job_type, e.error, count(*) AS failures, count(*) FILTER (WHERE e.is_dead) AS dead
          FROM ${ended} e WHERE e.error IS NOT NULL AND e.outcome <> ${OUTCOME.cancelled} GROUP BY 1, 2, 3) r
        JOIN errors x ON ${lookUp('x.id', 'r.error')}) k
      JOIN job_types t ON ${lookUp('t.id', 'k.job_type')}
      WHERE k.fingerprint IS NOT NULL GROUP BY 1, 2, 3
    ), failing AS MATERIALIZED (
      SELECT f.*, s.id IS NOT NULL AS is_known, row_number() OVER (PARTITION BY s.id IS NULL ORDER BY f.seen_at, f.fingerprint) AS place
      FROM (SELECT fingerprint, job_type, max(at) AS seen_at FROM failed GROUP BY 1, 2) f
      LEFT JOIN error_series s ON s.fingerprint = f.fingerprint AND s.job_type = f.job_type
    ), series AS (
      INSERT INTO error_series (fingerprint, job_type, seen_at)
      SELECT fingerprint, job_type, seen_at FROM failing WHERE is_known OR place + (SELECT count(*) FROM error_series) <= ${ERROR_SERIES}
      ON CONFLICT (fingerprint, job_type) DO UPDATE SET seen_at = greatest(error_series.seen_at, excluded.seen_at)
      RETURNING id, fingerprint, job_type
    ), failures_added AS (
      INSERT INTO error_history (series, step_ms, at, failures, dead)
      SELECT s.id, p.step_ms, f.at / p.step_ms * p.step_ms, sum(f.failures), sum(f.dead)
      FROM failed f JOIN series s ON s.fingerprint = f.fingerprint AND s.job_type = f.job_type
      CROSS JOIN unnest('${plain(errorHistorySteps.map(({ stepMs }) => stepMs))}'::int[]) p (step_ms)
      GROUP BY 1, 2, 3
      ON CONFLICT (series, step_ms, at) DO UPDATE SET
        failures = error_history.failures + excluded.failures, dead = error_history.dead + excluded.dead
    )`;

/** What is too old, and series beyond those that are kept. */
export const FORGET_FAILURES: string = `
    ${errorHistorySteps
      .map(
        ({ stepMs, keptMs }) =>
          `DELETE FROM error_history h USING error_series s WHERE ${lookUp('h.series', 's.id')} AND h.step_ms = ${stepMs} AND h.at < store_now - ${keptMs};`,
      )
      .join('\n    ')}
    WITH gone AS (
      DELETE FROM error_series WHERE seen_at < store_now - ${HOURS.keptMs}
        OR (seen_at < store_now - ${ERROR_SERIES_SAFE_MS} AND id IN (SELECT id FROM error_series ORDER BY seen_at DESC OFFSET ${ERROR_SERIES_KEPT}))
      RETURNING id
    )
    DELETE FROM error_history h USING gone WHERE ${lookUp('h.series', 'gone.id')};`;

export const errorHistorySql: string = `
  CREATE FUNCTION error_history_points(p_bucket int, p_from bigint, p_to bigint, p_step bigint, p_fingerprint text, p_name text, p_queue text)
  RETURNS TABLE (fingerprint text, queue text, name text, at bigint, failures bigint, dead bigint) LANGUAGE sql STABLE ${HERE} ${BY_INDEX} AS $$
    SELECT s.fingerprint, t.queue, t.name, h.at / p_step * p_step, sum(h.failures)::bigint, sum(h.dead)::bigint
    FROM error_series s JOIN job_types t ON ${lookUp('t.id', 's.job_type')}
    JOIN error_history h ON ${lookUp('h.series', 's.id')} AND h.step_ms = p_bucket AND h.at >= p_from AND h.at < p_to
    WHERE starts_with(s.fingerprint, p_fingerprint) AND (p_name IS NULL OR t.name = p_name) AND (p_queue IS NULL OR t.queue = p_queue)
    GROUP BY 1, 2, 3, 4
  $$;
`;
