import type { Moment } from '../bulk/selection.ts';
import { checkName, namesOf, readOptions } from '../config.ts';
import type { Duration } from '../duration.ts';
import { addCounts, historySteps, noCounts, runTimeBounds } from '../store/history.ts';
import type { HistoryCounts, Store } from '../store/store.ts';
import { type RangeBounds, readRange, stepsOf } from './history-range.ts';

/** So many steps at most: a chart has no more pixels for them, and each is a line of the answer. */
export const MOST_POINTS = 500;
const DEFAULT_FROM = '1h';
const bounds: RangeBounds = {
  what: 'history',
  steps: historySteps,
  wholeUnits: 'whole minutes',
  goodPoints: 300,
  mostPoints: MOST_POINTS,
};

export interface HistoryOptions {
  /** A Date, or how long ago: `'24h'`. Default 1 h. Minutes are kept for 2 days, hours for 90. */
  readonly from?: Moment;
  /** Default now. */
  readonly to?: Moment;
  /** The length of a step: whole minutes, or whole hours when the range begins more than 2 days ago. 500 steps at most. */
  readonly step?: Duration;
  /** Only runs of jobs of this name. */
  readonly name?: string;
}

const optionNames = namesOf<HistoryOptions>({ from: true, to: true, step: true, name: true });

/** Runs that ended within some time. */
export interface HistoryFigures {
  /** All but those of jobs that were handed back unrun. */
  readonly runs: number;
  readonly completed: number;
  /** Failed, crashed, or deferred by a gate. */
  readonly failed: number;
  /** Counted runs that were not their job's first attempt. */
  readonly retries: number;
  /** Jobs that died. */
  readonly dead: number;
  /** Time that runs took in all, without those that crashed. */
  readonly runMs: number;
  /** Half of the runs, and 95 of 100, took no longer; from a histogram, so within a bin of 1, 2, 5, 10, ... ms. Null without runs. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

export interface HistoryPoint extends HistoryFigures {
  /** The start of the step; ms since the epoch. */
  readonly at: number;
}

export interface HistoryName extends HistoryFigures {
  readonly name: string;
}

/** Runs over time, of all processes; it outlives the ledger. Times are ms since the epoch, by the store's clock. */
export interface History {
  readonly from: number;
  readonly to: number;
  readonly stepMs: number;
  /** Store time of this answer. */
  readonly now: number;
  /** Runs that ended until then are counted: usually less than a minute ago, while a worker runs. */
  readonly upTo: number;
  readonly total: HistoryFigures;
  /** Every step from `from` to `to`, those without runs too. */
  readonly points: readonly HistoryPoint[];
  /** The whole range by job name, those with the most run time first. Empty when one name was asked for. */
  readonly names: readonly HistoryName[];
  /** Runs of names beyond the first 200; null when there are none. */
  readonly others: HistoryFigures | null;
}

export async function readHistory(store: Store, options: HistoryOptions, now: number): Promise<History> {
  const { name, ...range } = readOptions(options, optionNames, 'history');
  const steps = readRange({ from: DEFAULT_FROM, ...range }, now, bounds);
  const only = name === undefined ? {} : { name: checkName(name, 'history: name') };
  const read = await store.history({ ...steps, ...only });
  const total = sumOf(read.points);
  const byStep = new Map(read.points.map((point) => [point.at, point]));
  return {
    ...steps,
    now: read.now,
    upTo: read.upTo,
    total: figures(total),
    points: stepsOf(steps).map((at) => ({ at, ...figures(byStep.get(at) ?? noCounts()) })),
    names: read.names.map((own) => ({ name: own.name, ...figures(own) })),
    others: name === undefined ? othersOf(total, sumOf(read.names)) : null,
  };
}

function sumOf(all: readonly HistoryCounts[]): HistoryCounts {
  const sum = noCounts();
  for (const counts of all) addCounts(sum, counts);
  return sum;
}

/** What the total has more than the names. Names are read after the total, so they may be a little ahead. */
function othersOf(total: HistoryCounts, named: HistoryCounts): HistoryFigures | null {
  if (total.runs <= named.runs) return null;
  const rest = noCounts();
  addCounts(rest, total);
  for (const counter of ['runs', 'completed', 'failed', 'retries', 'dead', 'runMs'] as const) {
    rest[counter] = Math.max(0, total[counter] - named[counter]);
  }
  rest.runTimes = total.runTimes.map((runs, bin) => Math.max(0, runs - (named.runTimes[bin] ?? 0)));
  return figures(rest);
}

function figures({ runs, completed, failed, retries, dead, runMs, runTimes }: HistoryCounts): HistoryFigures {
  const [p50Ms, p95Ms] = [quantile(runTimes, 0.5), quantile(runTimes, 0.95)];
  return { runs, completed, failed, retries, dead, runMs, p50Ms, p95Ms };
}

/** As if the runs of a bin were spread over it evenly. The last bin has no end: its start is the answer. */
export function quantile(runTimes: readonly number[], share: number): number | null {
  const all = runTimes.reduce((sum, runs) => sum + runs, 0);
  if (all === 0) return null;
  let left = all * share;
  for (const [bin, runs] of runTimes.entries()) {
    if (runs > 0 && left <= runs) {
      const [start, end] = [runTimeBounds[bin - 1] ?? 0, runTimeBounds[bin]];
      return end === undefined ? start : Math.round((start + (end - start) * (left / runs)) * 10) / 10;
    }
    left -= runs;
  }
  return runTimeBounds.at(-1) as number;
}
