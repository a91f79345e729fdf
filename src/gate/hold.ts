import { HOLD_LONGEST_MS } from './constants.ts';
import type { GateReport } from './evidence.ts';

/**
 * Until when the dependency asked to be left alone: the latest of what was asked, never more than an hour from now. A wait
 * that is negative, endless or no number asks for nothing.
 */
export function holdUntil(until: number, { retryAfterMs }: Pick<GateReport, 'retryAfterMs'>, now: number): number {
  if (!(retryAfterMs > 0)) return until;
  return Math.max(until, Math.ceil(now + Math.min(retryAfterMs, HOLD_LONGEST_MS)));
}
