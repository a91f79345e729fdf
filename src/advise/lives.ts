import type { DeadReason } from '../retry/decision.ts';
import type { RetryPolicy } from '../retry/policy.ts';
import type { LedgerJob, LedgerRun } from '../store/ledger.ts';

/*
 * A life of a job is its runs from an enqueue or a redrive to its end: attempts count from 1 in each. Advice is about lives,
 * because a policy decides about one life at a time.
 */

/** What a crash is grouped under: it leaves no error. */
export const CRASH = 'crash';
/** An error without a fingerprint, stored by an older version. */
export const UNKNOWN = 'unknown';

export interface Life {
  readonly name: string;
  readonly policy: RetryPolicy;
  readonly completed: boolean;
  readonly deadReason: DeadReason | null;
  readonly part: number | null;
  readonly resource: string | null;
  readonly runs: readonly LifeRun[];
  /** When its first counted failure ended; null when it never failed. */
  readonly firstFailureAt: number | null;
}

export interface LifeRun {
  readonly attempt: number;
  readonly startedAt: number;
  readonly ms: number;
  readonly result: 'completed' | 'failed' | 'uncounted';
  /** What it failed with, also when that did not count because of an outage; null when it did not fail. */
  readonly error: string | null;
  /** The error group of a counted failure. */
  readonly group: string | null;
  /** The error group of the last counted failure before this run; null when there was none. */
  readonly after: string | null;
}

export function livesOf(job: LedgerJob, policy: RetryPolicy): Life[] {
  const lives: Life[] = [];
  let runs: LifeRun[] = [];
  let firstFailureAt: number | null = null;
  let after: string | null = null;
  const end = (completed: boolean, deadReason: DeadReason | null): void => {
    lives.push({
      name: job.name,
      policy,
      completed,
      deadReason,
      part: job.part,
      resource: job.resource,
      runs,
      firstFailureAt,
    });
    [runs, firstFailureAt, after] = [[], null, null];
  };
  for (const run of job.runs) {
    const group = groupOf(run);
    const result = run.outcome === 'completed' ? 'completed' : group === null ? 'uncounted' : 'failed';
    runs.push({
      attempt: run.attempt,
      startedAt: run.startedAt,
      ms: Math.max(0, run.endedAt - run.startedAt),
      result,
      error: run.outcome === 'deferred' ? (run.fingerprint ?? UNKNOWN) : group,
      group,
      after,
    });
    if (group !== null) {
      firstFailureAt ??= run.endedAt;
      after = group;
    }
    if (run.decision.kind === 'dead') end(false, run.decision.reason);
  }
  if (runs.length > 0) end(job.state === 'completed', job.deadReason);
  return lives;
}

/** The group of a counted failure; null for every other run. */
function groupOf({ outcome, counted, fingerprint }: LedgerRun): string | null {
  if (!counted) return null;
  if (outcome === 'crashed') return CRASH;
  return outcome === 'failed' ? (fingerprint ?? UNKNOWN) : null;
}

/** The highest attempt that failed; 0 for none. A life that completed needed one more. */
export function lastFailedAttempt({ runs }: Life): number {
  return runs.reduce((highest, { result, attempt }) => (result === 'failed' ? Math.max(highest, attempt) : highest), 0);
}
