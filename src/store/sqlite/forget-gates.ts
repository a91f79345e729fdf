import { GATE_HISTORY_MS, mayForget } from '../gates.ts';
import type { GateKind, GateRef } from '../store.ts';
import { parseState } from './gates.ts';
import type { Session } from './session.ts';

/** So many rows are looked at in one transaction. */
const LOOKED_AT = 1_000;
/** By id, so that each row has its turn however many may not go yet. */
const AFTER = 'SELECT id, kind, name, state FROM gates WHERE id > ? ORDER BY id LIMIT ?';
const IS_WAITED_FOR = 'SELECT 1 FROM partitions WHERE resource = ? LIMIT 1';
const DELETE = 'DELETE FROM gates WHERE id = ?';
const DELETE_HISTORY = `
  DELETE FROM gate_history WHERE id IN (SELECT id FROM gate_history WHERE at <= ? ORDER BY at LIMIT ${LOOKED_AT})`;

interface Row {
  readonly id: number;
  readonly kind: GateKind;
  readonly name: number;
  readonly state: string;
}

/**
 * Deletes gates that say nothing any more, some of them at each call, and history that is too old. True when there may be
 * more of them.
 */
export function forgetGates(session: Session): boolean {
  const { now } = session;
  const rows = session.sql(AFTER).all(session.lastGateLookedAt, LOOKED_AT) as unknown as Row[];
  session.lastGateLookedAt = rows.length < LOOKED_AT ? 0 : (rows.at(-1) as Row).id;
  let forgotten = 0;
  for (const { id, kind, name, state } of rows) {
    const gate: GateRef = { kind, name: session.strings.text(name) };
    const isWaitedFor = kind === 'resource' && session.sql(IS_WAITED_FOR).get(name) !== undefined;
    if (!mayForget(gate, parseState(gate, state, now), isWaitedFor, now)) continue;
    session.sql(DELETE).run(id);
    forgotten++;
  }
  session.sql(DELETE_HISTORY).run(now - GATE_HISTORY_MS);
  return rows.length === LOOKED_AT && forgotten > 0;
}
