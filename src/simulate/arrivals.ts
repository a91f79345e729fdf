import type { Random } from '../retry/jitter.ts';
import { seededRandom } from '../seeded-random.ts';
import type { ReadArrivals, ReadScenario } from './scenario.ts';

/** Random numbers of their own: they must not depend on what else is drawn. */
const STREAM = 0x5bd1e995;

/** The same for each policy of a simulation. */
export function arrivalsOf({ arrivals, durationMs }: ReadScenario, seed: number): Generator<number> {
  return arrivalTimes(arrivals, durationMs, seededRandom(seed ^ STREAM));
}

/**
 * When jobs arrive, in ms since the beginning, in order. Arrivals are independent of each other (a Poisson process), as
 * those of many users are; a daily curve drops a part of the arrivals of its peak.
 */
export function* arrivalTimes(arrivals: ReadArrivals, durationMs: number, random: Random): Generator<number> {
  const most = arrivals.kind === 'daily' ? arrivals.peak : arrivals.rate;
  let burstLeft = arrivals.kind === 'burst' ? arrivals.jobs : 0;
  const burstAt = arrivals.kind === 'burst' ? arrivals.atMs : Infinity;
  for (let at = 0; ; ) {
    at += (-Math.log(1 - random()) / most) * 1_000;
    while (burstLeft > 0 && burstAt <= at) {
      burstLeft--;
      yield burstAt;
    }
    if (at >= durationMs) return;
    if (arrivals.kind !== 'daily' || random() * most < rateAt(arrivals, at)) yield at;
  }
}

/** Jobs per second that are expected at a moment, without a burst. */
function rateAt(arrivals: ReadArrivals, atMs: number): number {
  if (arrivals.kind !== 'daily') return arrivals.rate;
  const { mean, peak, peakAtMs, periodMs } = arrivals;
  return mean + (peak - mean) * Math.cos(((atMs - peakAtMs) / periodMs) * 2 * Math.PI);
}
