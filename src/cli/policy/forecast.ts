import { backoffDelay } from '../../retry/backoff.ts';
import { delayBefore, type Random } from '../../retry/jitter.ts';
import type { RetryPolicy } from '../../retry/policy.ts';

/** One wait of a policy: what it is before jitter, the shortest and longest it can become, and one sample. */
export interface Wait {
  /** Attempts spent: 1 for the wait before the second attempt. */
  readonly afterAttempt: number;
  readonly delayMs: number;
  readonly minMs: number;
  readonly maxMs: number;
  readonly sampleMs: number;
}

/** Chance at its ends: `delayBefore` itself then answers the shortest and the longest wait, and no formula is repeated. */
const lowest: Random = () => 0;
const highest: Random = () => 1 - 2 ** -53;

/** The first `count` waits, as the worker would choose them when every attempt fails. */
export function forecast(policy: RetryPolicy, count: number, random: Random): Wait[] {
  const waits: Wait[] = [];
  for (let afterAttempt = 1; afterAttempt <= count; afterAttempt++) {
    const before = waits.at(-1);
    // Decorrelated jitter grows from the wait before; each of the three follows its own past.
    const wait = (previousMs: number | undefined, chance: Random): number =>
      delayBefore(policy, afterAttempt, previousMs ?? null, chance);
    waits.push({
      afterAttempt,
      delayMs: backoffDelay(policy.backoff, afterAttempt),
      minMs: wait(before?.minMs, lowest),
      maxMs: wait(before?.maxMs, highest),
      sampleMs: wait(before?.sampleMs, random),
    });
  }
  return waits;
}

export interface ForecastTotals {
  /** Before jitter. */
  readonly totalMs: number;
  readonly shortestTotalMs: number;
  readonly longestTotalMs: number;
}

export function totalsOf(waits: readonly Wait[]): ForecastTotals {
  const sum = (read: (wait: Wait) => number): number => waits.reduce((total, wait) => total + read(wait), 0);
  return {
    totalMs: sum(({ delayMs }) => delayMs),
    shortestTotalMs: sum(({ minMs }) => minMs),
    longestTotalMs: sum(({ maxMs }) => maxMs),
  };
}
