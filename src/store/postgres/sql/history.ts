import { OUTCOME, STATE } from '../../codes.ts';
import {
  ALL_NAMES,
  HISTORY_NAME_LENGTH,
  HISTORY_NAMES,
  historySteps,
  ROLL_UP_ROWS,
  runTimeBounds,
} from '../../history.ts';
import { HISTORY_ADDED, HISTORY_SUMS, historyColumns, runTimeColumns } from '../../history-columns.ts';
import { plain } from '../connection/arrays.ts';
import { addFailures, FORGET_FAILURES } from './error-history.ts';
import { BY_INDEX, HERE, lookUp } from './shared.ts';

/*
 * Which runs are counted, exactly once: those that were settled after `counted_to` and not after a horizon, which then becomes
 * `counted_to` in the same transaction. A run is settled by the time at which its transaction began to write, and may be seen
 * only later. So a time becomes the horizon when every transaction that had a number when the time was noted has ended. A
 * statement may have read the clock and wait for its first lock, without a number yet: LAG_MS is for those.
 *
 * A transaction that is left open for long stops the counting for GIVE_UP_MS at most; what it settles after that is not
 * counted. Any transaction of the server does, because a snapshot does not tell which tables it writes.
 */
export const LAG_MS = 10_000;
const GIVE_UP_MS = 3_600_000;
const FINISHED = plain([STATE.completed, STATE.dead, STATE.cancelled]);

const lastRun = (from: string): string => `
  SELECT f.finished_at AS at, f.job_type, f.outcome, f.counted, f.attempt, f.dead_reason IS NOT NULL AS is_dead,
    f.ended_at - f.started_at AS run_ms, CASE WHEN f.failed THEN f.last_error END AS error
  FROM ${from} AND f.outcome IS NOT NULL`;
const otherRuns = (from: string): string => `
  SELECT r.settled_at, j.job_type, r.outcome, r.counted, r.attempt, (r.decision::json ->> 'kind') = 'dead', r.ended_at - r.started_at, r.error
  FROM ${from}
  CROSS JOIN LATERAL (
    SELECT l.job_type FROM live l WHERE l.id = r.job UNION ALL SELECT f.job_type FROM finished f WHERE f.id = r.job) j`;
/** Those that were settled after one time and not after another. */
export const SETTLED_BETWEEN = (after: string, until: string): string => `
  SELECT e.* FROM unnest('${FINISHED}'::smallint[]) s (state)
  CROSS JOIN LATERAL (${lastRun(`finished f WHERE f.state = s.state AND f.finished_at > ${after} AND f.finished_at <= ${until}`)}) e
  UNION ALL ${otherRuns(`(SELECT * FROM runs WHERE settled_at > ${after} AND settled_at <= ${until}) r`)}`;
/** Those of some jobs. */
const OF_JOBS = `
  SELECT e.* FROM unnest(p_ids) g (id)
  CROSS JOIN LATERAL (${lastRun('finished f WHERE f.id = g.id AND f.finished_at > mark')}) e
  UNION ALL ${otherRuns('unnest(p_ids) g (id) JOIN runs r ON r.job = g.id AND r.settled_at > mark')}`;
/** When the run was settled that comes after so many in a source. */
export const PAGE_END = (after: string, rows: number): string => `
  SELECT min(p.at) FROM (
    SELECT (SELECT f.finished_at FROM finished f WHERE f.state = s.state AND f.finished_at > ${after}
      ORDER BY f.finished_at OFFSET ${rows} LIMIT 1) AS at
    FROM unnest('${FINISHED}'::smallint[]) s (state)
    UNION ALL
    SELECT (SELECT r.settled_at FROM runs r WHERE r.settled_at > ${after} ORDER BY r.settled_at OFFSET ${rows} LIMIT 1)) p`;

const took = `CASE WHEN r.outcome <> ${OUTCOME.crashed} THEN greatest(0, r.run_ms) END`;
const runsThat = (condition: string): string => `coalesce(sum(e.runs) FILTER (WHERE ${condition}), 0)`;
const counts: readonly string[] = [
  'sum(e.runs)',
  runsThat(`e.outcome = ${OUTCOME.completed}`),
  runsThat(`e.outcome IN (${OUTCOME.failed}, ${OUTCOME.crashed}, ${OUTCOME.deferred})`),
  runsThat('e.is_retry'),
  runsThat('e.is_dead'),
  'coalesce(sum(e.run_ms), 0)',
  ...runTimeColumns.map((_, bin) => runsThat(`e.bin = ${bin}`)),
];

const [{ stepMs: MINUTE_MS }] = historySteps;

/** Adds up runs by minute and by hour, for each name and for all. Most rows are gone after the first step. */
const addUp = (runs: string): string => `
    WITH ended AS MATERIALIZED (${runs}), ${addFailures('ended')}, minutes AS MATERIALIZED (
      SELECT e.at, e.job_type, ${counts.map((count, index) => `${count} AS ${historyColumns[index]}`).join(', ')}
      FROM (
        SELECT r.at / ${MINUTE_MS} * ${MINUTE_MS} AS at, r.job_type, r.outcome, r.counted AND r.attempt > 1 AS is_retry, r.is_dead,
          width_bucket(${took}, '${plain(runTimeBounds)}'::bigint[]) AS bin, count(*) AS runs, sum(${took}) AS run_ms
        FROM ended r WHERE r.outcome <> ${OUTCOME.released} GROUP BY 1, 2, 3, 4, 5, 6) e
      GROUP BY 1, 2
    ), named AS MATERIALIZED (
      SELECT left(t.name, ${HISTORY_NAME_LENGTH}) AS name, m.* FROM minutes m JOIN job_types t ON ${lookUp('t.id', 'm.job_type')}
    ), met AS MATERIALIZED (
      SELECT m.name, m.seen_at, h.name IS NOT NULL AS is_known, row_number() OVER (PARTITION BY h.name IS NULL ORDER BY m.seen_at) AS place
      FROM (SELECT name, max(at) AS seen_at FROM named GROUP BY name) m LEFT JOIN history_names h ON h.name = m.name
    ), known AS (
      INSERT INTO history_names (name, seen_at)
      SELECT name, seen_at FROM met WHERE is_known OR place + (SELECT count(*) FROM history_names) <= ${HISTORY_NAMES}
      ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at
      RETURNING name
    )
    INSERT INTO history (step_ms, at, name, ${historyColumns.join(', ')})
    SELECT s.step_ms, m.at / s.step_ms * s.step_ms, coalesce(n.name, '${ALL_NAMES}'), ${HISTORY_SUMS}
    FROM named m
    CROSS JOIN unnest('${plain(historySteps.map(({ stepMs }) => stepMs))}'::int[]) s (step_ms)
    CROSS JOIN LATERAL (SELECT NULL::text AS name UNION ALL SELECT k.name FROM known k WHERE k.name = m.name) n
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (step_ms, at, name) DO UPDATE SET ${HISTORY_ADDED};`;

const FORGET = historySteps
  .map(({ stepMs, keptMs }) => `DELETE FROM history WHERE step_ms = ${stepMs} AND at < store_now - ${keptMs};`)
  .join('\n    ');

export const historySql: string = `
  -- Answers whether all was counted that can be counted by now.
  CREATE FUNCTION roll_up() RETURNS boolean LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    store_now bigint := now_ms();
    seen pg_snapshot := pg_current_snapshot();
    mark history_mark;
    until bigint;
  BEGIN
    -- Nothing is written while nothing ends.
    SELECT * INTO mark FROM history_mark;
    ${PAGE_END('mark.counted_to', 0).replace('SELECT min(p.at)', 'SELECT min(p.at) INTO until')};
    IF until IS NULL THEN RETURN true; END IF;
    SELECT * INTO mark FROM history_mark FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN true; END IF;
    IF mark.next_at IS NULL THEN
      UPDATE history_mark SET next_at = store_now - ${LAG_MS}, next_id = pg_snapshot_xmax(seen);
      RETURN true;
    END IF;
    IF pg_snapshot_xmin(seen) < mark.next_id AND store_now - mark.next_at < ${GIVE_UP_MS} THEN RETURN true; END IF;
    ${PAGE_END('mark.counted_to', ROLL_UP_ROWS).replace('SELECT min(p.at)', 'SELECT least(mark.next_at, min(p.at)) INTO until')};
    IF until > mark.counted_to THEN
    ${addUp(SETTLED_BETWEEN('mark.counted_to', 'until'))}
    END IF;
    IF until < mark.next_at THEN
      UPDATE history_mark SET counted_to = until;
      RETURN false;
    END IF;
    UPDATE history_mark SET counted_to = greatest(counted_to, until), next_at = store_now - ${LAG_MS}, next_id = pg_snapshot_xmax(seen);
    ${FORGET}
    ${FORGET_FAILURES}
    DELETE FROM history_names WHERE seen_at < store_now - ${historySteps[1].keptMs};
    RETURN true;
  END $$;

  -- Before these jobs are deleted: adds those of their runs that are not in the history yet.
  CREATE FUNCTION roll_up_jobs(p_ids uuid[]) RETURNS void LANGUAGE plpgsql AS $$
  #variable_conflict use_column
  DECLARE mark bigint;
  BEGIN
    SELECT counted_to INTO mark FROM history_mark;
    IF NOT EXISTS (SELECT 1 FROM unnest(p_ids) g (id) JOIN finished f ON ${lookUp('f.id', 'g.id')} WHERE f.finished_at > mark) THEN RETURN; END IF;
    -- From here on no other transaction counts.
    SELECT counted_to INTO mark FROM history_mark FOR UPDATE;
    ${addUp(OF_JOBS)}
  END $$;

  CREATE FUNCTION history_points(p_bucket int, p_from bigint, p_to bigint, p_step bigint, p_name text)
  RETURNS TABLE (at bigint, counts bigint[]) LANGUAGE sql STABLE ${HERE} ${BY_INDEX} AS $$
    SELECT h.at / p_step * p_step, ARRAY[${HISTORY_SUMS}]::bigint[] FROM history h
    WHERE h.step_ms = p_bucket AND h.at >= p_from AND h.at < p_to AND h.name = p_name GROUP BY 1 ORDER BY 1
  $$;

  CREATE FUNCTION history_by_name(p_bucket int, p_from bigint, p_to bigint)
  RETURNS TABLE (name text, counts bigint[]) LANGUAGE sql STABLE ${HERE} ${BY_INDEX} AS $$
    SELECT h.name, ARRAY[${HISTORY_SUMS}]::bigint[] FROM history h
    WHERE h.step_ms = p_bucket AND h.at >= p_from AND h.at < p_to AND h.name <> '${ALL_NAMES}' GROUP BY h.name
  $$;

  -- The store's time, and until when runs are in the history.
  CREATE FUNCTION history_state(OUT store_now bigint, OUT up_to bigint) LANGUAGE plpgsql STABLE ${HERE} ${BY_INDEX} AS $$
  DECLARE next_end bigint;
  BEGIN
    store_now := now_ms();
    SELECT counted_to INTO up_to FROM history_mark;
    ${PAGE_END('up_to', 0).replace('SELECT min(p.at)', 'SELECT min(p.at) INTO next_end')};
    up_to := greatest(up_to, coalesce(next_end - 1, store_now - ${LAG_MS}));
  END $$;
`;
