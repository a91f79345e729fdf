import type { Moment } from '../bulk/selection.ts';
import { checkName, namesOf, readOptions } from '../config.ts';
import type { Duration } from '../duration.ts';
import { errorHistorySteps } from '../store/error-history.ts';
import type { Store } from '../store/store.ts';
import { type RangeBounds, readRange, stepsOf } from './history-range.ts';

const DEFAULT_FROM = '24h';
const bounds: RangeBounds = {
  what: 'errors.history',
  steps: errorHistorySteps,
  wholeUnits: 'a whole number of 5 minutes',
  goodPoints: 60,
  mostPoints: 200,
};

export interface ErrorHistoryOptions {
  /** Only errors of this fingerprint, or of those that begin so. */
  readonly error?: string;
  /** Only jobs of this name. */
  readonly name?: string;
  /** Only jobs that were enqueued in this queue. */
  readonly queue?: string;
  /** A Date, or how long ago: `'1h'`. Default 24 h. Steps of 5 minutes are kept for 2 days, hours for 90. */
  readonly from?: Moment;
  /** Default now. */
  readonly to?: Moment;
  /** The length of a step: a whole number of 5 minutes, or of hours when the range begins more than 2 days ago. 200 steps at most. */
  readonly step?: Duration;
}

const optionNames = namesOf<ErrorHistoryOptions>({
  error: true,
  name: true,
  queue: true,
  from: true,
  to: true,
  step: true,
});

/** Failures of one error group in one queue and job name. */
export interface ErrorSeries {
  readonly fingerprint: string;
  readonly name: string;
  readonly queue: string;
  /** Runs that failed with it, for every step of the range. */
  readonly failures: readonly number[];
  /** Those of them with which their job died. */
  readonly dead: readonly number[];
}

/** Failures over time by kind of error; it outlives jobs and groups. Times are ms since the epoch, by the store's clock. */
export interface ErrorHistory {
  readonly from: number;
  readonly to: number;
  readonly stepMs: number;
  /** Store time of this answer. */
  readonly now: number;
  /** Runs that ended until then are counted: usually less than a minute ago, while a worker runs. */
  readonly upTo: number;
  /** Those that failed in this time, the most failures first; about 400 at most. */
  readonly series: readonly ErrorSeries[];
}

export async function readErrorHistory(store: Store, options: ErrorHistoryOptions, now: number): Promise<ErrorHistory> {
  const { what } = bounds;
  const { error, name, queue, ...range } = readOptions(options, optionNames, what);
  const steps = readRange({ from: DEFAULT_FROM, ...range }, now, bounds);
  const read = await store.errorHistory({
    ...steps,
    ...(error === undefined ? {} : { fingerprint: checkName(error, `${what}: error`) }),
    ...(name === undefined ? {} : { name: checkName(name, `${what}: name`) }),
    ...(queue === undefined ? {} : { queue: checkName(queue, `${what}: queue`) }),
  });
  const starts = stepsOf(steps);
  return {
    ...steps,
    now: read.now,
    upTo: read.upTo,
    series: read.series.map(({ points, ...series }) => {
      const byStep = new Map(points.map((point) => [point.at, point]));
      return {
        ...series,
        failures: starts.map((at) => byStep.get(at)?.failures ?? 0),
        dead: starts.map((at) => byStep.get(at)?.dead ?? 0),
      };
    }),
  };
}
