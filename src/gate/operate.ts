import type { Random } from '../retry/jitter.ts';
import { withinBounds } from './bounds.ts';
import { gateEvent } from './event.ts';
import { firstProbe } from './probe.ts';
import { closedGate, type GateState, type Pin } from './state.ts';
import { nextEpoch, type Transition } from './transition.ts';

/** Keeps the gate open (nothing starts, not even probes) or closed (everything starts) until it is unpinned. */
export function pin(before: GateState, to: Pin, operator: string, now: number, random: Random): Transition {
  const gate = withinBounds(before, now);
  const probes = to === 'open' ? firstProbe(now, random) : gate.probes;
  const outage = to === 'closed' ? { downSince: 0, dormant: false } : {};
  const pinned: GateState = { ...gate, ...outage, pin: to, phase: to, epoch: nextEpoch(gate, now), ramp: null, probes };
  return { state: pinned, events: [gateEvent(gate, pinned, 'pinned', 'operator', now, operator)] };
}

/** Gives the gate back to its rules. One that was pinned open finds out by probes whether the dependency is there. */
export function unpin(before: GateState, operator: string, now: number): Transition {
  if (before.pin === null) return { state: before, events: [] };
  const gate = withinBounds(before, now);
  const probes = { ...gate.probes, at: now };
  // How long the dependency was away while nothing asked it is not known.
  const downSince = gate.phase === 'open' ? now : 0;
  const free: GateState = { ...gate, pin: null, epoch: nextEpoch(gate, now), probes, heardAt: now, downSince };
  return { state: free, events: [gateEvent(gate, free, 'unpinned', 'operator', now, operator)] };
}

/** A closed gate that has forgotten everything but its peak and the outages that jobs may still be refunded for. */
export function reset(before: GateState, operator: string, now: number): Transition {
  const gate = withinBounds(before, now);
  const { keyed, peak, covered } = gate;
  const fresh: GateState = { ...closedGate(now, { keyed }), epoch: nextEpoch(gate, now), peak, covered };
  return { state: fresh, events: [gateEvent(gate, fresh, 'reset', 'operator', now, operator)] };
}
