import { unexpected } from '../config.ts';
import { type Duration, parseDuration } from '../duration.ts';
import { checkBySchema } from './check.ts';
import { type answers, MOST_JOBS_PER_SECOND, scenarioSchema } from './schema.ts';

export type AnswerKind = (typeof answers)[number];

/** Jobs that call one dependency, and what happens to it. Plain JSON: see `scenarioSchema`, which says what each field means. */
export interface Scenario {
  readonly $schema?: string;
  readonly name?: string;
  readonly description?: string;
  readonly duration: Duration;
  readonly drain?: Duration;
  readonly arrivals: Arrivals;
  readonly dependency: DependencyOptions;
  readonly poison?: { readonly share: number; readonly answer?: AnswerKind };
  readonly workers?: number;
  readonly concurrency?: number;
  readonly retryShare?: number;
  readonly limit?: {
    readonly concurrency?: number;
    readonly rate?: { readonly limit: number; readonly per: Duration };
  };
}

export type Arrivals =
  | { readonly kind: 'constant'; readonly rate: number }
  | {
      readonly kind: 'daily';
      readonly mean: number;
      readonly peak: number;
      readonly peakAt?: Duration;
      readonly period?: Duration;
    }
  | { readonly kind: 'burst'; readonly rate: number; readonly jobs: number; readonly at: Duration };

export type ServiceTime =
  | { readonly kind: 'fixed' | 'exponential'; readonly mean: Duration }
  | { readonly kind: 'lognormal'; readonly median: Duration; readonly p99: Duration };

export interface DependencyOptions {
  readonly serviceTime: ServiceTime;
  readonly capacity?: number;
  readonly overload?: 'fails' | 'metastable';
  readonly overloadAnswer?: AnswerKind;
  readonly retryAfter?: Duration;
  readonly callTimeout?: Duration;
  readonly errors?: Readonly<Partial<Record<AnswerKind, number>>>;
  readonly outages?: readonly OutageOptions[];
}

export interface OutageOptions {
  readonly from: Duration;
  readonly until: Duration;
  readonly answer?: AnswerKind;
  readonly share?: number;
  readonly slowdown?: number;
  readonly every?: Duration;
  readonly times?: number;
}

/** Simulating more would take hours, and the memory of all its jobs. */
const MOST_JOBS = 2_000_000;
const LONGEST_MS = 7 * 24 * 60 * 60_000;

/** A checked scenario: times in ms since its beginning, and every default filled in. */
export interface ReadScenario {
  readonly name: string;
  readonly description: string;
  readonly durationMs: number;
  readonly drainMs: number;
  readonly arrivals: ReadArrivals;
  readonly dependency: ReadDependency;
  readonly poison: { readonly share: number; readonly answer: AnswerKind };
  readonly workers: number;
  readonly concurrency: number;
  readonly retryShare: number;
  readonly limit: Scenario['limit'] | null;
}

export type ReadArrivals =
  | { readonly kind: 'constant'; readonly rate: number }
  | {
      readonly kind: 'daily';
      readonly mean: number;
      readonly peak: number;
      readonly peakAtMs: number;
      readonly periodMs: number;
    }
  | { readonly kind: 'burst'; readonly rate: number; readonly jobs: number; readonly atMs: number };

export interface ReadDependency {
  readonly serviceTime:
    | { readonly kind: 'fixed' | 'exponential'; readonly meanMs: number }
    | { readonly kind: 'lognormal'; readonly medianMs: number; readonly p99Ms: number };
  readonly capacity: number | null;
  readonly overload: 'fails' | 'metastable';
  readonly overloadAnswer: AnswerKind;
  readonly retryAfterMs: number | null;
  readonly callTimeoutMs: number;
  readonly errors: readonly { readonly answer: AnswerKind; readonly share: number }[];
  readonly outages: readonly Outage[];
}

/** One time of trouble; a repeated one is several of these. */
export interface Outage {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly answer: AnswerKind;
  readonly share: number;
  readonly slowdown: number;
}

/** Throws a ConfigError that says which field is wrong, what it expects and what it got. */
export function readScenario(scenario: unknown, what = 'scenario'): ReadScenario {
  checkBySchema(scenario, scenarioSchema, what);
  const given = scenario as Scenario;
  const { name = 'scenario', description = '', poison, limit = null } = given;
  const durationMs = readLength(given.duration, `${what}.duration`, 1_000);
  const arrivals = readArrivals(given.arrivals, durationMs, `${what}.arrivals`);
  checkJobs(arrivals, durationMs, what);
  return {
    name,
    description,
    durationMs,
    drainMs: readLength(given.drain ?? '10m', `${what}.drain`, 0),
    arrivals,
    dependency: readDependency(given.dependency, durationMs, `${what}.dependency`),
    poison: { share: poison?.share ?? 0, answer: poison?.answer ?? 'bug' },
    workers: given.workers ?? 3,
    concurrency: given.concurrency ?? 20,
    retryShare: given.retryShare ?? 0.2,
    limit,
  };
}

function readLength(duration: Duration, what: string, leastMs: number): number {
  const ms = parseDuration(duration, what);
  if (ms >= leastMs && ms <= LONGEST_MS) return ms;
  throw unexpected(what, `a duration from ${leastMs === 0 ? '0s' : '1s'} to 7d`, duration);
}

function readArrivals(arrivals: Arrivals, durationMs: number, what: string): ReadArrivals {
  switch (arrivals.kind) {
    case 'constant':
      return arrivals;
    case 'daily': {
      const { mean, peak, period = '24h' } = arrivals;
      if (peak < mean || peak > 2 * mean) throw unexpected(`${what}.peak`, `from the mean to twice the mean`, peak);
      const periodMs = readLength(period, `${what}.period`, 1_000);
      const peakAtMs = parseDuration(arrivals.peakAt ?? periodMs / 2, `${what}.peakAt`);
      return { kind: 'daily', mean, peak, peakAtMs, periodMs };
    }
    case 'burst': {
      const atMs = parseDuration(arrivals.at, `${what}.at`);
      if (atMs >= durationMs) throw unexpected(`${what}.at`, 'a time before the end of `duration`', arrivals.at);
      return { kind: 'burst', rate: arrivals.rate, jobs: arrivals.jobs, atMs };
    }
  }
}

function checkJobs(arrivals: ReadArrivals, durationMs: number, what: string): void {
  const perSecond = arrivals.kind === 'daily' ? arrivals.mean : arrivals.rate;
  const jobs = (perSecond * durationMs) / 1_000 + (arrivals.kind === 'burst' ? arrivals.jobs : 0);
  if (jobs <= MOST_JOBS) return;
  const hint = `Choose a lower rate (at most ${MOST_JOBS_PER_SECOND} jobs per second) or a shorter duration.`;
  throw unexpected(what, `at most ${MOST_JOBS} jobs in all`, Math.round(jobs), hint);
}

function readDependency(given: DependencyOptions, durationMs: number, what: string): ReadDependency {
  const { capacity = null, overload = 'fails', overloadAnswer = 'unavailable', retryAfter, outages = [] } = given;
  const errors = Object.entries(given.errors ?? {}).map(([answer, share]) => ({ answer: answer as AnswerKind, share }));
  // Decimal shares such as 0.7, 0.2 and 0.1 rarely add up to exactly 1.
  const together = Number(errors.reduce((sum, { share }) => sum + share, 0).toFixed(9));
  if (together > 1) throw unexpected(`${what}.errors`, 'shares that are together at most 1', together);
  return {
    serviceTime: readServiceTime(given.serviceTime, `${what}.serviceTime`),
    capacity,
    overload,
    overloadAnswer,
    retryAfterMs: retryAfter === undefined ? null : parseDuration(retryAfter, `${what}.retryAfter`),
    callTimeoutMs: parseDuration(given.callTimeout ?? '10s', `${what}.callTimeout`),
    errors,
    outages: outages.flatMap((outage, index) => readOutage(outage, durationMs, `${what}.outages[${index}]`)),
  };
}

function readServiceTime(given: ServiceTime, what: string): ReadDependency['serviceTime'] {
  if (given.kind !== 'lognormal') return { kind: given.kind, meanMs: parseDuration(given.mean, `${what}.mean`) };
  const medianMs = parseDuration(given.median, `${what}.median`);
  const p99Ms = parseDuration(given.p99, `${what}.p99`);
  if (medianMs === 0 || p99Ms < medianMs)
    throw unexpected(`${what}.p99`, 'at least the median, which is above 0', given.p99);
  return { kind: 'lognormal', medianMs, p99Ms };
}

function readOutage(given: OutageOptions, durationMs: number, what: string): Outage[] {
  const { answer = 'refused', share = 1, slowdown = 1, every, times } = given;
  const fromMs = parseDuration(given.from, `${what}.from`);
  const untilMs = parseDuration(given.until, `${what}.until`);
  if (untilMs <= fromMs) throw unexpected(`${what}.until`, 'a time after `from`', given.until);
  if ((every === undefined) !== (times === undefined)) {
    throw unexpected(
      what,
      '`every` and `times` together, or neither',
      every === undefined ? 'times alone' : 'every alone',
    );
  }
  const everyMs = every === undefined ? 0 : parseDuration(every, `${what}.every`);
  if (every !== undefined && everyMs < untilMs - fromMs)
    throw unexpected(`${what}.every`, 'at least as long as the outage', every);
  if (untilMs > durationMs) throw unexpected(`${what}.until`, 'a time up to the end of `duration`', given.until);
  if (times !== undefined && untilMs + (times - 1) * everyMs > durationMs) {
    const most = Math.floor((durationMs - untilMs) / everyMs) + 1;
    throw unexpected(`${what}.times`, `at most ${most}, so that the last ends within \`duration\``, times);
  }
  return Array.from({ length: times ?? 1 }, (_, index) => ({
    fromMs: fromMs + index * everyMs,
    untilMs: untilMs + index * everyMs,
    answer,
    share,
    slowdown,
  }));
}
