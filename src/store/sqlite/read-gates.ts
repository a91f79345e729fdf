import type { GateEvent } from '../../gate/index.ts';
import type { GateFilter, GateKind, GateRef, StoredGate } from '../store.ts';
import { parseState } from './gates.ts';
import type { Session } from './session.ts';

const HISTORY = 'SELECT event FROM gate_history WHERE kind = ? AND name = ? ORDER BY id DESC LIMIT ?';
const WAITING = `
  SELECT count(*) AS waiting, min(due_at) AS firstDueAt FROM jobs
  WHERE partition IN (SELECT id FROM partitions WHERE resource = ?)`;

interface ListedRow {
  readonly kind: GateKind;
  readonly name: number;
  readonly state: string;
}

type Behind = Pick<StoredGate, 'waiting' | 'firstDueAt'>;
const notCounted: Behind = { waiting: null, firstDueAt: null };

export function gates(session: Session, { kind, name, limit, skipWaiting = false }: GateFilter): StoredGate[] {
  const sql = `
    SELECT kind, name, state FROM gates WHERE true
      ${kind === undefined ? '' : 'AND kind = :kind'}
      ${name === undefined ? '' : 'AND name = (SELECT id FROM strings WHERE text = :name)'}
    ORDER BY is_closed, heard_at DESC, id DESC LIMIT :limit`;
  const bound = { ...(kind !== undefined && { kind }), ...(name !== undefined && { name }), limit };
  const rows = session.sql(sql).all(bound) as unknown as ListedRow[];
  return rows.map((row) => {
    const gate: GateRef = { kind: row.kind, name: session.strings.text(row.name) };
    const isCounted = row.kind === 'resource' && !skipWaiting;
    const behind = isCounted ? (session.sql(WAITING).get(row.name) as unknown as Behind) : notCounted;
    return { gate, state: parseState(gate, row.state, session.now), now: session.now, ...behind };
  });
}

export function gateHistory(session: Session, { kind, name }: GateRef, limit: number): GateEvent[] {
  const rows = session.sql(HISTORY).all(kind, session.strings.find(name), limit) as { event: string }[];
  return rows.map(({ event }) => JSON.parse(event) as GateEvent);
}
