import type { AnyJobDefinition } from '../definition.ts';
import { formatDuration, span } from '../duration.ts';
import { PROBE_LONGEST_KEYED_MS, PROBE_LONGEST_MS } from '../gate/constants.ts';
import type { LimitDefinition } from '../limit/options.ts';
import { spaceOf } from '../limit/rate.ts';
import { delayBefore } from '../retry/jitter.ts';
import type { RetryPolicy } from '../retry/policy.ts';
import type { WarningName } from './names.ts';

/*
 * Settings that cannot survive what they face. Each check reads settings alone, so that it gives the same answer at the start
 * of a worker and on the command line. A setting that is merely unusual gets no warning: those who keep the defaults, or one
 * of the presets, must not be told about what they did not choose.
 */

/** What the checks read: a policy as its jobs get it, and what the definition and the worker say beside it. */
export interface CheckedSettings {
  readonly policy: RetryPolicy;
  readonly job: Pick<AnyJobDefinition, 'resource' | 'timeoutMs' | 'limits' | 'backoff' | 'run'>;
  readonly leaseMs: number;
  /** How many jobs run at once, over all workers that are known. */
  readonly places: number;
}

export interface PolicyWarning {
  readonly name: WarningName;
  /** What is wrong, with the figures. */
  readonly problem: string;
  /** What to do. */
  readonly advice: string;
}

type Check = (settings: CheckedSettings) => Omit<PolicyWarning, 'name'> | null;

/** So many retries at one moment are a burst that a dependency notices. */
const MANY_PLACES = 20;

const checks: Readonly<Record<WarningName, Check>> = {
  'short-window': shortWindow,
  'no-jitter': noJitter,
  'timeout-beyond-lease': timeoutBeyondLease,
  'timeout-beyond-deadline': timeoutBeyondDeadline,
  'attempts-beyond-deadline': attemptsBeyondDeadline,
  'concurrency-above-total': concurrencyAboveTotal,
  'rate-beyond-deadline': rateBeyondDeadline,
};

/** The warnings that these settings deserve, without those that are silenced. */
export function checkPolicy(settings: CheckedSettings, silenced: readonly WarningName[] = []): PolicyWarning[] {
  return Object.entries(checks).flatMap(([name, check]) => {
    if (silenced.includes(name as WarningName)) return [];
    const found = check(settings);
    return found === null ? [] : [{ name: name as WarningName, ...found }];
  });
}

/** Without any gate every failure counts, so the attempts must last until a dependency that was down is found to be back. */
function shortWindow({ policy, job }: CheckedSettings): ReturnType<Check> {
  if (job.resource !== false || policy.maxAttempts === 1 || job.backoff !== undefined) return null;
  const windowMs = typicalWaits(policy).reduce((sum, waitMs) => sum + waitMs, 0);
  if (windowMs >= PROBE_LONGEST_MS) return null;
  return {
    problem: `its ${policy.maxAttempts} attempts are used up ${span(windowMs)} after the first on average, and resource: false lets each failure of an outage count. Even a gate needs up to ${formatDuration(PROBE_LONGEST_MS)} (${formatDuration(PROBE_LONGEST_KEYED_MS)} with keys) to notice that a dependency is back.`,
    advice: `Name the resource, or leave it out for a soft gate; or choose a policy that waits for longer, such as policies.patient.`,
  };
}

function noJitter({ policy, job, places }: CheckedSettings): ReturnType<Check> {
  if (policy.jitter !== 'none' || policy.maxAttempts === 1 || job.backoff !== undefined) return null;
  const together = Math.min(places, ...job.limits.map(mostAtOnce));
  if (together <= MANY_PLACES) return null;
  return {
    problem: `jitter: 'none' with ${together} jobs at once: those that fail together are retried together, up to ${together} at the same moment, each time.`,
    advice: `Use jitter: 'full', or { spread: 0.2 } to stay near the delays.`,
  };
}

/** Leases are renewed from the event loop, so only a handler that blocks it outlives its lease. */
function timeoutBeyondLease({ job, leaseMs }: CheckedSettings): ReturnType<Check> {
  const { timeoutMs, run } = job;
  if (timeoutMs === null || timeoutMs <= leaseMs || run === undefined || isAsync(run)) return null;
  return {
    problem: `its timeout of ${formatDuration(timeoutMs)} is longer than the lease of ${formatDuration(leaseMs)}, and its handler is not an async function. While it blocks the event loop no lease is renewed: after ${formatDuration(leaseMs)} another worker starts the job a second time, and this run counts as a crash.`,
    advice: `Call context.extend before work that blocks, move that work to a worker thread, or give work() a lease above ${formatDuration(timeoutMs)}.`,
  };
}

function timeoutBeyondDeadline({ policy, job }: CheckedSettings): ReturnType<Check> {
  const { timeoutMs } = job;
  const { deadlineMs, maxAttempts } = policy;
  if (timeoutMs === null || deadlineMs === null || maxAttempts === 1 || timeoutMs < deadlineMs) return null;
  return {
    problem: `its timeout of ${formatDuration(timeoutMs)} reaches its deadline of ${formatDuration(deadlineMs)}: a run that times out is never retried.`,
    advice: `Set a timeout of at most ${span(deadlineMs / maxAttempts)}, which leaves time for ${maxAttempts} attempts, or a longer deadline.`,
  };
}

function attemptsBeyondDeadline({ policy, job }: CheckedSettings): ReturnType<Check> {
  const { deadlineMs, maxAttempts } = policy;
  if (deadlineMs === null || job.backoff !== undefined) return null;
  const waits = typicalWaits(policy);
  const totalMs = waits.reduce((sum, waitMs) => sum + waitMs, 0);
  if (totalMs <= deadlineMs) return null;
  let passedMs = 0;
  const beyond = waits.findIndex((waitMs) => {
    passedMs += waitMs;
    return passedMs > deadlineMs;
  });
  const reached = beyond + 1;
  return {
    problem: `its ${maxAttempts} attempts need waits of ${span(totalMs)} in all on average, and the deadline ends it ${formatDuration(deadlineMs)} after the first start: about ${reached} of them are made.`,
    advice: `Set maxAttempts to ${reached}, a deadline above ${span(totalMs)}, or shorter delays.`,
  };
}

function concurrencyAboveTotal({ job }: CheckedSettings): ReturnType<Check> {
  const limit = job.limits.find(({ settings: { concurrency, total } }) => (concurrency ?? 0) > (total ?? Infinity));
  if (limit === undefined) return null;
  const { concurrency, total } = limit.settings;
  return {
    problem: `limit ${limit.name}: one key may run ${concurrency} jobs at once, but all keys together only ${total}: a key never reaches its concurrency, and one key can take all places.`,
    advice: `Set concurrency below total, or leave one of them out.`,
  };
}

/** A retry is a start of its key as well, and with a burst of 1 the next start comes a whole space after the last. */
function rateBeyondDeadline({ policy, job }: CheckedSettings): ReturnType<Check> {
  const { deadlineMs, maxAttempts } = policy;
  if (deadlineMs === null || maxAttempts === 1) return null;
  for (const { name, settings } of job.limits) {
    const { rate } = settings;
    if (rate === null || rate.burst > 1 || spaceOf(rate) <= deadlineMs) continue;
    return {
      problem: `limit ${name}: a key starts one job in ${span(spaceOf(rate))}, and a job ends ${formatDuration(deadlineMs)} after its first start (deadline): no retry can ever start in time.`,
      advice: `Set a deadline above ${span(spaceOf(rate))}, a higher rate, or maxAttempts: 1.`,
    };
  }
  return null;
}

/** The waits of a job that fails every time, each at the middle of what jitter can make of it. */
function typicalWaits(policy: RetryPolicy): number[] {
  const waits: number[] = [];
  for (let spent = 1; spent < Math.min(policy.maxAttempts, MOST_WAITS); spent++) {
    waits.push(delayBefore(policy, spent, waits.at(-1) ?? null, () => 0.5));
  }
  return waits;
}

/** More attempts than this outlast any deadline that a policy with a growing delay can have. */
const MOST_WAITS = 10_000;

/** How many jobs of one definition a limit lets run at once; only where all jobs share one key is that its concurrency. */
function mostAtOnce({ key, settings }: LimitDefinition): number {
  return Math.min(settings.total ?? Infinity, key === null ? (settings.concurrency ?? Infinity) : Infinity);
}

function isAsync(run: (...args: never[]) => unknown): boolean {
  return Object.prototype.toString.call(run) === '[object AsyncFunction]';
}
