import { BUCKET_MS, FLOOR_RATE, PEAK_HALF_LIFE_MS, PEAK_PARTS } from './constants.ts';
import { rateOf, type Window } from './window.ts';

/*
 * Rates: GCRA, and the proven peak.
 *
 * GCRA keeps one number, the theoretical arrival time (`tat`): the moment up to which all starts so far are paid for at the
 * present rate. It may lie up to the burst ahead of now. In any span of W seconds at most rate x (W + burst) + 1 jobs start.
 */

/** How many may start now. */
export function tokensOf(tat: number, perSecond: number, burstMs: number, now: number): number {
  const aheadMs = Math.max(tat, now) - now;
  return aheadMs > burstMs ? 0 : Math.floor(((burstMs - aheadMs) * perSecond) / 1_000 + 1e-9) + 1;
}

export function chargeTokens(tat: number, perSecond: number, starts: number, now: number): number {
  return Math.max(tat, now) + (starts * 1_000) / perSecond;
}

/** When at least `starts` may start at once; no more than the burst allows are ever asked for. */
export function tokensAt(tat: number, perSecond: number, burstMs: number, starts: number, now: number): number {
  return Math.max(now, Math.ceil(Math.max(tat, now) - burstMs + ((starts - 1) * 1_000) / perSecond));
}

/** The highest rate of served calls over 10 s while the gate was closed; 0 until one was seen. */
export interface Peak {
  readonly rate: number;
  readonly at: number;
  /** In how many parts of the window (5 s) traffic was measured, up to what makes a proof; and the last of them. */
  readonly parts: number;
  readonly lastPart: number;
}

export const noPeak: Peak = { rate: 0, at: 0, parts: 0, lastPart: 0 };

export function peakRate({ rate, at }: Peak, now: number): number {
  return rate * 0.5 ** (Math.max(0, now - at) / PEAK_HALF_LIFE_MS);
}

/** Reports come up to one bucket late, so the last complete bucket is left out. */
export function measurePeak(peak: Peak, window: Window, now: number): Peak {
  const rate = rateOf(window, now, 1);
  const part = Math.floor(now / BUCKET_MS);
  const isNew = rate > 0 && part !== peak.lastPart && peak.parts < PEAK_PARTS;
  const seen = isNew ? { ...peak, parts: peak.parts + 1, lastPart: part } : peak;
  return rate > peakRate(peak, now) ? { ...seen, rate, at: now } : seen;
}

/** What limits are reckoned from. Null while too little was served to prove anything: the first seconds look like little traffic. */
export function provenRate(peak: Peak, now: number): number | null {
  return peak.parts < PEAK_PARTS ? null : Math.max(FLOOR_RATE, peakRate(peak, now));
}
