import {
  applyParentReport,
  applyReport,
  applySoftReport,
  type Children,
  closedGate,
  foldChildren,
  type GateEvent,
  type GateReport,
  type GateState,
  gateKey,
  isCountDue,
  isForgettable,
  isHandedBack,
  isSoftForgettable,
  passSoftTime,
  passTime,
  pin,
  reset,
  returnChildProbe,
  type Transition,
  unchanged,
  unpin,
} from '../gate/index.ts';
import type { Random } from '../retry/jitter.ts';
import type { GateAnswer, GateOrder, GateRef, WorkerReport } from './store.ts';

/*
 * How every store changes its gates: it reads the rows that `gatesOf` names, lets these functions work out what becomes
 * of them, and writes that, all in one transaction (or so that a row that changed meanwhile is noticed). A store that writes
 * a gate of a resource also copies `accessOf(state)` to the partitions of that resource.
 */

export { gateKey } from '../gate/index.ts';

/** Rows by `gateKey`. */
export type GateStates = ReadonlyMap<string, GateState>;

export interface GateWrite {
  readonly gate: GateRef;
  readonly state: GateState;
  /** Rows of the gate's history. */
  readonly events: readonly GateEvent[];
}

/** The parent of a keyed resource such as `webhook/example.com`; null for one without a key. */
export function parentOf(resource: string): string | null {
  const end = resource.indexOf('/');
  return end < 0 ? null : resource.slice(0, end);
}

export function parentGate({ kind, name }: GateRef): GateRef | null {
  const parent = kind === 'resource' ? parentOf(name) : null;
  return parent === null ? null : { kind: 'parent', name: parent };
}

/** A gate without a row. Its epoch is 0, so that the first report on it is current. */
export function newGate({ kind, name }: GateRef, now: number): GateState {
  return { ...closedGate(now, { keyed: kind === 'resource' && parentOf(name) !== null }), epoch: 0 };
}

/** The gates that a batch of reports may change, each once, in an order that all processes share. */
export function gatesOf(reports: readonly WorkerReport[]): GateRef[] {
  const gates = new Map<string, GateRef>();
  for (const { gate } of reports) {
    gates.set(gateKey(gate), gate);
    const parent = parentGate(gate);
    if (parent !== null) gates.set(gateKey(parent), parent);
  }
  return [...gates.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, gate]) => gate);
}

/** The parents whose children must be counted (`Children`) before `applyReports` is called. */
export function parentsToCount(reports: readonly WorkerReport[], states: GateStates, now: number): string[] {
  const parents = new Set<string>();
  for (const { gate, report } of reports) {
    const parent = parentGate(gate);
    if (parent === null || report === null || report.environment === 0) continue;
    if (isCountDue(states.get(gateKey(parent)) ?? newGate(parent, now), now)) parents.add(parent.name);
  }
  return [...parents];
}

export function applyReports(
  reports: readonly WorkerReport[],
  states: GateStates,
  children: ReadonlyMap<string, Children>,
  now: number,
  random: Random,
): { readonly writes: GateWrite[]; readonly answers: GateAnswer[] } {
  const gates = new ChangedGates(states, now);
  const answers = reports.map(({ gate, report, worker }): GateAnswer => {
    const change = (before: GateState): Transition => named(applyOne(gates, gate, before, report, now, random), worker);
    const { state, events } =
      report === null || saysNothingNew(gates, gate, report) ? gates.look(gate, change) : gates.change(gate, change);
    return { gate, state, now, events };
  });
  for (const [parent, reported] of byParent(reports)) {
    const folded = foldChildren(reported);
    const counted = withThisBatch(children.get(parent) ?? null, parent, answers, states);
    if (folded === null) continue;
    const gate: GateRef = { kind: 'parent', name: parent };
    const changed = gates.change(gate, (before) => applyParentReport(before, folded, counted, now, random));
    if (changed.events.length > 0) answers.push({ gate, now, ...changed });
  }
  return { writes: gates.writes(), answers };
}

function applyOne(
  gates: ChangedGates,
  gate: GateRef,
  before: GateState,
  report: GateReport | null,
  now: number,
  random: Random,
): Transition {
  if (gate.kind === 'parent') {
    // Only its children say when its outage begins, so time alone changes nothing.
    return report === null ? unchanged(before) : applyParentReport(before, report, null, now, random);
  }
  if (gate.kind === 'job') {
    return report === null ? passSoftTime(before, now, random) : applySoftReport(before, report, now, random);
  }
  if (report === null) return passTime(before, now, random);
  const parent = parentGate(gate);
  const parentDown = parent !== null && gates.get(parent)?.phase === 'open';
  const wasProbe = before.phase === 'open' && report.epoch === before.epoch;
  if (wasProbe && isHandedBack(report) && parent !== null && gates.get(parent) !== null) {
    gates.change(parent, (charged) => unchanged(returnChildProbe(charged)));
  }
  return applyReport(before, report, now, random, { parentDown });
}

/** A gate knows its workers by hashes; people want to know which process to look at. */
function named({ state, events }: Transition, worker: string | undefined): Transition {
  return {
    state,
    events: events.map((event) => (event.change === 'worker-suspect' ? { ...event, who: worker ?? null } : event)),
  };
}

/** Of 100,000 keys that are all well, none needs a row. */
function saysNothingNew(
  gates: ChangedGates,
  gate: GateRef,
  { environment, throttled, retryAfterMs }: GateReport,
): boolean {
  return parentGate(gate) !== null && gates.get(gate) === null && environment + throttled + retryAfterMs === 0;
}

function byParent(reports: readonly WorkerReport[]): Map<string, GateReport[]> {
  const parents = new Map<string, GateReport[]>();
  for (const { gate, report } of reports) {
    const parent = parentGate(gate);
    if (parent === null || report === null) continue;
    parents.set(parent.name, [...(parents.get(parent.name) ?? []), report]);
  }
  return parents;
}

/** The rows were counted before this batch was applied. */
function withThisBatch(
  counted: Children | null,
  parent: string,
  answers: readonly GateAnswer[],
  states: GateStates,
): Children | null {
  if (counted === null) return null;
  const ofParent = answers.filter(({ gate }) => parentGate(gate)?.name === parent);
  const added = new Set(ofParent.map(({ gate }) => gateKey(gate)).filter((key) => !states.has(key)));
  const opened = ofParent.filter(({ events }) => events.some(({ change }) => change === 'opened')).length;
  return { active: counted.active + added.size, opened: counted.opened + opened };
}

/** The rows that a call has read, and those that it must write. */
class ChangedGates {
  readonly #states: Map<string, GateState>;
  readonly #writes: Map<string, GateWrite> = new Map();
  readonly #now: number;

  constructor(states: GateStates, now: number) {
    this.#states = new Map(states);
    this.#now = now;
  }

  get(gate: GateRef): GateState | null {
    return this.#states.get(gateKey(gate)) ?? null;
  }

  /** Time alone may have changed it; a gate without a row gets none. */
  look(gate: GateRef, change: (before: GateState) => Transition): Transition {
    return this.get(gate) === null ? { state: newGate(gate, this.#now), events: [] } : this.change(gate, change);
  }

  change(gate: GateRef, change: (before: GateState) => Transition): Transition {
    const key = gateKey(gate);
    const before = this.#states.get(key) ?? newGate(gate, this.#now);
    const changed = change(before);
    if (changed.state === before && this.#states.has(key)) return changed;
    this.#states.set(key, changed.state);
    const events = [...(this.#writes.get(key)?.events ?? []), ...changed.events];
    this.#writes.set(key, { gate, state: changed.state, events });
    return changed;
  }

  writes(): GateWrite[] {
    return [...this.#writes.values()];
  }
}

/** What an operator's order makes of a gate; `before` is null when it has no row. */
export function applyOrder(
  gate: GateRef,
  before: GateState | null,
  order: GateOrder,
  operator: string,
  now: number,
  random: Random,
): Transition {
  const state = before ?? newGate(gate, now);
  switch (order) {
    case 'open':
      return pin(state, 'open', operator, now, random);
    case 'close':
      return pin(state, 'closed', operator, now, random);
    case 'unpin':
      return unpin(state, operator, now);
    case 'reset':
      return reset(state, operator, now);
  }
}

/** True when a gate's row may go. `isWaitedFor`: a job waits behind it. */
export function mayForget({ kind }: GateRef, state: GateState, isWaitedFor: boolean, now: number): boolean {
  return kind === 'resource' ? isForgettable(state, isWaitedFor, now) : isSoftForgettable(state, now);
}

/** A gate's history is kept for this long. */
export const GATE_HISTORY_MS: number = 30 * 86_400_000;

/** True when workers that sleep should look again: jobs may start sooner than they know. */
export function isNewsToWorkers({ gate, state, events }: Pick<GateAnswer, 'gate' | 'state' | 'events'>): boolean {
  // The report on a probe frees its slot.
  return events.length > 0 || (gate.kind === 'resource' && state.phase === 'open' && state.pin === null);
}
