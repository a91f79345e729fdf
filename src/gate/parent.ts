import type { Random } from '../retry/jitter.ts';
import { withinBounds } from './bounds.ts';
import { PARENT_CHILDREN, PARENT_PROBES_PER_SECOND, PARENT_SHARE, PARENT_SPAN_MS } from './constants.ts';
import { chargeTokens, tokensOf } from './rate.ts';
import type { GateState } from './state.ts';
import { open, type Transition } from './transition.ts';

/*
 * `['webhook', host]` has a gate per host and a parent, `webhook`. Hosts fail one by one; when many trip within a minute,
 * it is our own network, and the parent opens. Its probes are jobs of any child, and it comes back like every gate.
 */

/** Children of one parent within the last minute: those that reported, and those of them that opened. */
export interface Children {
  readonly active: number;
  readonly opened: number;
}

/** Children count within this span of store time. */
export const childrenSpanMs: number = PARENT_SPAN_MS;

export function childrenTrip({ active, opened }: Children): boolean {
  return active >= PARENT_CHILDREN && opened >= PARENT_SHARE * active;
}

/** Asked by the process whose report has just opened a child. */
export function applyChildren(parent: GateState, children: Children, now: number, random: Random): Transition {
  const gate = withinBounds(parent, now);
  const isClosed = gate.phase === 'closed' && gate.pin === null;
  if (!isClosed || !childrenTrip(children)) return { state: parent, events: [] };
  return open(gate, `children ${children.opened} of ${children.active}`, now - PARENT_SPAN_MS, now, random);
}

/** All children's probes together keep to a rate. `tat` is the one number stored with the parent. Null: not now. */
export function admitChildProbe(tat: number, now: number): { readonly tat: number } | null {
  const bounded = Math.min(tat, now + 1_000);
  if (tokensOf(bounded, PARENT_PROBES_PER_SECOND, 0, now) < 1) return null;
  return { tat: chargeTokens(bounded, PARENT_PROBES_PER_SECOND, 1, now) };
}
