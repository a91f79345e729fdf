import {
  ASKED_IN_A_ROW,
  ASKED_KEPT_MS,
  ASKED_REMEMBERED,
  ASKED_SHARE,
  HOLD_LONGEST_MS,
  HOLD_RESUME_SHARE,
  RAMP_STEP_MS,
} from './constants.ts';
import type { GateReport } from './evidence.ts';
import { rampAt } from './ramp.ts';
import { provenRate } from './rate.ts';
import { countJobs, isWithin, type JobBits, join } from './sets.ts';
import type { Asked, GateState } from './state.ts';
import { moved, type Transition, toRamp, unchanged } from './transition.ts';
import { figuresOf, rateOf } from './window.ts';

/**
 * Until when the dependency asked to be left alone: the latest of what was asked, never more than an hour from now. A wait
 * that is negative, endless or no number asks for nothing.
 */
export function holdUntil(until: number, { retryAfterMs }: Pick<GateReport, 'retryAfterMs'>, now: number): number {
  if (!(retryAfterMs > 0)) return until;
  return Math.max(until, Math.ceil(now + Math.min(retryAfterMs, HOLD_LONGEST_MS)));
}

/**
 * Whether what a run was told concerns its job alone. It does while others are answered and few ask, whichever jobs they are: a part
 * of the inputs has a quota of its own. So does a job that is asked to wait again although others were answered since. If such
 * a job held all others each time, it would starve them.
 */
export function waitsAlone(gate: GateState, askers: JobBits, now: number): boolean {
  return areFew(gate, now) || isAskedAgain(gate, askers, now);
}

/** A row of asks without an answer in between is news that a window of half a minute would tell too late. */
function areFew({ phase, asked, window }: GateState, now: number): boolean {
  if (phase === 'open' || asked.inRow >= ASKED_IN_A_ROW) return false;
  const { alive, asks } = figuresOf(window, now);
  return asks < ASKED_SHARE * (alive + asks);
}

function isAskedAgain({ asked }: GateState, askers: JobBits, now: number): boolean {
  return asked.alive > 0 && now - asked.at < ASKED_KEPT_MS && isWithin(askers, asked.jobs);
}

function remember(asked: Asked, { askers }: GateReport, now: number): Asked {
  const isFull = now - asked.at >= ASKED_KEPT_MS || countJobs(asked.jobs) >= ASKED_REMEMBERED;
  return { ...asked, jobs: isFull ? askers : join(asked.jobs, askers), at: now, alive: 0 };
}

/** A Retry-After holds whatever the epoch: it is the dependency's own word. The rate is cut for current runs only. */
export function applyHold(before: GateState, report: GateReport, isCurrentReport: boolean, now: number): Transition {
  const gate = countRow(before, report);
  const heldUntil = holdUntil(gate.heldUntil, report, now);
  const isAsked = heldUntil > gate.heldUntil || report.throttled > 0;
  if (!isAsked) return unchanged(heard(gate, report));
  if (waitsAlone(gate, report.askers, now)) return unchanged(gate);
  const held: GateState = { ...gate, heldUntil, asked: remember(gate.asked, report, now) };
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
  // Without a proven peak the rate is not known well enough to linger below it.
  const top = proven === null ? 0 : measured;
  return moved(
    gate,
    toRamp(held, rampAt(measured * HOLD_RESUME_SHARE, top, proven, from), now),
    'held',
    'retry-after',
    now,
  );
}

/** Which of them came first within a report is not known: one with a sign of life ends the row. */
function countRow(gate: GateState, { alive, asks }: GateReport): GateState {
  const inRow = alive > 0 ? 0 : gate.asked.inRow + asks;
  return inRow === gate.asked.inRow ? gate : { ...gate, asked: { ...gate.asked, inRow } };
}

function heard(gate: GateState, { alive }: GateReport): GateState {
  if (alive === 0 || countJobs(gate.asked.jobs) === 0) return gate;
  return { ...gate, asked: { ...gate.asked, alive: gate.asked.alive + alive } };
}

/** The history tells when a hold begins, not how often it is asked for. */
function toldOnce(before: GateState, after: GateState, now: number): Transition {
  const isBegun = before.heldUntil <= now && after.heldUntil > now;
  return isBegun ? moved(before, after, 'held', 'retry-after', now) : unchanged(after);
}
