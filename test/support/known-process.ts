import type { Decision } from '../../src/retry/decision.ts';
import type { StoredError } from '../../src/retry/outcome.ts';
import type { RetryPolicy } from '../../src/retry/policy.ts';
import { defaultPolicy } from '../../src/retry/resolve.ts';
import type { LedgerJob, LedgerRun } from '../../src/store/ledger.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';

/*
 * A ledger made by a known process, for tests: each error says how likely a retry succeeds. What advice should find is then
 * known beforehand.
 */

export interface KnownError {
  readonly error: StoredError & { readonly fingerprint: string };
  /** The chance that attempt n succeeds after it, so long after the first failure. */
  readonly succeeds: (attempt: number, elapsedMs: number) => number;
}

export interface KnownProcess {
  readonly errors: readonly KnownError[];
  readonly jobs: number;
  readonly seed?: number;
  readonly policy?: Partial<RetryPolicy>;
  /** Over how many hours the jobs are spread. */
  readonly hours?: number;
  readonly delayMs?: (attempt: number) => number;
}

const RUN_MS = 100;
const HOUR_MS = 3_600_000;
export const START = 1_767_225_600_000;

export function knownError(name: string, changes: Partial<StoredError> = {}): KnownError['error'] {
  return { name, message: `${name} failed`, code: null, status: null, stack: null, fingerprint: name, ...changes };
}

/** Jobs whose first attempt fails, each with one error of the process, drawn at random. */
export function makeLedger(process: KnownProcess): LedgerJob[] {
  const { errors, jobs, seed = 1, hours = 24, delayMs = () => 1_000 } = process;
  const chance = new VirtualClock({ seed });
  const maxAttempts = process.policy?.maxAttempts ?? defaultPolicy.maxAttempts;
  return Array.from({ length: jobs }, (_, index): LedgerJob => {
    const known = errors[Math.floor(chance.random() * errors.length)] as KnownError;
    const startedAt = START + Math.floor((index / jobs) * hours * HOUR_MS);
    const runs = runsOf(known, { startedAt, maxAttempts, delayMs, random: () => chance.random() });
    const last = runs.at(-1) as LedgerRun;
    const completed = last.outcome === 'completed';
    return {
      id: `job-${index}`,
      name: 'email.send',
      state: completed ? 'completed' : 'dead',
      deadReason: completed ? null : 'exhausted',
      resource: null,
      finishedAt: last.endedAt,
      policy: 0,
      part: null,
      runs,
    };
  });
}

interface LifePlan {
  readonly startedAt: number;
  readonly maxAttempts: number;
  readonly delayMs: (attempt: number) => number;
  readonly random: () => number;
}

function runsOf({ error, succeeds }: KnownError, { startedAt, maxAttempts, delayMs, random }: LifePlan): LedgerRun[] {
  const runs: LedgerRun[] = [];
  const firstFailureAt = startedAt + RUN_MS;
  for (let attempt = 1, at = startedAt; ; at += RUN_MS + delayMs(attempt), attempt++) {
    const isSuccess = attempt > 1 && random() < succeeds(attempt, at - firstFailureAt);
    const isLast = attempt === maxAttempts;
    runs.push({
      run: attempt,
      attempt,
      outcome: isSuccess ? 'completed' : 'failed',
      counted: true,
      startedAt: at,
      endedAt: at + RUN_MS,
      decision: isSuccess ? complete : isLast ? exhausted : retry,
      fingerprint: isSuccess ? null : error.fingerprint,
    });
    if (isSuccess || isLast) return runs;
  }
}

const complete: Decision = { kind: 'complete', rule: 'completed' };
const exhausted: Decision = { kind: 'dead', reason: 'exhausted', counted: true, rule: 'default' };
const retry: Decision = { kind: 'retry', why: 'backoff', delayMs: 1_000, lane: 'retry', rule: 'default' };
