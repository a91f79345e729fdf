import { HOLD_LONGEST_MS, HOLD_RESUME_SHARE, RAMP_STEP_MS } from './constants.ts';
import type { GateReport } from './evidence.ts';
import { rampAt } from './ramp.ts';
import { provenRate } from './rate.ts';
import type { GateState } from './state.ts';
import { moved, type Transition, toRamp, unchanged } from './transition.ts';
import { rateOf } from './window.ts';

/**
 * Until when the dependency asked to be left alone: the latest of what was asked, never more than an hour from now. A wait
 * that is negative, endless or no number asks for nothing.
 */
export function holdUntil(until: number, { retryAfterMs }: Pick<GateReport, 'retryAfterMs'>, now: number): number {
  if (!(retryAfterMs > 0)) return until;
  return Math.max(until, Math.ceil(now + Math.min(retryAfterMs, HOLD_LONGEST_MS)));
}

/** A Retry-After holds whatever the epoch: it is the dependency's own word. The rate is cut for current runs only. */
export function applyHold(gate: GateState, report: GateReport, isCurrentReport: boolean, now: number): Transition {
  const heldUntil = holdUntil(gate.heldUntil, report, now);
  const isAsked = heldUntil > gate.heldUntil || report.throttled > 0;
  if (!isAsked) return unchanged(gate);
  const held: GateState = { ...gate, heldUntil };
  if (gate.phase === 'open') return toldOnce(gate, held, now);
  const from = Math.max(now, heldUntil);
  const proven = provenRate(gate.peak, now);
  if (gate.ramp !== null) {
    const { limit, cutAt } = gate.ramp;
    const isCut = isCurrentReport && now - cutAt >= RAMP_STEP_MS;
    const ramp = isCut ? { ...rampAt(limit * HOLD_RESUME_SHARE, limit, proven, from), cutAt: now } : gate.ramp;
    return toldOnce(gate, { ...held, ramp: { ...ramp, boundAt: from } }, now);
  }
  if (report.retryAfterMs === 0 && !isCurrentReport) return unchanged(held);
  const measured = rateOf(gate.window, now, 0) || (proven ?? 0);
  return moved(
    gate,
    toRamp(held, rampAt(measured * HOLD_RESUME_SHARE, measured, proven, from), now),
    'held',
    'retry-after',
    now,
  );
}

/** The history tells when a hold begins, not how often it is asked for. */
function toldOnce(before: GateState, after: GateState, now: number): Transition {
  const isBegun = before.heldUntil <= now && after.heldUntil > now;
  return isBegun ? moved(before, after, 'held', 'retry-after', now) : unchanged(after);
}
