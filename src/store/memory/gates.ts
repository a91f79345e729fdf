import { type Children, childrenSpanMs, type GateEvent, type GateState } from '../../gate/index.ts';
import type { Random } from '../../retry/jitter.ts';
import {
  applyOrder,
  applyReports,
  GATE_HISTORY_MS,
  type GateWrite,
  gateKey,
  gatesOf,
  mayForget,
  parentOf,
  parentsToCount,
} from '../gates.ts';
import type { GateAnswer, GateFilter, GateOrder, GateRef, StoredGate, WorkerReport } from '../store.ts';
import type { Partitions } from './partitions.ts';

interface GateRow {
  readonly gate: GateRef;
  readonly state: GateState;
}

/** The gates that have a row, and what happened to all of them. */
export class Gates {
  readonly #partitions: Partitions;
  readonly #rows: Map<string, GateRow> = new Map();
  readonly #history: Map<string, GateEvent[]> = new Map();

  constructor(partitions: Partitions) {
    this.#partitions = partitions;
  }

  get(gate: GateRef): GateState | null {
    return this.#rows.get(gateKey(gate))?.state ?? null;
  }

  write({ gate, state, events }: GateWrite, now: number): void {
    const key = gateKey(gate);
    this.#rows.set(key, { gate, state });
    if (events.length > 0) this.#history.set(key, [...(this.#history.get(key) ?? []), ...events]);
    if (gate.kind === 'resource') this.#partitions.gate(gate.name, state, now);
  }

  report(reports: readonly WorkerReport[], now: number, random: Random): GateAnswer[] {
    const states = new Map<string, GateState>();
    for (const gate of gatesOf(reports)) {
      const state = this.get(gate);
      if (state !== null) states.set(gateKey(gate), state);
    }
    const counted = new Map(
      parentsToCount(reports, states, now).map((parent) => [parent, this.#children(parent, now)]),
    );
    const { writes, answers } = applyReports(reports, states, counted, now, random);
    for (const write of writes) this.write(write, now);
    return answers;
  }

  change(gate: GateRef, order: GateOrder, operator: string, now: number, random: Random): GateAnswer {
    const { state, events } = applyOrder(gate, this.get(gate), order, operator, now, random);
    this.write({ gate, state, events }, now);
    return { gate, state, now, events };
  }

  list({ kind, name, limit, skipWaiting = false }: GateFilter, now: number): StoredGate[] {
    return [...this.#rows.values()]
      .filter(({ gate }) => (kind === undefined || gate.kind === kind) && (name === undefined || gate.name === name))
      .sort(
        (a, b) =>
          Number(a.state.phase === 'closed') - Number(b.state.phase === 'closed') || b.state.heardAt - a.state.heardAt,
      )
      .slice(0, limit)
      .map(({ gate, state }) => {
        const waiting = gate.kind === 'resource' && !skipWaiting ? this.#partitions.waitingFor(gate.name) : null;
        const firstDueAt = waiting === null || waiting === 0 ? null : this.#partitions.firstDueFor(gate.name);
        return { gate, state, now, waiting, firstDueAt };
      });
  }

  history(gate: GateRef, limit: number): GateEvent[] {
    return [...(this.#history.get(gateKey(gate)) ?? [])].reverse().slice(0, limit);
  }

  prune(now: number): void {
    for (const [key, { gate, state }] of this.#rows) {
      const isWaitedFor = gate.kind === 'resource' && this.#partitions.waitingFor(gate.name) > 0;
      if (!mayForget(gate, state, isWaitedFor, now)) continue;
      this.#rows.delete(key);
      this.#partitions.ungate(gate.name);
    }
    for (const [key, events] of this.#history) {
      const kept = events.filter(({ at }) => at > now - GATE_HISTORY_MS);
      if (kept.length === 0) this.#history.delete(key);
      else this.#history.set(key, kept);
    }
  }

  #children(parent: string, now: number): Children {
    const since = now - childrenSpanMs;
    const children = [...this.#rows.values()].filter(
      ({ gate, state }) => gate.kind === 'resource' && parentOf(gate.name) === parent && state.heardAt >= since,
    );
    const opened = children.filter(({ state }) => state.phase === 'open' && state.epoch >= since).length;
    return { active: children.length, opened };
  }
}
