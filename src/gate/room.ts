import type { Random } from '../retry/jitter.ts';
import { accessOf, budgetOf } from './access.ts';
import { tokensInRamp } from './admit.ts';
import { recoverWithParent } from './admit-claim.ts';
import { withinBounds } from './bounds.ts';
import { fundedAt, spendOn, tokensIn } from './budget.ts';
import { RAMP_BURST_MS } from './constants.ts';
import type { GateEvent } from './event.ts';
import { passTime } from './gate.ts';
import { admitChildProbe, childProbeAt } from './parent.ts';
import { longestInterval, postpone, probeAt, startProbe } from './probe.ts';
import { chargeTokens, peakRate, tokensOf } from './rate.ts';
import type { GateState } from './state.ts';
import { workerAllowance } from './workers.ts';

/*
 * What a gate has room for, looked at without taking it (`gateRoom`), and the gate after jobs have started (`admitted`).
 * A claim that plans over all kinds of jobs first looks, then gives out places, and charges each gate once for all it got.
 */

export interface GateRoom {
  /** The gate as it is now: time may have moved it. The same object as before when nothing has. */
  readonly state: GateState;
  readonly parent: GateState | null;
  readonly events: readonly GateEvent[];
  /** So many jobs may start, of the lanes `fresh`, `redrive` and `retry` together; and so many retries among them. */
  readonly starts: number;
  readonly retries: number;
  /** A suspect is tried alone and is charged to nothing. */
  readonly admitsSuspect: boolean;
  /** The one job that starts is a probe. */
  readonly isProbe: boolean;
  /** Whether a start is charged to the gate, and whether that of a retry is: then the gate must be written with them. */
  readonly chargesAll: boolean;
  readonly chargesRetries: boolean;
  /** When time alone will let a job start, or a retry; null when only another state of the gate will. */
  readonly freshAt: number | null;
  readonly retryAt: number | null;
}

/** `parent`: that of a keyed gate; null when it has no row. */
export function gateRoom(
  before: GateState,
  parent: GateState | null,
  worker: number,
  now: number,
  random: Random,
): GateRoom {
  const { state: passed, events } = recoverWithParent(passTime(before, now, random), parent, now);
  const state = withinBounds(passed, now);
  const common = { state: passed, parent, events, admitsSuspect: admitsSuspect(passed, now) };
  if (state.pin === 'closed') return { ...common, ...open(Number.POSITIVE_INFINITY, now) };
  if (state.pin === 'open') return { ...common, ...shut(null) };
  const from = Math.max(now, state.heldUntil);
  if (state.phase === 'open') {
    const own = Math.max(from, probeAt(state.probes, worker));
    if (own > now) return { ...common, ...shut(own) };
    // The probes of all keys of a parent keep to a rate. One that finds no room waits as if it had failed.
    if (parent !== null && admitChildProbe(parent, now) === null) {
      const postponed = { ...state, probes: postpone(state.probes, longestInterval(state, now), now, random) };
      const at = Math.max(probeAt(postponed.probes, worker), childProbeAt(parent, now));
      return { ...common, ...shut(at), state: postponed };
    }
    return { ...common, ...open(1, now), isProbe: true, chargesAll: true, chargesRetries: true };
  }
  const allowance = workerAllowance(state.workers, worker, now);
  const freshAt = Math.max(from, allowance.from, state.ramp === null ? from : tokensInRamp(state.ramp, now));
  if (freshAt > now) return { ...common, ...shut(freshAt) };
  const starts = state.ramp === null ? allowance.starts : Math.min(allowance.starts, rampTokens(state, now));
  const room = open(starts, now);
  const chargesAll = state.ramp !== null;
  if (!chargesAll && !budgetOf(state, now).isLow) return { ...common, ...room };
  const peak = peakRate(state.peak, now);
  const retries = Math.max(0, Math.min(starts, Math.floor(tokensIn(state.budget, peak, now))));
  return {
    ...common,
    ...room,
    retries,
    chargesAll,
    chargesRetries: true,
    retryAt: fundedAt(state.budget, peak, now),
  };
}

type Room = Omit<GateRoom, 'state' | 'parent' | 'events' | 'admitsSuspect'>;

function open(starts: number, now: number): Room {
  return {
    starts,
    retries: starts,
    isProbe: false,
    chargesAll: false,
    chargesRetries: false,
    freshAt: now,
    retryAt: now,
  };
}

function shut(at: number | null): Room {
  return { starts: 0, retries: 0, isProbe: false, chargesAll: false, chargesRetries: false, freshAt: at, retryAt: at };
}

function admitsSuspect(state: GateState, now: number): boolean {
  const { at } = accessOf(state, now).suspect;
  return at !== null && at <= now;
}

function rampTokens({ ramp }: GateState, now: number): number {
  return ramp === null ? Number.POSITIVE_INFINITY : tokensOf(ramp.tat, ramp.limit, RAMP_BURST_MS, now);
}

/** What started of a plan, and whether more was due behind the gate than it let start. */
export interface GateStarts {
  readonly fresh: number;
  readonly retries: number;
  readonly isMoreDue: boolean;
}

export interface GateCharge {
  readonly state: GateState;
  readonly parent: GateState | null;
  /** Goes with the jobs and comes back in their report. 0 when nothing was charged for them: their report charges them. */
  readonly epoch: number;
}

/** The gate after these jobs have started. The same objects as in the room when nothing was charged. */
export function admitted(room: GateRoom, { fresh, retries, isMoreDue }: GateStarts, now: number): GateCharge {
  const { parent } = room;
  const starts = fresh + retries;
  const paid = room.chargesRetries && !room.isProbe ? retries : 0;
  if (starts === 0 || (!room.chargesAll && paid === 0)) return { state: room.state, parent, epoch: 0 };
  const state = withinBounds(room.state, now);
  const epoch = Math.max(1, state.epoch);
  if (room.isProbe) {
    const probing = { ...state, probes: startProbe(state.probes, now) };
    return { state: probing, parent: parent && admitChildProbe(parent, now), epoch };
  }
  const budget = paid === 0 ? state.budget : spendOn(state.budget, paid, peakRate(state.peak, now), now);
  if (state.ramp === null) return { state: { ...state, budget }, parent, epoch };
  const tat = chargeTokens(state.ramp.tat, state.ramp.limit, starts, now);
  // The rate is the limit when due jobs are left behind that the next claim could not take either.
  const isBound = isMoreDue && tokensInRamp({ ...state.ramp, tat }, now) > now;
  const ramp = { ...state.ramp, tat, boundAt: isBound ? now : state.ramp.boundAt };
  return { state: { ...state, budget, ramp }, parent, epoch };
}
