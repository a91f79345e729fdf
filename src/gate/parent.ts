import type { Random } from '../retry/jitter.ts';
import { withinBounds } from './bounds.ts';
import {
  PARENT_CHILDREN,
  PARENT_COUNT_MS,
  PARENT_PROBES_BURST_MS,
  PARENT_PROBES_PER_SECOND,
  PARENT_SHARE,
  PARENT_SPAN_MS,
} from './constants.ts';
import type { GateReport } from './evidence.ts';
import { chargeTokens, tokensAt, tokensOf } from './rate.ts';
import { applySoftReport } from './soft.ts';
import type { GateState } from './state.ts';
import { open, type Transition, unchanged } from './transition.ts';

/*
 * `['webhook', host]` has a gate per host and a parent, `webhook`. Hosts fail one by one; when many trip within a minute, it
 * is our own network, and the parent judges "outage". A parent holds nothing itself: while it judges outage, each child
 * opens at its first failure instead of its tenth. It judges like a soft gate when the outage is over. The probes of
 * all its children together keep to a rate.
 */

/** Children of one parent within the last minute: those that reported, and those of them that opened. */
export interface Children {
  readonly active: number;
  readonly opened: number;
}

/** Children count within this span of store time. */
export const childrenSpanMs: number = PARENT_SPAN_MS;

function childrenTrip({ active, opened }: Children): boolean {
  return active >= PARENT_CHILDREN && opened >= PARENT_SHARE * active;
}

/** Counting the rows of 100,000 children takes a while, so it is not done with every report. */
export function isCountDue(parent: GateState, now: number): boolean {
  return (
    parent.phase === 'closed' && (now - parent.children.countedAt >= PARENT_COUNT_MS || parent.children.countedAt > now)
  );
}

/** `counted` is null when the rows of the children were not counted this time. */
export function applyParentReport(
  before: GateState,
  report: GateReport,
  counted: Children | null,
  now: number,
  random: Random,
): Transition {
  const judged = applySoftReport(before, report, now, random, { trips: false });
  const seen = remember(judged.state, report, now);
  if (counted === null || seen.phase !== 'closed') return { state: seen, events: judged.events };
  const parent = { ...seen, children: { ...seen.children, countedAt: now } };
  const children = { opened: counted.opened, active: Math.max(counted.active, livingIn(parent, now)) };
  const tripped = childrenTrip(children)
    ? open(parent, `children ${children.opened} of ${children.active}`, now - PARENT_SPAN_MS, now, random)
    : unchanged(parent);
  return { state: tripped.state, events: [...judged.events, ...tripped.events] };
}

function remember(parent: GateState, { livingChildren }: GateReport, now: number): GateState {
  if (livingChildren < livingIn(parent, now) || livingChildren === 0) return parent;
  return { ...parent, children: { ...parent.children, living: livingChildren, livingAt: now } };
}

function livingIn({ children }: GateState, now: number): number {
  return now - children.livingAt <= PARENT_SPAN_MS ? children.living : 0;
}

/** All children's probes together keep to a rate. Null: not now. */
export function admitChildProbe(before: GateState, now: number): GateState | null {
  const parent = withinBounds(before, now);
  const tat = probesTat(parent, now);
  if (tokensOf(tat, PARENT_PROBES_PER_SECOND, PARENT_PROBES_BURST_MS, now) < 1) return null;
  const charged = chargeTokens(tat, PARENT_PROBES_PER_SECOND, 1, now);
  return { ...parent, children: { ...parent.children, probesTat: charged } };
}

/** A probe that was handed back made no call: another one may start for it. */
export function returnChildProbe(parent: GateState): GateState {
  const probesTat = Math.max(0, parent.children.probesTat - 1_000 / PARENT_PROBES_PER_SECOND);
  return { ...parent, children: { ...parent.children, probesTat } };
}

/** When the next probe of a child may start. */
export function childProbeAt(parent: GateState, now: number): number {
  return tokensAt(probesTat(parent, now), PARENT_PROBES_PER_SECOND, PARENT_PROBES_BURST_MS, 1, now);
}

/** A time further ahead than one second comes from a clock that has stepped back since. */
function probesTat({ children }: GateState, now: number): number {
  return Math.min(children.probesTat, now + 1_000);
}
