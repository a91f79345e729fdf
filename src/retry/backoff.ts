import type { Backoff } from './policy.ts';

/** 365 days: no policy waits longer, and sums with timestamps stay far inside the safe integers. */
export const LONGEST_DELAY_MS: number = 365 * 24 * 60 * 60 * 1_000;

/**
 * The delay before the next attempt, without jitter, when `n` attempts are spent: n = 1 picks the delay
 * before the second attempt. Whole milliseconds, for any n.
 */
export function backoffDelay(backoff: Backoff, n: number): number {
  const spent = Math.max(1, n);
  switch (backoff.kind) {
    case 'exponential':
      return capped(backoff.baseMs, backoff.factor ** (spent - 1), backoff.maxMs);
    case 'linear':
      return capped(backoff.baseMs, spent, backoff.maxMs);
    case 'fixed':
      return backoff.baseMs;
    case 'fibonacci':
      return capped(backoff.baseMs, fibonacci(spent), backoff.maxMs);
    case 'table':
      return backoff.delaysMs[Math.min(spent, backoff.delaysMs.length) - 1] as number;
  }
}

/** The multiple may be Infinity, and 0 x Infinity is NaN: a base of 0 stays 0. */
function capped(baseMs: number, multiple: number, maxMs: number): number {
  return baseMs === 0 ? 0 : Math.min(maxMs, Math.round(baseMs * multiple));
}

/** 1, 1, 2, 3, 5, ...; beyond the 64th no base fits under any cap, so the counting stops there. */
function fibonacci(n: number): number {
  let [current, next] = [1, 1];
  for (let i = 1; i < Math.min(n, 64); i++) [current, next] = [next, current + next];
  return current;
}
