import type { OutcomeKind, StoredError } from '../../retry/outcome.ts';
import { failureOf } from '../error-groups.ts';
import {
  ERROR_SERIES,
  ERROR_SERIES_KEPT,
  ERROR_SERIES_SAFE_MS,
  type ErrorHistoryRequest,
  type ErrorHistoryRow,
  errorHistorySteps,
  type StoreErrorHistory,
  toErrorSeries,
} from '../error-history.ts';
import { bucketOf, startOf } from '../history.ts';
import { upToOf } from './history-mark.ts';
import type { Session } from './session.ts';

const [FINE, HOURS] = errorHistorySteps;

const FIND = 'SELECT id FROM error_series WHERE fingerprint = ? AND queue = ? AND name = ?';
const COUNT = 'SELECT count(*) AS series FROM error_series';
const INSERT = 'INSERT INTO error_series (fingerprint, queue, name, seen_at) VALUES (?, ?, ?, 0) RETURNING id';
const SEE = 'UPDATE error_series SET seen_at = max(seen_at, ?2) WHERE id = ?1';
const ADD = `
  INSERT INTO error_history (series, step_ms, at, failures, dead) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET failures = failures + excluded.failures, dead = dead + excluded.dead`;
const FORGET = 'DELETE FROM error_history WHERE series IN (SELECT id FROM error_series) AND step_ms = ? AND at < ?';
const FORGET_SERIES = `
  DELETE FROM error_series WHERE seen_at < ?1
    OR (seen_at < ?2 AND id IN (SELECT id FROM error_series ORDER BY seen_at DESC LIMIT -1 OFFSET ${ERROR_SERIES_KEPT}))
  RETURNING id`;
const FORGET_OF_SERIES = 'DELETE FROM error_history WHERE series = ?';
/** A number that is given is a REAL, which would not be divided into whole steps. */
const POINTS = `
  SELECT s.fingerprint, s.queue, s.name, h.at / CAST(:stepMs AS INTEGER) * CAST(:stepMs AS INTEGER) AS at,
    sum(h.failures) AS failures, sum(h.dead) AS dead
  FROM error_series s JOIN error_history h ON h.series = s.id AND h.step_ms = :bucket AND h.at >= :from AND h.at < :to
  WHERE substr(s.fingerprint, 1, length(:fingerprint)) = :fingerprint
    AND (:name IS NULL OR s.name = (SELECT id FROM strings WHERE text = :name))
    AND (:queue IS NULL OR s.queue = (SELECT id FROM strings WHERE text = :queue))
  GROUP BY s.id, 4`;

/** A run that is added up, as far as it is concerned here. */
export interface EndedWithError {
  readonly at: number;
  readonly home_queue: number;
  readonly name: number;
  readonly outcome: OutcomeKind;
  readonly is_dead: number;
  /** Its number. */
  readonly error: number | null;
}

interface Failed {
  readonly fingerprint: string;
  readonly queue: number;
  readonly name: number;
  readonly at: number;
  failures: number;
  dead: number;
}

/** First by five minutes, which leaves few: each is then written to the buckets of both sizes. */
export function addFailures(session: Session, runs: readonly EndedWithError[]): void {
  const failed = byStep(session, runs);
  if (failed.length === 0) return;
  let { series } = session.sql(COUNT).get() as { series: number };
  for (const { fingerprint, queue, name, at, failures, dead } of failed) {
    let found = session.sql(FIND).get(fingerprint, queue, name) as { id: number } | undefined;
    if (found === undefined) {
      if (series >= ERROR_SERIES) continue;
      found = session.sql(INSERT).get(fingerprint, queue, name) as { id: number };
      series++;
    }
    session.sql(SEE).run(found.id, at);
    for (const { stepMs } of errorHistorySteps) {
      session.sql(ADD).run(found.id, stepMs, startOf(at, stepMs), failures, dead);
    }
  }
}

export function forgetFailures(session: Session): void {
  const { now } = session;
  for (const { stepMs, keptMs } of errorHistorySteps) session.sql(FORGET).run(stepMs, now - keptMs);
  const gone = session.sql(FORGET_SERIES).all(now - HOURS.keptMs, now - ERROR_SERIES_SAFE_MS) as { id: number }[];
  for (const { id } of gone) session.sql(FORGET_OF_SERIES).run(id);
}

export function errorHistory(session: Session, request: ErrorHistoryRequest): StoreErrorHistory {
  const { from, to, stepMs, fingerprint = '', name = null, queue = null } = request;
  const bucket = bucketOf(stepMs, errorHistorySteps);
  const rows = session.sql(POINTS).all({ from, to, stepMs, bucket, fingerprint, name, queue });
  const named = (rows as unknown as (Failed & { queue: number; name: number })[]).map(
    (row): ErrorHistoryRow => ({
      ...row,
      queue: session.strings.text(row.queue),
      name: session.strings.text(row.name),
    }),
  );
  return { now: session.now, upTo: upToOf(session), series: toErrorSeries(named) };
}

function byStep(session: Session, runs: readonly EndedWithError[]): Failed[] {
  const errors = new Map<number, StoredError>();
  const failed = new Map<string, Failed>();
  for (const { at: settledAt, home_queue: queue, name, outcome, is_dead, error: id } of runs) {
    if (id === null) continue;
    const error = errors.get(id) ?? (JSON.parse(session.errors.text(id)) as StoredError);
    errors.set(id, error);
    const fingerprint = failureOf({ outcome, error });
    if (fingerprint === null) continue;
    const at = startOf(settledAt, FINE.stepMs);
    const key = `${at} ${queue} ${name} ${fingerprint}`;
    const sum = failed.get(key) ?? { fingerprint, queue, name, at, failures: 0, dead: 0 };
    failed.set(key, sum);
    sum.failures++;
    sum.dead += is_dead;
  }
  return [...failed.values()].sort((a, b) => a.at - b.at);
}
