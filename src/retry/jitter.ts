import { backoffDelay, LONGEST_DELAY_MS } from './backoff.ts';
import type { Backoff, RetryPolicy } from './policy.ts';

/** Uniform in [0, 1). */
export type Random = () => number;

/** The wait before the next attempt when `n` attempts are spent: the backoff's delay, then jitter. Whole ms. */
export function delayBefore(
  policy: Pick<RetryPolicy, 'backoff' | 'jitter'>,
  n: number,
  previousDelayMs: number | null,
  random: Random,
): number {
  const { backoff, jitter } = policy;
  const delayMs = backoffDelay(backoff, n);
  switch (jitter) {
    case 'none':
      return delayMs;
    case 'full':
      return full(delayMs, random);
    case 'equal':
      return equal(delayMs, random);
    case 'decorrelated': {
      const baseMs = 'baseMs' in backoff ? backoff.baseMs : delayMs;
      return Math.min(longest(backoff), decorrelated(baseMs, previousDelayMs, random));
    }
    default:
      return Math.min(longest(backoff), spread(delayMs, jitter.spread, random));
  }
}

/** Anywhere from nothing to the whole delay: the best at taking a herd apart. */
export function full(delayMs: number, random: Random): number {
  return between(0, delayMs, random);
}

/** At least half the delay. */
export function equal(delayMs: number, random: Random): number {
  return between(Math.ceil(delayMs / 2), delayMs, random);
}

/** Around the delay: by up to `share` of it shorter or longer. */
export function spread(delayMs: number, share: number, random: Random): number {
  return between(Math.ceil(delayMs * (1 - share)), Math.floor(delayMs * (1 + share)), random);
}

/**
 * Grows from the delay before, and so forgets the backoff's own curve. A previous delay below the base
 * (a snooze, a custom delay, another policy) is taken as the base.
 */
export function decorrelated(baseMs: number, previousDelayMs: number | null, random: Random): number {
  return between(baseMs, 3 * Math.max(baseMs, previousDelayMs ?? baseMs), random);
}

/** A whole number from `low` to `high`, both included. */
export function between(low: number, high: number, random: Random): number {
  return Math.min(high, low + Math.floor(random() * (high - low + 1)));
}

/**
 * What jitter may not go beyond. A fixed delay and a table have no `max`, and jitter that could only
 * shorten would leave a fixed delay's herd together; three times the longest delay written leaves room for
 * every spread and for one decorrelated step, and keeps the waits in the scale that was asked for.
 */
function longest(backoff: Backoff): number {
  switch (backoff.kind) {
    case 'fixed':
      return Math.min(LONGEST_DELAY_MS, 3 * backoff.baseMs);
    case 'table':
      return Math.min(LONGEST_DELAY_MS, 3 * Math.max(...backoff.delaysMs));
    default:
      return backoff.maxMs;
  }
}
