import { StoreBusyError } from '../../errors.ts';
import {
  accessOf,
  type Children,
  childrenSpanMs,
  formatGate,
  type GateEvent,
  type GateState,
  parseGate,
} from '../../gate/index.ts';
import { doubling, withRetries } from '../../retrying.ts';
import {
  applyOrder,
  applyReports,
  GATE_HISTORY_MS,
  type GateWrite,
  gateKey,
  gatesOf,
  mayForget,
  parentGate,
  parentsToCount,
} from '../gates.ts';
import { orderRow } from '../orders.ts';
import type {
  GateAnswer,
  GateFilter,
  GateKind,
  GateOrder,
  GateRef,
  Order,
  StoredGate,
  WorkerReport,
} from '../store.ts';
import { texts } from './connection/arrays.ts';
import { orderValues, recordOrder } from './orders.ts';
import type { Session } from './session.ts';
import { FOR_GOOD } from './sql/shared.ts';

/*
 * A gate is read, changed by the functions of store/gates.ts, and written back with the version that was read. When another
 * process has written it meanwhile, that is done again.
 */

const READ = 'SELECT * FROM @.read_gates($1::text[], $2::text[])';
const CHILDREN = 'SELECT * FROM @.children_of($1, $2)';
const WRITE = 'SELECT @.write_gates($1::json)';
const WRITE_BY_ORDER = `
  WITH w AS MATERIALIZED (SELECT @.write_gates($1::json) AS written)
  SELECT written, CASE WHEN written THEN ${recordOrder(2)} END FROM w`;
const QUIET = 'SELECT * FROM @.quiet_gates($1, $2, $3, $4)';
const FORGET = 'SELECT @.forget_gates($1::json, $2, $3)';
const LIST = `
  SELECT kind, name, state, @.now_ms(), b.waiting, b.first_due_at
  FROM (
    SELECT * FROM @.gates WHERE ($1::text IS NULL OR kind = $1) AND ($2::text IS NULL OR name = $2)
    ORDER BY closed, heard_at DESC, kind, name LIMIT $3
  ) s
  LEFT JOIN LATERAL (
    SELECT count(*) AS waiting, min(w.due_at) AS first_due_at FROM @.partitions p JOIN @.live w ON w.partition = p.id
    WHERE p.resource <> '' AND p.resource = s.name AND left(p.resource, 40) = left(s.name, 40) AND w.worker IS NULL
  ) b ON s.kind = 'resource' AND NOT $4
  ORDER BY closed, heard_at DESC, kind, name`;
const HISTORY = 'SELECT event FROM @.gate_history WHERE kind = $1 AND name = $2 ORDER BY id DESC LIMIT $3';

/** So many gates, and rows of history, are looked at when jobs are pruned. */
const PRUNED_AT_ONCE = 500;

/** Each time one process wins, so this many would have to write the same gate at once, again and again. */
const afterConflicts = {
  policy: doubling(2, 100),
  isTransient: (error: unknown): boolean => error instanceof GateConflict,
  maxAttempts: 40,
};

export class GateConflict extends StoreBusyError {
  constructor() {
    super('expected to write a gate, but other processes wrote it again and again; nothing was written. Try again.');
  }
}

export function untilWritten<Answer>({ db }: Session, call: () => Promise<Answer>): Promise<Answer> {
  return withRetries(db.clock, afterConflicts, call);
}

interface ReadGates {
  readonly now: number;
  readonly states: ReadonlyMap<string, GateState>;
  readonly versions: ReadonlyMap<string, number>;
}

type GateRow = [now: number, kind: GateKind | null, name: string, version: number, state: string];

async function read({ db }: Session, gates: readonly GateRef[]): Promise<ReadGates> {
  const values = [texts(gates.map(({ kind }) => kind)), texts(gates.map(({ name }) => name))];
  const rows = await db.lookUp<GateRow>(READ, values);
  const states = new Map<string, GateState>();
  const versions = new Map<string, number>();
  const now = (rows[0] as GateRow)[0];
  for (const [, kind, name, version, state] of rows) {
    if (kind === null) continue;
    states.set(gateKey({ kind, name }), stateOf({ kind, name }, state, now));
    versions.set(gateKey({ kind, name }), version);
  }
  return { now, states, versions };
}

export function stateOf(gate: GateRef, text: string, now: number): GateState {
  return parseGate(text, now, { keyed: parentGate(gate) !== null });
}

/** A row of the table as the functions take it, and whether it is to be written or only compared. */
export interface GateColumns extends GateRef {
  /** The one that was read; 0 when there was no row. */
  readonly version: number;
  readonly saves: boolean;
  readonly parent: string | null;
  readonly closed: boolean;
  readonly opened_at: number | null;
  readonly heard_at: number;
  readonly fresh_at: number | null;
  readonly retry_at: number | null;
  readonly suspect_at: number;
  readonly state: string;
  readonly events: readonly GateEvent[];
}

export function gateColumns({ gate, state, events }: GateWrite, version: number, now: number): GateColumns {
  const { fresh, retry, suspect } = accessOf(state, now);
  const from = (at: number | null): number => (at === null ? FOR_GOOD : Math.ceil(at));
  return {
    ...gate,
    version,
    saves: true,
    parent: parentGate(gate)?.name ?? null,
    closed: state.phase === 'closed',
    opened_at: state.phase === 'open' ? Math.floor(state.epoch) : null,
    heard_at: Math.floor(state.heardAt),
    fresh_at: fresh.gated ? from(fresh.at) : null,
    retry_at: retry.gated ? from(retry.at) : null,
    suspect_at: from(suspect.at),
    state: formatGate(state),
    events,
  };
}

async function write(
  session: Session,
  writes: readonly GateWrite[],
  { versions, now }: ReadGates,
  order?: Order,
): Promise<void> {
  if (writes.length === 0) return;
  await writeGates(
    session,
    writes.map((one) => gateColumns(one, versions.get(gateKey(one.gate)) ?? 0, now)),
    order,
  );
}

export async function writeGates(session: Session, rows: readonly GateColumns[], order?: Order): Promise<void> {
  const values = order === undefined ? [] : orderValues(orderRow(order, 'gate'));
  const statement = order === undefined ? WRITE : WRITE_BY_ORDER;
  const [row] = await session.db.query<[written: boolean]>(statement, [JSON.stringify(rows), ...values]);
  if (!(row as [boolean])[0]) throw new GateConflict();
  // Partitions may be admissible now that this process was not offered.
  if (rows.some(({ events }) => events.length > 0)) session.candidates.forget();
}

export function report(session: Session, reports: readonly WorkerReport[]): Promise<GateAnswer[]> {
  const { clock } = session.db;
  return untilWritten(session, async () => {
    const found = await read(session, gatesOf(reports));
    const counted = new Map<string, Children>();
    for (const parent of parentsToCount(reports, found.states, found.now)) {
      counted.set(parent, await childrenOf(session, parent, found.now));
    }
    const { writes, answers } = applyReports(reports, found.states, counted, found.now, () => clock.random());
    await write(session, writes, found);
    return answers;
  });
}

async function childrenOf({ db }: Session, parent: string, now: number): Promise<Children> {
  const [row] = await db.lookUp<[active: number, opened: number]>(CHILDREN, [parent, now - childrenSpanMs]);
  const [active, opened] = row as [number, number];
  return { active, opened };
}

export function changeGate(
  session: Session,
  gate: GateRef,
  change: GateOrder,
  operator: string,
  order?: Order,
): Promise<GateAnswer> {
  const { clock } = session.db;
  return untilWritten(session, async () => {
    const found = await read(session, [gate]);
    const { now, states } = found;
    const before = states.get(gateKey(gate)) ?? null;
    const { state, events } = applyOrder(gate, before, change, operator, now, () => clock.random());
    await write(session, [{ gate, state, events }], found, order);
    return { gate, state, now, events };
  });
}

type ListRow = [
  kind: GateKind,
  name: string,
  state: string,
  now: number,
  waiting: number | null,
  firstDueAt: number | null,
];

export async function gates(
  { db }: Session,
  { kind, name, limit, skipWaiting = false }: GateFilter,
): Promise<StoredGate[]> {
  const rows = await db.read<ListRow>(LIST, [kind ?? null, name ?? null, limit, skipWaiting]);
  return rows.map(([rowKind, rowName, state, now, waiting, firstDueAt]) => {
    const gate = { kind: rowKind, name: rowName };
    return { gate, state: stateOf(gate, state, now), now, waiting, firstDueAt };
  });
}

export async function gateHistory({ db }: Session, { kind, name }: GateRef, limit: number): Promise<GateEvent[]> {
  const rows = await db.read<[event: string]>(HISTORY, [kind, name, limit]);
  return rows.map(([event]) => JSON.parse(event) as GateEvent);
}

type QuietRow = [
  now: number,
  heardAt: number,
  kind: GateKind,
  name: string,
  version: number,
  state: string,
  isWaitedFor: boolean,
];

/** Looks at some gates, those that were not heard of for longest first, and goes on with the next ones the next time. True when there may be more to delete. */
export async function pruneGates(session: Session): Promise<boolean> {
  const rows = await session.db.lookUp<QuietRow>(QUIET, [...session.prunedGate, PRUNED_AT_ONCE]);
  const last = rows.at(-1);
  session.prunedGate = rows.length < PRUNED_AT_ONCE || last === undefined ? [0, '', ''] : [last[1], last[2], last[3]];
  const forgotten = rows.flatMap(([now, , kind, name, version, state, isWaitedFor]) => {
    const gate = { kind, name };
    return mayForget(gate, stateOf(gate, state, now), isWaitedFor, now) ? [{ ...gate, version }] : [];
  });
  await session.db.query(FORGET, [JSON.stringify(forgotten), GATE_HISTORY_MS, PRUNED_AT_ONCE]);
  return rows.length === PRUNED_AT_ONCE && forgotten.length > 0;
}
