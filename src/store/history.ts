import { DAY_MS, HOUR_MS, MINUTE_MS } from '../duration.ts';
import type { OutcomeKind } from '../retry/outcome.ts';

/*
 * History: how many runs ended, how, and how long they took, by minute and by hour, for each job name and for all. It is
 * added up from the ledger by `Store.rollUp`, which workers call every so often, and outlives the ledger. A run belongs to the
 * minute in which it was settled, by the store's clock.
 */

/** The sizes of buckets, and how long they are kept. */
export const historySteps: readonly [minutes: HistoryStep, hours: HistoryStep] = [
  { stepMs: MINUTE_MS, keptMs: 2 * DAY_MS },
  { stepMs: HOUR_MS, keptMs: 90 * DAY_MS },
];

export interface HistoryStep {
  readonly stepMs: number;
  readonly keptMs: number;
}

/** Only so many names have buckets of their own: runs of further ones are counted in the total alone. */
export const HISTORY_NAMES = 200;
/** Longer names are cut: an index entry has a largest size. */
export const HISTORY_NAME_LENGTH = 500;
/** The name of the buckets for all names: no job has it. */
export const ALL_NAMES = '';
/** How many ended runs one call adds up, or nearly so. */
export const ROLL_UP_ROWS = 2_000;

/** Upper bounds of run times in ms; the last bin has no bound. */
export const runTimeBounds: readonly number[] = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000,
];

/**
 * runs: those that ended, but for jobs that were handed back unrun. failed: failed, crashed, or deferred by a gate. retries:
 * counted runs that were not their job's first attempt. dead: jobs that died with their run. runMs: time taken, without
 * crashed runs.
 */
export const historyCounters = ['runs', 'completed', 'failed', 'retries', 'dead', 'runMs'] as const;
export type HistoryCounter = (typeof historyCounters)[number];

export interface HistoryCounts extends Readonly<Record<HistoryCounter, number>> {
  /** How many runs took how long, by `runTimeBounds`. */
  readonly runTimes: readonly number[];
}

export interface HistoryRequest {
  /** From the start of a step, to the start of another. */
  readonly from: number;
  readonly to: number;
  /** A whole number of minutes; a whole number of hours is read from the buckets of hours. */
  readonly stepMs: number;
  /** Only runs of jobs of this name. */
  readonly name?: string;
}

export interface StoreHistory {
  /** Store time of this answer. */
  readonly now: number;
  /** Runs that were settled until then are in it. */
  readonly upTo: number;
  /** Steps in which a run ended, by time. */
  readonly points: readonly (HistoryCounts & { readonly at: number })[];
  /** The whole range by name, those with the most run time first; left out when one name was asked for. */
  readonly names: readonly (HistoryCounts & { readonly name: string })[];
}

/** An ended run, as it is added up. */
export interface EndedRun {
  /** When it was settled. */
  readonly at: number;
  readonly name: string;
  readonly outcome: OutcomeKind;
  readonly counted: boolean;
  readonly attempt: number;
  readonly isDead: boolean;
  readonly runMs: number;
}

export type MutableCounts = Record<HistoryCounter, number> & { runTimes: number[] };

export function noCounts(): MutableCounts {
  const zeros = Object.fromEntries(historyCounters.map((counter) => [counter, 0])) as Record<HistoryCounter, number>;
  return { ...zeros, runTimes: new Array<number>(runTimeBounds.length + 1).fill(0) };
}

export function addCounts(sum: MutableCounts, more: HistoryCounts): void {
  for (const counter of historyCounters) sum[counter] += more[counter];
  for (const [bin, runs] of more.runTimes.entries()) sum.runTimes[bin] = (sum.runTimes[bin] ?? 0) + runs;
}

/** What one run adds. PostgreSQL says the same in SQL. */
export function addRun(
  sum: MutableCounts,
  { outcome, counted, attempt, isDead, runMs }: Omit<EndedRun, 'at' | 'name'>,
): void {
  if (outcome === 'released') return;
  sum.runs++;
  if (outcome === 'completed') sum.completed++;
  if (outcome === 'failed' || outcome === 'crashed' || outcome === 'deferred') sum.failed++;
  if (counted && attempt > 1) sum.retries++;
  if (isDead) sum.dead++;
  // A crash is noticed when the lease is over: how long it ran is not known.
  if (outcome === 'crashed') return;
  const took = Math.max(0, runMs);
  sum.runMs += took;
  const bin = runTimeBounds.findIndex((bound) => took < bound);
  const at = bin === -1 ? runTimeBounds.length : bin;
  sum.runTimes[at] = (sum.runTimes[at] ?? 0) + 1;
}

/** The buckets that a request is read from. */
export function bucketOf(stepMs: number, [fine, hours]: typeof historySteps = historySteps): number {
  return stepMs % hours.stepMs === 0 ? hours.stepMs : fine.stepMs;
}

export function startOf(at: number, stepMs: number): number {
  return Math.floor(at / stepMs) * stepMs;
}

export function byRunTime(a: HistoryCounts & { name: string }, b: HistoryCounts & { name: string }): number {
  return b.runMs - a.runMs || b.runs - a.runs || (a.name < b.name ? -1 : 1);
}
