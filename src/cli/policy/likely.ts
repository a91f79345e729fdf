import { delayBefore } from '../../retry/jitter.ts';
import type { RetryPolicy } from '../../retry/policy.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';

/** How long jobs that fail every time are kept trying: one in a hundred gives up sooner than this, and one later. */
export interface LikelyTotals {
  readonly soonestMs: number;
  readonly latestMs: number;
}

/** Enough that the first and last hundredth hardly move, whatever the seed. */
const SAMPLES = 5_000;
const MOST_DRAWS = 1_000_000;

/**
 * The shortest and longest total say little: 19 waits that are all drawn near zero do not happen. So this draws many jobs,
 * from a fixed seed, and leaves out one in a hundred at either end.
 */
export function likelyTotals(policy: RetryPolicy, count: number): LikelyTotals {
  if (count === 0) return { soonestMs: 0, latestMs: 0 };
  const chance = new VirtualClock({ seed: 1 });
  const samples = Math.min(SAMPLES, Math.ceil(MOST_DRAWS / count));
  const totals = Float64Array.from({ length: samples }, () => drawTotal(policy, count, () => chance.random())).sort();
  const at = (share: number): number => totals[Math.floor(share * (samples - 1))] as number;
  return { soonestMs: at(0.01), latestMs: at(0.99) };
}

function drawTotal(policy: RetryPolicy, count: number, random: () => number): number {
  let totalMs = 0;
  let previousMs: number | null = null;
  for (let afterAttempt = 1; afterAttempt <= count; afterAttempt++) {
    previousMs = delayBefore(policy, afterAttempt, previousMs, random);
    totalMs += previousMs;
  }
  return totalMs;
}
