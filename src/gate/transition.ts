import type { Random } from '../retry/jitter.ts';
import { COVERED_KEPT, RAMP_REMEMBERED_MS } from './constants.ts';
import { type GateChange, type GateEvent, gateEvent } from './event.ts';
import { firstProbe } from './probe.ts';
import { failedRamp, startRamp } from './ramp.ts';
import type { Ramp } from './ramp-state.ts';
import { provenRate } from './rate.ts';
import { noJobs } from './sets.ts';
import type { GateState } from './state.ts';
import { emptyWindow, type Window } from './window.ts';

/** A state and what happened on the way to it. The state is the same object when nothing needs to be written. */
export interface Transition {
  readonly state: GateState;
  readonly events: readonly GateEvent[];
}

export function unchanged(state: GateState): Transition {
  return { state, events: [] };
}

/** Every transition begins an epoch. It is a time, so that a gate whose row was deleted does not repeat one. */
export function nextEpoch({ epoch }: GateState, now: number): number {
  return Math.max(Math.ceil(now), epoch + 1);
}

export function moved(before: GateState, after: GateState, change: GateChange, rule: string, now: number): Transition {
  return { state: after, events: [gateEvent(before, after, change, rule, now)] };
}

/** Opens the gate. Environment failures since `from` belong to the outage. */
export function open(gate: GateState, rule: string, from: number, now: number, random: Random): Transition {
  const opened: GateState = {
    ...gate,
    phase: 'open',
    epoch: nextEpoch(gate, now),
    probes: firstProbe(now, random),
    ramp: null,
    failedRamp: gate.ramp === null ? gate.failedRamp : { ...failedRamp(gate.ramp), at: now },
    covered: cover(gate.covered, from, now),
    downSince: gate.downSince === 0 ? now : gate.downSince,
  };
  return moved(gate, opened, 'opened', rule, now);
}

/** Spans that touch become one, so that a gate that flaps does not push out older outages. */
function cover(covered: GateState['covered'], from: number, until: number): GateState['covered'] {
  const last = covered.at(-1);
  if (last !== undefined && last[1] >= from) return [...covered.slice(0, -1), [Math.min(last[0], from), until]];
  return [...covered, [from, until] as const].slice(-COVERED_KEPT);
}

export function recover(gate: GateState, rule: string, now: number): Transition {
  const { failedRamp: failed } = gate;
  const isRemembered = failed !== null && now - failed.at < RAMP_REMEMBERED_MS;
  const ramp = startRamp(provenRate(gate.peak, now), isRemembered ? failed : null, now);
  return moved(gate, toRamp(gate, ramp, now), 'recovering', rule, now);
}

export function toRamp(gate: GateState, ramp: Ramp, now: number): GateState {
  return { ...gate, phase: 'ramp', epoch: nextEpoch(gate, now), ramp, window: restarted(gate.window), workers: [] };
}

export function close(gate: GateState, rule: string, now: number): Transition {
  const closed: GateState = {
    ...gate,
    phase: 'closed',
    epoch: nextEpoch(gate, now),
    ramp: null,
    window: restarted(gate.window),
    downSince: 0,
    dormant: false,
  };
  return moved(gate, closed, 'closed', rule, now);
}

/**
 * What was seen in one phase is no evidence in the next. Which workers saw signs of life stays known: a bad worker may be
 * the first to report in the new phase. So does how slow the traffic is.
 */
function restarted({ span, buckets }: Window): Window {
  const living = buckets.map((bucket) => ({ ...bucket, alive: 0, environment: 0, asks: 0, jobs: noJobs, failing: [] }));
  return { ...emptyWindow, span, buckets: living };
}
