import { BUCKET_MS, BUCKETS, SLOW_SPAN_MS } from './constants.ts';
import type { GateReport } from './evidence.ts';
import { countJobs, type JobBits, join, joinWorkers, noJobs, type WorkerSet } from './sets.ts';
import { addToStreak, noStreak, type Streak, streakNow } from './streak.ts';

/** Five seconds of evidence. */
export interface Bucket {
  /** Store time divided by the length of a bucket. */
  readonly at: number;
  readonly alive: number;
  readonly environment: number;
  /** Runs that were asked to wait: throttled, or failed by the environment. */
  readonly asks: number;
  /** Jobs that failed by the environment, the workers that ran them, and the workers that saw a sign of life. */
  readonly jobs: JobBits;
  readonly failing: WorkerSet;
  readonly living: WorkerSet;
}

export interface Window {
  /** Oldest first, at most BUCKETS. */
  readonly buckets: readonly Bucket[];
  readonly streak: Streak;
  /** Runs of this span of 5 min and of the one before: how slow the traffic is. */
  readonly span: { readonly at: number; readonly runs: number; readonly before: number };
}

export interface WindowFigures {
  readonly alive: number;
  readonly environment: number;
  readonly asks: number;
  readonly distinctJobs: number;
  readonly failing: WorkerSet;
  readonly living: WorkerSet;
  readonly streak: number;
}

export const emptyWindow: Window = { buckets: [], streak: noStreak, span: { at: 0, runs: 0, before: 0 } };

export function addReport(window: Window, report: GateReport, now: number): Window {
  const at = Math.floor(now / BUCKET_MS);
  let buckets = fresh(window.buckets, at);
  for (const [place, alive] of spreadAlive(report, now)) {
    buckets = change(buckets, place, (bucket) => ({
      ...bucket,
      alive: bucket.alive + alive,
      living: joinWorkers(bucket.living, [report.worker]),
    }));
  }
  if (report.environment > 0) {
    buckets = change(buckets, at, (bucket) => ({
      ...bucket,
      environment: bucket.environment + report.environment,
      jobs: join(bucket.jobs, report.jobs),
      failing: joinWorkers(bucket.failing, [report.worker]),
    }));
  }
  if (report.asks > 0) {
    buckets = change(buckets, at, (bucket) => ({ ...bucket, asks: bucket.asks + report.asks }));
  }
  const runs = report.alive + report.throttled + report.environment;
  return { buckets, streak: addToStreak(window.streak, report, now), span: addToSpan(window.span, runs, now) };
}

/** Signs of life are gathered for up to 5 s before they are sent; counted in one bucket they would look like a peak. */
function spreadAlive({ alive, spanMs }: GateReport, now: number): [place: number, alive: number][] {
  if (alive === 0) return [];
  const span = Math.min(Math.max(spanMs, 1), BUCKET_MS * (BUCKETS - 1));
  const parts: [number, number][] = [];
  let left = alive;
  for (let place = Math.floor((now - span) / BUCKET_MS); place < Math.floor(now / BUCKET_MS); place++) {
    const overlapMs = (place + 1) * BUCKET_MS - Math.max(place * BUCKET_MS, now - span);
    const part = Math.min(left, Math.floor((alive * overlapMs) / span));
    if (part > 0) parts.push([place, part]);
    left -= part;
  }
  if (left > 0) parts.push([Math.floor(now / BUCKET_MS), left]);
  return parts;
}

function addToSpan(span: Window['span'], runs: number, now: number): Window['span'] {
  const at = Math.floor(now / SLOW_SPAN_MS);
  if (at === span.at) return { ...span, runs: span.runs + runs };
  return { at, runs, before: at === span.at + 1 ? span.runs : 0 };
}

/** Buckets of the future come from a clock that has stepped back; they go with the old ones. */
function fresh(buckets: readonly Bucket[], at: number): readonly Bucket[] {
  return buckets.filter((bucket) => bucket.at > at - BUCKETS && bucket.at <= at);
}

function change(buckets: readonly Bucket[], at: number, edit: (bucket: Bucket) => Bucket): readonly Bucket[] {
  const old = buckets.find((bucket) => bucket.at === at);
  const bucket = edit(old ?? { at, alive: 0, environment: 0, asks: 0, jobs: noJobs, failing: [], living: [] });
  return [...buckets.filter((other) => other !== old), bucket].sort((a, b) => a.at - b.at);
}

/** The window as it is now: what has aged out is not counted. */
export function figuresOf(window: Window, now: number): WindowFigures {
  let [alive, environment, asks] = [0, 0, 0];
  let failing: WorkerSet = [];
  let living: WorkerSet = [];
  let jobs = noJobs;
  for (const bucket of fresh(window.buckets, Math.floor(now / BUCKET_MS))) {
    alive += bucket.alive;
    environment += bucket.environment;
    asks += bucket.asks;
    failing = joinWorkers(failing, bucket.failing);
    living = joinWorkers(living, bucket.living);
    jobs = join(jobs, bucket.jobs);
  }
  const distinctJobs = countJobs(jobs);
  return {
    alive,
    environment,
    asks,
    distinctJobs,
    failing,
    living,
    streak: streakNow(window.streak, now).count,
  };
}

export function shareIn({ alive, environment }: Pick<WindowFigures, 'alive' | 'environment'>): number {
  return environment === 0 ? 0 : environment / (alive + environment);
}

/** Runs of the last 5 to 10 minutes. */
export function recentRuns({ span }: Window, now: number): number {
  const at = Math.floor(now / SLOW_SPAN_MS);
  if (at === span.at) return span.runs + span.before;
  return at === span.at + 1 ? span.runs : 0;
}

/** Signs of life per second over 10 s that ended `buckets` buckets ago. */
export function rateOf(window: Window, now: number, buckets: number): number {
  const last = Math.floor(now / BUCKET_MS) - 1 - buckets;
  const alive = window.buckets.filter(({ at }) => at === last || at === last - 1).reduce((sum, b) => sum + b.alive, 0);
  return (alive * 1_000) / (2 * BUCKET_MS);
}

/** True when two or more workers have reported and only one of them fails. */
export function isOneWorkerAlone({ failing, living }: Pick<WindowFigures, 'failing' | 'living'>): boolean {
  return failing.length === 1 && joinWorkers(failing, living).length >= 2;
}
