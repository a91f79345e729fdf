import type { Recorder } from './recorder.ts';
import type { ReadScenario } from './scenario.ts';

/** What became of the jobs, and what it cost. Rates are per second. */
export interface Figures {
  readonly arrived: number;
  readonly completed: number;
  readonly dead: number;
  readonly deadByReason: Readonly<Record<string, number>>;
  /** Neither completed nor dead at the end. */
  readonly left: number;
  /** Calls to the dependency. */
  readonly calls: number;
  readonly failedCalls: number;
  /** Calls while an outage lasted. */
  readonly callsInOutage: number;
  /** Calls that were not the first of their job. */
  readonly retries: number;
  /** Attempts that failed, counted and were not given back. */
  readonly attemptsBurnt: number;
  /** Runs that failed in an outage and did not count, and attempts that were given back later. */
  readonly attemptsSpared: number;
  /** Calls per second before the first trouble, or over the whole run when there is none. */
  readonly healthyRate: number;
  /** Calls per second in the busiest 10 s after the trouble began. */
  readonly peakRate: number;
  readonly peakOverHealthy: number;
  /** The most jobs that waited at the end of a step. */
  readonly largestBacklog: number;
  /** From the end of the trouble until the backlog was as before, for good. Null: never, or there was no trouble. */
  readonly recoveredAfterMs: number | null;
  /** From arrival to completion, of the jobs that completed; null when none did. */
  readonly medianMs: number | null;
  readonly p99Ms: number | null;
}

const PEAK_SECONDS = 10;

export function figuresOf(scenario: ReadScenario, recorder: Recorder, stepMs: number): Figures {
  const series = recorder.series();
  const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
  const trouble = troubleOf(scenario);
  const { callsPerSecond, completionTimes, attemptsSpared } = recorder;
  const endSecond = Math.ceil(scenario.durationMs / 1_000);
  const healthySeconds = Math.floor((trouble?.fromMs ?? scenario.durationMs) / 1_000) || endSecond;
  const healthyRate = between(callsPerSecond, 0, healthySeconds) / healthySeconds;
  const peakRate = busiest(callsPerSecond, Math.floor((trouble?.fromMs ?? 0) / 1_000));
  const backlog = backlogOf(series.backlog);
  const sorted = completionTimes.toSorted((a, b) => a - b);
  return {
    arrived: total(series.arrivals),
    completed: completionTimes.length,
    dead: total(series.dead),
    deadByReason: { ...recorder.deadByReason },
    left: recorder.left,
    calls: total(series.calls),
    failedCalls: total(series.failures),
    callsInOutage: callsIn(scenario.dependency.outages, callsPerSecond),
    retries: total(series.retries),
    attemptsBurnt: total(series.attemptsBurnt),
    attemptsSpared,
    healthyRate: rounded(healthyRate),
    peakRate: rounded(peakRate),
    peakOverHealthy: healthyRate === 0 ? 0 : rounded(peakRate / healthyRate),
    largestBacklog: Math.max(0, ...backlog),
    recoveredAfterMs: trouble === null ? null : recoveredAfter(backlog, trouble, healthyRate, stepMs),
    medianMs: percentile(sorted, 0.5),
    p99Ms: percentile(sorted, 0.99),
  };
}

/** Outages may overlap: a call in two of them is one call. */
function callsIn(outages: ReadScenario['dependency']['outages'], callsPerSecond: readonly number[]): number {
  let calls = 0;
  let countedUntil = 0;
  for (const { fromMs, untilMs } of outages.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const until = Math.ceil(untilMs / 1_000);
    calls += between(callsPerSecond, Math.max(countedUntil, Math.floor(fromMs / 1_000)), until);
    countedUntil = Math.max(countedUntil, until);
  }
  return calls;
}

/** From the first outage or burst to the last; null when the scenario has none. */
export function troubleOf({ dependency, arrivals }: ReadScenario): { fromMs: number; untilMs: number } | null {
  const times = dependency.outages.map(({ fromMs, untilMs }) => ({ fromMs, untilMs }));
  if (arrivals.kind === 'burst') times.push({ fromMs: arrivals.atMs, untilMs: arrivals.atMs });
  if (times.length === 0) return null;
  return {
    fromMs: Math.min(...times.map(({ fromMs }) => fromMs)),
    untilMs: Math.max(...times.map(({ untilMs }) => untilMs)),
  };
}

function backlogOf(byLane: Readonly<Record<string, readonly number[]>>): number[] {
  const all = Object.values(byLane);
  return (all[0] ?? []).map((_, step) => all.reduce((sum, values) => sum + (values[step] ?? 0), 0));
}

/** As before: no more than ever waited before the trouble, or than arrives in a second. */
function recoveredAfter(
  backlog: readonly number[],
  { fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number },
  healthyRate: number,
  stepMs: number,
): number | null {
  // Of the steps that ended before it: one that ends with it has seen its burst.
  const before = backlog.slice(0, Math.max(0, Math.ceil(fromMs / stepMs) - 1));
  const usual = Math.max(healthyRate, ...before);
  const lastAbove = backlog.findLastIndex((waiting) => waiting > usual);
  if (lastAbove === backlog.length - 1) return null;
  return Math.max(0, (lastAbove + 2) * stepMs - untilMs);
}

function between(perSecond: readonly number[], from: number, until: number): number {
  let sum = 0;
  for (let second = from; second < Math.min(until, perSecond.length); second++) sum += perSecond[second] ?? 0;
  return sum;
}

function busiest(perSecond: readonly number[], from: number): number {
  let most = 0;
  for (let second = from; second < perSecond.length; second++) {
    most = Math.max(most, between(perSecond, second, second + PEAK_SECONDS));
  }
  return most / PEAK_SECONDS;
}

function percentile(sorted: readonly number[], share: number): number | null {
  const found = sorted[Math.floor(share * (sorted.length - 1))];
  return found === undefined ? null : Math.round(found);
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
