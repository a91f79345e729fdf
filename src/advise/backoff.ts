import { delayBefore } from '../retry/jitter.ts';
import type { Backoff, Jitter, RetryPolicy } from '../retry/policy.ts';
import { type Life, lastFailedAttempt } from './lives.ts';
import type { Change } from './replay.ts';
import { elapsedMs, evidenceOf, quantile } from './tally.ts';

/*
 * The first retries come too early when none of them ever succeeds and later ones do: then it is time that heals, and not
 * another try. A policy that begins later needs fewer attempts for the same jobs. Where the first retry sometimes succeeds,
 * nothing is said about delays: a ledger cannot tell what a shorter one would have done.
 */

export interface LaterBackoff {
  readonly backoff: Extract<Backoff, { kind: 'exponential' }>;
  readonly maxAttempts: number;
  /** Retries up to this attempt never succeeded. */
  readonly neverUpTo: number;
  /** Jobs that were tried at it. */
  readonly jobs: number;
  /** When jobs recovered, from their first failure: the first of a hundred, and the last. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** A proposed backoff is exponential and doubles, as that of the presets. */
const FACTOR = 2;
/** No backoff with more attempts is proposed. */
const MOST_ATTEMPTS = 50;

/** `inOutages` failed together: they are no evidence that early retries never succeed. */
export function laterBackoff(
  lives: readonly Life[],
  policy: RetryPolicy,
  inOutages: ReadonlySet<Life>,
): LaterBackoff | null {
  const recovered = lives.filter(({ completed, firstFailureAt }) => completed && firstFailureAt !== null);
  if (recovered.length === 0) return null;
  const failed = recovered.map(lastFailedAttempt);
  const neverUpTo = quantile(failed, 0) ?? 0;
  const tried = lives.filter(
    (life) => !inOutages.has(life) && life.runs.some(({ after, attempt }) => after !== null && attempt >= neverUpTo),
  );
  if (neverUpTo < 2 || !evidenceOf(tried).isEnough) return null;
  const elapsed = recovered.map((life) => elapsedMs(life, life.runs.at(-1) as Life['runs'][number]));
  const fromMs = quantile(elapsed, 0.01) ?? 0;
  const toMs = quantile(elapsed, 1) ?? 0;
  // Jitter shortens a wait, so the delay is longer than the wait that is wanted.
  const baseMs = roundDown(fromMs / meanShare(policy.jitter));
  const needed = (quantile(failed, 1) ?? 0) + 1;
  return baseMs <= baseOf(policy.backoff)
    ? null
    : {
        ...covering(baseMs, toMs, needed - (neverUpTo - 1), policy.jitter),
        neverUpTo,
        jobs: tried.length,
        fromMs,
        toMs,
      };
}

/** The shortest cap with which so many attempts reach to `toMs`; more attempts when no cap is enough. */
function covering(
  baseMs: number,
  toMs: number,
  attempts: number,
  jitter: Jitter,
): Pick<LaterBackoff, 'backoff' | 'maxAttempts'> {
  for (let maxAttempts = Math.max(2, attempts); ; maxAttempts++) {
    for (let maxMs = baseMs, step = 0; step < maxAttempts; step++, maxMs *= FACTOR) {
      const backoff = { kind: 'exponential', baseMs, factor: FACTOR, maxMs } as const;
      const reachMs = startsOf({ backoff, jitter, maxAttempts }).at(-1) ?? 0;
      if (reachMs >= toMs || maxAttempts >= MOST_ATTEMPTS) return { backoff, maxAttempts };
    }
  }
}

/** When each retry of a job that fails every time starts, after its first failure, with jitter at its middle. */
function startsOf(policy: Pick<RetryPolicy, 'backoff' | 'jitter' | 'maxAttempts'>): number[] {
  const starts: number[] = [];
  let previousMs: number | null = null;
  for (let spent = 1; spent < policy.maxAttempts; spent++) {
    previousMs = delayBefore(policy, spent, previousMs, () => 0.5);
    starts.push((starts.at(-1) ?? 0) + previousMs);
  }
  return starts;
}

/** A job is taken to have recovered no sooner than it did: at the start of the run that completed. */
export function withBackoff({ backoff, maxAttempts }: LaterBackoff, jitter: Jitter): Change {
  const starts = startsOf({ backoff, jitter, maxAttempts });
  return (life) => {
    if (life.firstFailureAt === null) return { runs: life.runs.length, completes: life.completed };
    const before = life.runs.findIndex(({ result }) => result === 'failed');
    if (!life.completed) {
      const isExhausted = life.deadReason === 'exhausted';
      return { runs: isExhausted ? before + maxAttempts : life.runs.length, completes: false };
    }
    const neededMs = elapsedMs(life, life.runs.at(-1) as Life['runs'][number]);
    const retry = starts.findIndex((startMs) => startMs >= neededMs);
    return { runs: before + 1 + (retry === -1 ? starts.length : retry + 1), completes: retry !== -1 };
  };
}

function meanShare(jitter: Jitter): number {
  if (jitter === 'full') return 0.5;
  return jitter === 'equal' ? 0.75 : 1;
}

function baseOf(backoff: Backoff): number {
  return 'baseMs' in backoff ? backoff.baseMs : (backoff.delaysMs[0] ?? 0);
}

/** Two figures, as people write durations. */
function roundDown(ms: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, ms))) - 1);
  return Math.max(1, Math.floor(ms / unit) * unit);
}
