import type { RetryPolicy } from '../retry/policy.ts';
import { NEEDED } from './bounds.ts';
import { type Life, lastFailedAttempt } from './lives.ts';
import { attemptRows, type Evidence, evidenceOf } from './tally.ts';

/** Attempts beyond `maxAttempts` never succeeded, the last of them `last`. */
export interface FewerAttempts {
  readonly maxAttempts: number;
  readonly last: number;
  /** Of the jobs that were tried beyond it. */
  readonly evidence: Evidence;
  /** Jobs that were tried beyond it too, and are no evidence: they failed in an outage. */
  readonly inOutage: number;
}

/**
 * The fewest attempts with which no job of the ledger would have been lost, where `inOutages` are no evidence that attempts
 * are useless. Null when no job was tried beyond them.
 */
export function fewerAttempts(
  lives: readonly Life[],
  others: readonly Life[],
  inOutages: ReadonlySet<Life>,
): FewerAttempts | null {
  const maxAttempts = neededAttempts(lives);
  const beyond = triedBeyond(others, maxAttempts);
  if (beyond.length === 0) return null;
  const evidence = evidenceOf(beyond.filter((life) => !inOutages.has(life)));
  const last = beyond.reduce((most, { runs }) => runs.reduce((max, { attempt }) => Math.max(max, attempt), most), 0);
  return { maxAttempts, last, evidence, inOutage: beyond.length - evidence.jobs };
}

function neededAttempts(lives: readonly Life[]): number {
  return lives.reduce((most, life) => (life.completed ? Math.max(most, lastFailedAttempt(life) + 1) : most), 1);
}

function triedBeyond(lives: readonly Life[], attempt: number): Life[] {
  return lives.filter(({ runs }) =>
    runs.some((run) => run.result !== 'uncounted' && run.after !== null && run.attempt > attempt),
  );
}

/** The last attempt still succeeds so often that more of them would bring jobs through. */
export interface MoreAttempts {
  readonly maxAttempts: number;
  /** The share of retries at the present last attempt that succeed. */
  readonly share: number;
  readonly tried: number;
  /** Jobs that were exhausted, and how many more of them would complete, by that share. */
  readonly exhausted: number;
  readonly gained: number;
  readonly moreRuns: number;
  /** False when too few jobs reached the last attempt to know that share. */
  readonly isEnough: boolean;
}

/** Below this, more attempts cost more runs than jobs are worth. */
const WORTH_TRYING = 0.05;
/** Of the jobs that are exhausted now, so many may still be. */
const LEFT = 0.01;
/** No more further attempts are proposed. */
const MOST_MORE = 20;

export function moreAttempts(lives: readonly Life[], { maxAttempts }: RetryPolicy): MoreAttempts | null {
  const exhausted = lives.filter(
    (life) => life.deadReason === 'exhausted' && life.policy.maxAttempts === maxAttempts,
  ).length;
  const last = attemptRows(lives).find(({ attempt }) => attempt === maxAttempts);
  if (exhausted === 0 || last === undefined || last.low < WORTH_TRYING) return null;
  const { share, tried } = last;
  const more = Math.min(MOST_MORE, Math.ceil(Math.log(LEFT) / Math.log(1 - share)));
  const through = 1 - (1 - share) ** more;
  return {
    maxAttempts: maxAttempts + more,
    share,
    tried,
    exhausted,
    gained: exhausted * through,
    moreRuns: (exhausted * through) / share,
    isEnough: tried >= NEEDED,
  };
}
