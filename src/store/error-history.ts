import { DAY_MS, HOUR_MS, MINUTE_MS } from '../duration.ts';
import { type HistoryStep, historySteps } from './history.ts';

/*
 * Failures over time: how many runs failed with each kind of error, by steps of five minutes and of an hour, for each
 * fingerprint, queue and job name. `Store.rollUp` adds them up together with the history, so each failed run is counted once,
 * belongs to the step in which it was settled, and stays counted when its job is deleted.
 */

/** The sizes of buckets, and how long they are kept. */
export const errorHistorySteps: readonly [fine: HistoryStep, hours: HistoryStep] = [
  { stepMs: 5 * MINUTE_MS, keptMs: 2 * DAY_MS },
  historySteps[1],
];

/**
 * So many series (a fingerprint, a queue and a name) are counted at a time. When ERROR_SERIES_KEPT are exceeded, those that
 * failed longest ago go, so that a new kind of error finds room. Those of the last hour stay: errors whose messages differ
 * each time, and so are each a kind of their own, must not push out what fails all the time.
 */
export const ERROR_SERIES = 400;
export const ERROR_SERIES_KEPT = 350;
export const ERROR_SERIES_SAFE_MS: number = HOUR_MS;

export interface ErrorHistoryRequest {
  /** From the start of a step, to the start of another. */
  readonly from: number;
  readonly to: number;
  /** A whole number of five minutes; a whole number of hours is read from the buckets of hours. */
  readonly stepMs: number;
  /** Only fingerprints that begin so. */
  readonly fingerprint?: string;
  /** Only jobs of this name, or enqueued in this queue. */
  readonly name?: string;
  readonly queue?: string;
}

/** Runs that failed with an error of one kind within some time. dead: those of them with which their job died. */
export interface FailureCounts {
  readonly failures: number;
  readonly dead: number;
}

export interface StoredErrorSeries {
  readonly fingerprint: string;
  readonly queue: string;
  readonly name: string;
  /** Steps in which a run failed, by time. */
  readonly points: readonly (FailureCounts & { readonly at: number })[];
}

export interface StoreErrorHistory {
  /** Store time of this answer. */
  readonly now: number;
  /** Runs that were settled until then are in it. */
  readonly upTo: number;
  /** Those that failed in this time, the most failures first. */
  readonly series: readonly StoredErrorSeries[];
}

/** A step of a series, as SQL answers it. */
export interface ErrorHistoryRow extends FailureCounts {
  readonly fingerprint: string;
  readonly queue: string;
  readonly name: string;
  readonly at: number;
}

export function toErrorSeries(rows: readonly ErrorHistoryRow[]): StoredErrorSeries[] {
  const sum = ({ points }: StoredErrorSeries): number => points.reduce((total, { failures }) => total + failures, 0);
  const keyOf = ({ fingerprint, queue, name }: Omit<StoredErrorSeries, 'points'>): string =>
    JSON.stringify([fingerprint, queue, name]);
  return [...Map.groupBy(rows, keyOf).values()]
    .map((own): StoredErrorSeries => {
      const { fingerprint, queue, name } = own[0] as ErrorHistoryRow;
      const points = own.map(({ at, failures, dead }) => ({ at, failures, dead }));
      return { fingerprint, queue, name, points: points.sort((a, b) => a.at - b.at) };
    })
    .sort((a, b) => sum(b) - sum(a) || (keyOf(a) < keyOf(b) ? -1 : 1));
}
