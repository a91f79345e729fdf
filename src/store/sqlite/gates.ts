import {
  accessOf,
  type Children,
  childrenSpanMs,
  formatGate,
  type GateAccess,
  type GateState,
  isFree,
  parseGate,
} from '../../gate/index.ts';
import {
  applyOrder,
  applyReports,
  type GateStates,
  type GateWrite,
  gateKey,
  gatesOf,
  isNewsToWorkers,
  parentGate,
  parentOf,
  parentsToCount,
} from '../gates.ts';
import { orderRow } from '../orders.ts';
import type { GateAnswer, GateOrder, GateRef, Order, WorkerReport } from '../store.ts';
import { recordOrder } from './operations.ts';
import type { Session } from './session.ts';

/*
 * A gate is a row: its state as JSON, and beside it what is asked of many gates at once. `access` is what its state meant
 * for the partitions of its resource when it was last written. They have copied it in the same transaction, and partitions
 * that are made later copy it from the row.
 */

const FIND = 'SELECT state, access FROM gates WHERE kind = ? AND name = ?';
const WRITE = `
  INSERT INTO gates (kind, name, parent, is_closed, heard_at, opened_at, access, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (kind, name) DO UPDATE SET is_closed = excluded.is_closed, heard_at = excluded.heard_at,
    opened_at = excluded.opened_at, access = excluded.access, state = excluded.state`;
const ADD_HISTORY = 'INSERT INTO gate_history (kind, name, at, event) VALUES (?, ?, ?, ?)';
const COUNT_CHILDREN = `
  SELECT count(*) AS active, count(*) FILTER (WHERE opened_at >= ?2) AS opened
  FROM gates WHERE parent = ?1 AND heard_at >= ?2`;

export interface GateRow {
  readonly state: GateState;
  /** JSON; null when all partitions are free. */
  readonly access: string | null;
}

/** Null when the gate has no row. */
export function findGate(session: Session, gate: GateRef): GateRow | null {
  const name = session.strings.find(gate.name);
  const row = name === null ? undefined : session.sql(FIND).get(gate.kind, name);
  if (!row) return null;
  const { state, access } = row as { state: string; access: string | null };
  return { state: parseState(gate, state, session.now), access };
}

export function parseState(gate: GateRef, text: string, now: number): GateState {
  return parseGate(text, now, { keyed: parentGate(gate) !== null });
}

/** What a gate's partitions copy; null when all of them are free. */
export function accessText(gate: GateRef, state: GateState, now: number): string | null {
  if (gate.kind !== 'resource') return null;
  const access = accessOf(state, now);
  return isFree(access) ? null : JSON.stringify(inWholeMs(access));
}

/** Columns hold whole milliseconds; a job must not start before its time. */
function inWholeMs({ fresh, retry, suspect }: GateAccess): GateAccess {
  const whole = <T extends GateAccess['fresh']>(access: T): T => ({ ...access, at: access.at && Math.ceil(access.at) });
  return { fresh: whole(fresh), retry: whole(retry), suspect: whole(suspect) };
}

/** `before`: the gate's access as it is stored. */
export function writeGate(session: Session, { gate, state, events }: GateWrite, before: string | null): void {
  const { strings, now } = session;
  const name = gate.kind === 'resource' ? strings.internResource(gate.name) : strings.intern(gate.name);
  const parent = gate.kind === 'resource' ? parentOf(gate.name) : null;
  const access = accessText(gate, state, now);
  session
    .sql(WRITE)
    .run(
      gate.kind,
      name,
      parent === null ? null : strings.intern(parent),
      state.phase === 'closed' ? 1 : 0,
      Math.floor(state.heardAt),
      state.phase === 'open' ? Math.floor(state.epoch) : null,
      access,
      formatGate(state),
    );
  for (const event of events)
    session.sql(ADD_HISTORY).run(gate.kind, name, Math.floor(event.at), JSON.stringify(event));
  if (access !== before) session.partitions.restrict(name);
  session.madeWork ||= events.length > 0;
}

export function report(session: Session, reports: readonly WorkerReport[]): GateAnswer[] {
  const { now, random } = session;
  const states = new Map<string, GateState>();
  const accesses = new Map<string, string | null>();
  for (const gate of gatesOf(reports)) {
    const row = findGate(session, gate);
    if (row === null) continue;
    states.set(gateKey(gate), row.state);
    accesses.set(gateKey(gate), row.access);
  }
  const counted = countChildren(session, reports, states);
  const { writes, answers } = applyReports(reports, states, counted, now, random);
  for (const write of writes) writeGate(session, write, accesses.get(gateKey(write.gate)) ?? null);
  session.madeWork ||= answers.some(isNewsToWorkers);
  return answers;
}

function countChildren(session: Session, reports: readonly WorkerReport[], states: GateStates): Map<string, Children> {
  const since = session.now - childrenSpanMs;
  return new Map(
    parentsToCount(reports, states, session.now).map((parent) => {
      const children = session.sql(COUNT_CHILDREN).get(session.strings.find(parent), since);
      return [parent, children as unknown as Children];
    }),
  );
}

export function changeGate(
  session: Session,
  gate: GateRef,
  change: GateOrder,
  operator: string,
  order?: Order,
): GateAnswer {
  const { now, random } = session;
  const row = findGate(session, gate);
  const { state, events } = applyOrder(gate, row?.state ?? null, change, operator, now, random);
  if (order) recordOrder(session, orderRow(order, 'gate'));
  writeGate(session, { gate, state, events }, row?.access ?? null);
  return { gate, state, now, events };
}
