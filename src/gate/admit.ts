import type { Random } from '../retry/jitter.ts';
import { withinBounds } from './bounds.ts';
import { fundedAt, spendOn, tokensIn } from './budget.ts';
import { RAMP_BATCH_MS, RAMP_BURST_MS } from './constants.ts';
import type { GateEvent } from './event.ts';
import { passTime } from './gate.ts';
import { probeAt, startProbe } from './probe.ts';
import type { Ramp } from './ramp-state.ts';
import { chargeTokens, peakRate, tokensAt, tokensOf } from './rate.ts';
import type { GateState } from './state.ts';
import { workerAllowance } from './workers.ts';

/** What a claim wants of a gate, for one partition. */
export interface AdmitRequest {
  /** The key of the claiming worker. */
  readonly worker: number;
  /** How many jobs the claim has room for, and how many are due (counting may stop above `places`). */
  readonly places: number;
  readonly due: number;
  /** A retry is paid for by the budget; fresh and redriven jobs are not. */
  readonly pays: 'retry' | 'nothing';
}

export interface Admission {
  /** The same object as before when nothing needs to be written. */
  readonly state: GateState;
  readonly events: readonly GateEvent[];
  readonly starts: number;
  /** True when the one job that starts is a probe: `pickProbe` chooses it. */
  readonly isProbe: boolean;
  /**
   * Goes with the claimed jobs and comes back in their report. 0 when nothing was charged for them: behind a closed gate,
   * unless they are retries that the budget paid for. Their report must not charge them again.
   */
  readonly epoch: number;
}

/** How many jobs may start now. The answer must be used in the write that stores the state. */
export function admit(before: GateState, request: AdmitRequest, now: number, random: Random): Admission {
  const passed = passTime(before, now, random);
  const { events } = passed;
  const state = withinBounds(passed.state, now);
  const wanted = Math.max(0, Math.min(request.places, request.due));
  const unwritten = { state: passed.state, events, isProbe: false, epoch: 0 };
  if (wanted === 0 || startsAt(state, request, now) > now) return { ...unwritten, starts: 0 };
  if (state.pin === 'closed') return { ...unwritten, starts: wanted };
  if (state.phase === 'open') {
    const probing = { ...state, probes: startProbe(state.probes, now) };
    return { state: probing, events, starts: 1, isProbe: true, epoch: state.epoch };
  }
  const peak = peakRate(state.peak, now);
  const funded = request.pays === 'retry' ? Math.floor(tokensIn(state.budget, peak, now)) : wanted;
  const asked = Math.min(wanted, funded, workerAllowance(state.workers, request.worker, now).starts);
  const { starts, ramp } =
    state.ramp === null ? { starts: asked, ramp: null } : charge(state.ramp, asked, request.due, now);
  const budget = request.pays === 'retry' && starts > 0 ? spendOn(state.budget, starts, peak, now) : state.budget;
  if (ramp === null && budget === state.budget) return { ...unwritten, starts };
  return { state: { ...state, ramp, budget }, events, starts, isProbe: false, epoch: Math.max(1, state.epoch) };
}

/** The rate is the limit when due jobs are left behind that the next claim could not take either. */
function charge(ramp: Ramp, asked: number, due: number, now: number): { starts: number; ramp: Ramp } {
  const starts = Math.min(asked, tokensOf(ramp.tat, ramp.limit, RAMP_BURST_MS, now));
  const tat = chargeTokens(ramp.tat, ramp.limit, starts, now);
  const isBound = due > starts && tokensInRamp({ ...ramp, tat }, now) > now;
  return { starts, ramp: { ...ramp, tat, boundAt: isBound ? now : ramp.boundAt } };
}

/** The `admissibleAt` of a partition behind this gate; null when only an operator can admit it. */
export function admissibleAt(
  state: GateState,
  request: Pick<AdmitRequest, 'pays'> & { readonly worker?: number },
  now: number,
): number | null {
  const at = startsAt(withinBounds(state, now), { worker: null, ...request }, now);
  return at === Number.POSITIVE_INFINITY ? null : at;
}

function startsAt(
  state: GateState,
  { worker, pays }: { readonly worker: number | null; readonly pays: AdmitRequest['pays'] },
  now: number,
): number {
  if (state.pin !== null) return state.pin === 'open' ? Number.POSITIVE_INFINITY : now;
  const from = Math.max(now, state.heldUntil);
  if (state.phase === 'open') return Math.max(from, probeAt(state.probes, worker));
  const funded = pays === 'retry' ? fundedAt(state.budget, peakRate(state.peak, now), now) : from;
  const allowed = worker === null ? from : workerAllowance(state.workers, worker, now).from;
  return Math.max(from, funded, allowed, state.ramp === null ? from : tokensInRamp(state.ramp, now));
}

export function tokensInRamp({ tat, limit }: Ramp, now: number): number {
  const batch = Math.max(1, Math.floor((limit * RAMP_BATCH_MS) / 1_000));
  return tokensAt(tat, limit, RAMP_BURST_MS, batch, now);
}
