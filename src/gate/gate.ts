import type { Random } from '../retry/jitter.ts';
import { withinBounds } from './bounds.ts';
import { deposit, raiseCap, spendOn } from './budget.ts';
import { DORMANT_MS, FORGET_OPEN_MS, PEAK_KEPT_MS, QUIET_MS, WINDOW_MS } from './constants.ts';
import { gateEvent } from './event.ts';
import type { GateReport } from './evidence.ts';
import { applyHold } from './hold.ts';
import { judgeProbe, longestInterval } from './probe.ts';
import { countOutcomes, isUnused, step } from './ramp.ts';
import { measurePeak, peakRate, provenRate } from './rate.ts';
import type { GateState } from './state.ts';
import { close, moved, open, recover, type Transition, unchanged } from './transition.ts';
import { isHalfFailed, rampStreak, tripByTime, tripOf } from './trip.ts';
import { addReport, figuresOf, isOneWorkerAlone, shareIn, type WindowFigures } from './window.ts';
import { judgeWorker } from './workers.ts';

/*
 * A gate stands between the jobs of a resource and their start. All workers share it through the store.
 *
 *            trip (trip.ts)                    3 probes alive (probe.ts)
 *   CLOSED ------------------> OPEN ---------------------------------------> RAMP
 *     ^  |                      ^  ^  |  one probe at a time; after 24 h      |  |
 *     |  |                      |  |__|  without a report: RAMP               |  |
 *     |  | Retry-After: hold,   |                                             |  |
 *     |  | then RAMP at 0.7     +---------- half of a step failed ------------+  |
 *     |  +---------------------------------> RAMP                                |
 *     +------------------- the rate has not been the limit for 10 s -------------+
 *
 * CLOSED lets everything start; only the retry budget and a suspect worker's own record hold a job back. OPEN lets probes
 * start. RAMP lets jobs start at a rate. A hold (Retry-After) lets nothing start in any phase until it ends. An operator's
 * pin replaces the phase and stops every rule until it is taken away.
 *
 * Nothing here has a clock, a timer or a leader. A state changes when a report comes in (`applyReport`) or when a job could
 * start (`admit` in admit.ts, which calls `passTime`), whichever process makes that call; `now` is always store time. A
 * report on runs that were admitted in an earlier epoch pays into the retry budget and may hold, but is no evidence.
 */

/** `parentDown`: most children of its parent fail at once, so the first failure is proof enough. */
export function applyReport(
  before: GateState,
  report: GateReport,
  now: number,
  random: Random,
  { parentDown = false }: { readonly parentDown?: boolean } = {},
): Transition {
  const bounded = withinBounds(before, now);
  const peak = peakRate(bounded.peak, now);
  const budget = spendOn(deposit(bounded.budget, report.firstSuccesses, peak, now), report.retries, peak, now);
  const gate: GateState = { ...bounded, budget, heardAt: now };
  if (gate.pin !== null) return unchanged(gate);
  const evidence = isCurrent(gate, report) ? applyEvidence(gate, report, parentDown, now, random) : unchanged(gate);
  const held = applyHold(evidence.state, report, isCurrent(gate, report), now);
  return { state: held.state, events: [...evidence.events, ...held.events] };
}

/** A closed gate stamps no epoch on its claims (it is not even read by them), so there the time of the claim decides. */
function isCurrent(gate: GateState, report: GateReport): boolean {
  return gate.phase === 'closed' ? report.claimedFrom >= gate.epoch : report.epoch === gate.epoch;
}

function applyEvidence(
  gate: GateState,
  report: GateReport,
  parentDown: boolean,
  now: number,
  random: Random,
): Transition {
  if (gate.phase === 'open') return whenOpen(gate, report, now, random);
  const window = addReport(gate.window, report, now);
  const figures = figuresOf(window, now);
  const othersLive = figures.living.some((worker) => worker !== report.worker);
  const { workers, isSuspect } = judgeWorker(gate.workers, report, othersLive, now, random);
  const next: GateState = { ...gate, window, workers };
  if (parentDown && report.environment > 0) return open(next, 'parent down', now - WINDOW_MS, now, random);
  const then =
    gate.phase === 'ramp' ? whenRamp(next, report, figures, isSuspect, now, random) : whenClosed(next, now, random);
  // The first worker to report an outage looks like a lone one; only a worker that fails again after its pause is news.
  const isConfirmed = isSuspect && gate.workers.some(({ worker, until }) => worker === report.worker && until > 0);
  if (!isConfirmed) return then;
  const suspect = gateEvent(gate, next, 'worker-suspect', 'one worker alone fails', now);
  return { state: then.state, events: [suspect, ...then.events] };
}

function whenClosed(gate: GateState, now: number, random: Random): Transition {
  const peak = measurePeak(gate.peak, gate.window, now);
  const budget = raiseCap(gate.budget, peakRate(gate.peak, now), peakRate(peak, now), now);
  const measured = { ...gate, peak, budget };
  const trip = tripOf(measured.window, now);
  return trip === null ? unchanged(measured) : open(measured, trip.rule, trip.from, now, random);
}

function whenOpen(gate: GateState, report: GateReport, now: number, random: Random): Transition {
  const { verdict, probes } = judgeProbe(gate.probes, report, longestInterval(gate, now), now, random);
  // No rule reads the window now; the ramp wants to know which workers saw signs of life.
  const probed: GateState = { ...gate, probes, window: addReport(gate.window, report, now) };
  if (verdict === 'recovered') return recover(probed, 'probes alive', now);
  const isDormant = verdict === 'down' && !gate.dormant && now - gate.downSince >= DORMANT_MS;
  return isDormant ? moved(gate, { ...probed, dormant: true }, 'dormant', 'down for 5 days', now) : unchanged(probed);
}

function whenRamp(
  gate: GateState,
  report: GateReport,
  figures: WindowFigures,
  isSuspect: boolean,
  now: number,
  random: Random,
): Transition {
  if (gate.ramp === null) return unchanged(gate);
  const counted = isSuspect ? gate.ramp : countOutcomes(gate.ramp, report);
  const isStreak = figures.streak >= rampStreak(counted);
  if ((isStreak || isHalfFailed(figures)) && !isOneWorkerAlone(figures)) {
    return open(gate, isStreak ? 'ramp failed: streak' : 'ramp failed: ratio', now - WINDOW_MS, now, random);
  }
  return unchanged({ ...gate, ramp: step(counted, provenRate(gate.peak, now), shareIn(figures), now) });
}

/** What time alone changes. Claims call it first. */
export function passTime(before: GateState, now: number, random: Random): Transition {
  const gate = withinBounds(before, now);
  if (gate.pin !== null) return unchanged(before);
  if (gate.phase === 'open') {
    return now - gate.heardAt >= FORGET_OPEN_MS ? recover(gate, 'not heard of for 24 h', now) : unchanged(before);
  }
  if (gate.ramp !== null) {
    return isUnused(gate.ramp, now) ? close(gate, 'rate not used', now) : unchanged(before);
  }
  const trip = tripByTime(gate.window, now);
  return trip === null ? unchanged(before) : open(gate, trip.rule, trip.from, now, random);
}

/** True when the row says nothing that a new one would not. `isWaitedFor`: jobs wait behind it, or run. */
export function isForgettable(state: GateState, isWaitedFor: boolean, now: number): boolean {
  if (state.phase !== 'closed' || state.pin !== null || isWaitedFor || state.heldUntil > now) return false;
  const isPeakKept = peakRate(state.peak, now) >= 2 && now - state.heardAt < PEAK_KEPT_MS;
  return now - state.heardAt >= QUIET_MS && !isPeakKept;
}
