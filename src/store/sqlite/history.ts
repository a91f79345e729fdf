import { STATE } from '../codes.ts';
import {
  ALL_NAMES,
  addCounts,
  addRun,
  bucketOf,
  byRunTime,
  HISTORY_NAME_LENGTH,
  HISTORY_NAMES,
  type HistoryRequest,
  historySteps,
  type MutableCounts,
  noCounts,
  ROLL_UP_ROWS,
  type StoreHistory,
  startOf,
} from '../history.ts';
import { fromColumns, HISTORY_ADDED, HISTORY_SUMS, historyColumns, toColumns } from '../history-columns.ts';
import type { RolledUp } from '../store.ts';
import { addFailures, type EndedWithError, forgetFailures } from './error-history.ts';
import { COMPLETED, endOfPage, LAG_MS, LAST_COMPLETED, LAST_OTHER, markOf, OTHERS, upToOf } from './history-mark.ts';
import type { Session } from './session.ts';

const SET_MARK = 'UPDATE history_mark SET counted_to = ?';
const RUN = `j.name, j.home_queue, r.error, r.outcome, r.counted, r.attempt, json_extract(r.decision, '$.kind') = 'dead' AS is_dead, r.ended_at - r.started_at AS run_ms`;
/** Of a run that is in the row of its job. */
const RUN_IN_ROW = `
  j.name, j.home_queue, NULL AS error, 'completed' AS outcome, 1 AS counted, j.attempts AS attempt, 0 AS is_dead, j.run_ended_at - j.run_started_at AS run_ms`;
const READ_IN_ROWS = `
  SELECT j.finished_at AS at, ${RUN_IN_ROW}
  FROM (SELECT name, home_queue, attempts, finished_at, run_started_at, run_ended_at ${COMPLETED} AND run_ended_at IS NOT NULL) j`;
const READ_COMPLETED = `
  SELECT j.finished_at AS at, ${RUN}
  FROM (SELECT seq, runs, name, home_queue, finished_at ${COMPLETED} AND run_ended_at IS NULL) j JOIN runs r ON r.job = j.seq AND r.run = j.runs`;
const READ_OTHERS = `
  SELECT r.settled_at AS at, ${RUN}
  FROM (SELECT * ${OTHERS}) r JOIN jobs j ON j.seq = r.job`;
/** Of one job: what is not counted yet. */
const READ_JOB = `
  SELECT coalesce(r.settled_at, j.finished_at) AS at, ${RUN} FROM jobs j JOIN runs r ON r.job = j.seq
  WHERE j.seq = ?1 AND coalesce(r.settled_at, CASE WHEN r.run = j.runs AND j.state = ${STATE.completed} THEN j.finished_at END) > ?2
  UNION ALL
  SELECT j.finished_at AS at, ${RUN_IN_ROW} FROM jobs j WHERE j.seq = ?1 AND j.run_ended_at IS NOT NULL AND j.finished_at > ?2`;
const ADD = `
  INSERT INTO history (step_ms, at, name, ${historyColumns.join(', ')}) VALUES (?, ?, ?, ${historyColumns.map(() => '?').join(', ')})
  ON CONFLICT DO UPDATE SET ${HISTORY_ADDED}`;
const KNOWN_NAMES = 'SELECT name FROM history_names';
const SEE_NAME = 'INSERT INTO history_names VALUES (?, ?) ON CONFLICT DO UPDATE SET seen_at = excluded.seen_at';
const FORGET_NAMES = 'DELETE FROM history_names WHERE seen_at < ?';
const FORGET = 'DELETE FROM history WHERE step_ms = ? AND at < ?';
/** A number that is given is a REAL, which would not be divided into whole steps. */
const POINTS = `
  SELECT at / CAST(?4 AS INTEGER) * CAST(?4 AS INTEGER), ${HISTORY_SUMS} FROM history WHERE step_ms = ?1 AND at >= ?2 AND at < ?3 AND name = ?5
  GROUP BY 1 ORDER BY 1`;
const NAMES = `
  SELECT name, ${HISTORY_SUMS} FROM history WHERE step_ms = ?1 AND at >= ?2 AND at < ?3 AND name <> '${ALL_NAMES}' GROUP BY name`;

/** The statements that read the ledger, for a test that asks SQLite how it reads it. */
export const rollUpReads: readonly string[] = [LAST_COMPLETED, LAST_OTHER, READ_IN_ROWS, READ_COMPLETED, READ_OTHERS];

/** Null when there is something to write. */
export function rollUpNothing(session: Session): RolledUp | null {
  const mark = markOf(session);
  return endOfPage(session, mark, session.now - LAG_MS, 0) === null ? { isDone: true } : null;
}

export function rollUp(session: Session): RolledUp {
  const mark = markOf(session);
  const horizon = session.now - LAG_MS;
  if (horizon <= mark) return { isDone: true };
  const until = endOfPage(session, mark, horizon, ROLL_UP_ROWS) ?? horizon;
  const reads = [READ_IN_ROWS, READ_COMPLETED, READ_OTHERS];
  const runs = reads.flatMap((sql) => session.sql(sql).all(mark, until) as unknown as RunRow[]);
  add(session, runs);
  addFailures(session, runs);
  session.sql(SET_MARK).run(until);
  for (const { stepMs, keptMs } of historySteps) session.sql(FORGET).run(stepMs, session.now - keptMs);
  session.sql(FORGET_NAMES).run(session.now - historySteps[1].keptMs);
  forgetFailures(session);
  return { isDone: until === horizon };
}

/** Before a job is deleted: its runs that are not in the history yet. */
export function rollUpJob(session: Session, seq: number): void {
  const runs = session.sql(READ_JOB).all(seq, markOf(session)) as unknown as RunRow[];
  if (runs.length === 0) return;
  add(session, runs);
  addFailures(session, runs);
}

export function history(session: Session, { from, to, stepMs, name }: HistoryRequest): StoreHistory {
  const range = [bucketOf(stepMs), from, to] as const;
  const wanted = (name ?? ALL_NAMES).slice(0, HISTORY_NAME_LENGTH);
  const points = session.arrays(POINTS).all(...range, stepMs, wanted) as unknown as [number, ...number[]][];
  const names = name === undefined ? session.arrays(NAMES).all(...range) : [];
  return {
    now: session.now,
    upTo: upToOf(session),
    points: points.map(([at, ...counts]) => ({ at, ...fromColumns(counts) })),
    names: (names as unknown as [string, ...number[]][])
      .map(([of, ...counts]) => ({ name: of, ...fromColumns(counts) }))
      .sort(byRunTime),
  };
}

interface RunRow extends EndedWithError {
  readonly counted: number;
  readonly attempt: number;
  readonly run_ms: number;
}

interface Bucket {
  readonly stepMs: number;
  readonly at: number;
  readonly name: string;
  readonly counts: MutableCounts;
}

/** First by minute and name, which leaves few: then by minute and hour, for each name and for all. */
function add(session: Session, rows: readonly RunRow[]): void {
  const known = new Set((session.sql(KNOWN_NAMES).all() as { name: string }[]).map(({ name }) => name));
  const buckets = new Map<string, Bucket>();
  for (const minute of byMinute(session, rows)) {
    if (known.size < HISTORY_NAMES) known.add(minute.name);
    const isKnown = known.has(minute.name);
    if (isKnown) session.sql(SEE_NAME).run(minute.name, minute.at);
    for (const { stepMs } of historySteps) {
      for (const name of isKnown ? [ALL_NAMES, minute.name] : [ALL_NAMES]) {
        const at = startOf(minute.at, stepMs);
        const key = JSON.stringify([stepMs, at, name]);
        const bucket = buckets.get(key) ?? { stepMs, at, name, counts: noCounts() };
        buckets.set(key, bucket);
        addCounts(bucket.counts, minute.counts);
      }
    }
  }
  for (const { stepMs, at, name, counts } of buckets.values()) {
    session.sql(ADD).run(stepMs, at, name, ...toColumns(counts));
  }
}

function byMinute(session: Session, rows: readonly RunRow[]): Bucket[] {
  const [{ stepMs }] = historySteps;
  const minutes = new Map<string, Bucket>();
  for (const row of rows) {
    const at = startOf(row.at, stepMs);
    const key = `${at} ${row.name}`;
    let minute = minutes.get(key);
    if (minute === undefined) {
      const name = session.strings.text(row.name).slice(0, HISTORY_NAME_LENGTH);
      minute = { stepMs, at, name, counts: noCounts() };
      minutes.set(key, minute);
    }
    const { outcome, attempt } = row;
    addRun(minute.counts, {
      outcome,
      attempt,
      counted: row.counted === 1,
      isDead: row.is_dead === 1,
      runMs: row.run_ms,
    });
  }
  return [...minutes.values()].filter(({ counts }) => counts.runs > 0).sort((a, b) => a.at - b.at);
}
