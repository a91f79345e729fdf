import type { Random } from '../retry/jitter.ts';
import { withinBounds } from './bounds.ts';
import { FORGET_OPEN_MS, MAX_OUTAGE_MS, QUIET_MS, SOFT_OVER_SHARE, WEAK_JOBS, WEAK_OUTAGE_MS } from './constants.ts';
import type { GateReport } from './evidence.ts';
import type { FailureVerdict } from './refund.ts';
import { countJobs } from './sets.ts';
import type { GateState } from './state.ts';
import { streakNow } from './streak.ts';
import { close, open, type Transition, unchanged } from './transition.ts';
import { tripByTime, tripOf } from './trip.ts';
import { addReport, figuresOf, type WindowFigures } from './window.ts';

/*
 * Where no resource is named, the job's name is a soft gate. It holds nothing back. It only judges whether there is an
 * outage, by the same evidence; while there is, environment failures do not count, and the jobs wait longer and longer
 * (retry/decide.ts). Its state is that of a gate whose `open` means "outage".
 *
 *   outage begins   when a trip rule holds
 *   outage ends     with a sign of life, once fewer than 30% of the window have failed; also by time, as failures leave the
 *                   window and none has come since
 *   after maxOutage environment failures count again, until the outage ends
 *
 * What fewer than three jobs say may be the fault of their inputs: a job is given its attempts back on it for an hour at most.
 */

/** `trips: false`: something else than its own window says when the outage begins. */
export function applySoftReport(
  before: GateState,
  report: GateReport,
  now: number,
  random: Random,
  { trips = true }: { readonly trips?: boolean } = {},
): Transition {
  const bounded = withinBounds(before, now);
  const isForgotten = bounded.phase === 'open' && now - bounded.heardAt >= FORGET_OPEN_MS;
  const { state, events } = isForgotten ? close(bounded, 'not heard of for 24 h', now) : unchanged(bounded);
  const next = judge({ ...state, heardAt: now, window: addReport(state.window, report, now) }, trips, now, random);
  return { state: next.state, events: [...events, ...next.events] };
}

function judge(gate: GateState, trips: boolean, now: number, random: Random): Transition {
  if (gate.phase === 'open') {
    return isOver(figuresOf(gate.window, now)) ? close(gate, 'signs of life', now) : unchanged(gate);
  }
  const trip = trips ? tripOf(gate.window, now) : null;
  return trip === null ? unchanged(gate) : open(gate, trip.rule, trip.from, now, random);
}

/** What time alone changes: the slow and the lone rule need no report, nor does the end of an outage that was answered. */
export function passSoftTime(before: GateState, now: number, random: Random): Transition {
  const gate = withinBounds(before, now);
  if (gate.phase === 'open') {
    const { alive, environment } = figuresOf(gate.window, now);
    const isQuiet = environment === 0 || environment < SOFT_OVER_SHARE * (alive + environment);
    return endsByTime(gate) && isQuiet ? close(gate, 'signs of life', now) : unchanged(before);
  }
  const trip = gate.phase === 'closed' ? tripByTime(gate.window, now) : null;
  return trip === null ? unchanged(before) : open(gate, trip.rule, trip.from, now, random);
}

/** True of an outage whose last report was a sign of life: unless another one says otherwise, time ends it. */
export function endsByTime({ phase, window: { streak, buckets } }: GateState): boolean {
  return phase === 'open' && streak.count === 0 && buckets.some(({ alive }) => alive > 0);
}

/** True when the row says nothing that a new one would not. */
export function isSoftForgettable(state: GateState, now: number): boolean {
  return now - state.heardAt >= (state.phase === 'open' ? FORGET_OPEN_MS : QUIET_MS);
}

function isOver({ alive, environment, streak }: WindowFigures): boolean {
  return streak === 0 && alive > 0 && environment < SOFT_OVER_SHARE * (alive + environment);
}

export interface SoftFailure {
  readonly isLastAttempt: boolean;
  /** When the job was first given an attempt back since it last said that all is well; null when it was not. */
  readonly deferredSince: number | null;
  readonly maxOutageMs?: number;
}

/** What an environment failure costs behind a soft gate, by the gate as it is after the report that came with it. */
export function judgeSoftFailure(state: GateState, failure: SoftFailure, now: number): FailureVerdict {
  const { isLastAttempt, deferredSince, maxOutageMs = MAX_OUTAGE_MS } = failure;
  const { alive, streak, distinctJobs } = figuresOf(state.window, now);
  const isOutage = state.phase === 'open';
  // A lone job, or the first few: their own failures are all that is known, and no sign of life speaks against an outage.
  const isUnanswered = alive === 0 && streak > 0;
  if (!isOutage && !(isLastAttempt && isUnanswered)) return { counts: true, rule: 'no outage', isPending: true };
  const rule = isOutage ? 'outage' : 'no sign of life';
  const isWeak = Math.max(distinctJobs, countJobs(streakNow(state.window.streak, now).jobs)) < WEAK_JOBS;
  const givenBackForMs = now - (deferredSince ?? now);
  if (isWeak && givenBackForMs >= WEAK_OUTAGE_MS)
    return { counts: true, rule: `${rule} of few jobs for longer than 1h` };
  const lastsMs = isOutage ? now - state.downSince : givenBackForMs;
  return lastsMs < maxOutageMs ? { counts: false, rule } : { counts: true, rule: `${rule} for longer than maxOutage` };
}
