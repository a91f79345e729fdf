import { states } from '../../job.ts';
import { STATE } from '../codes.ts';
import { orderRow } from '../orders.ts';
import type { Order, RetentionRule, RetentionWrite } from '../store.ts';
import { recordOrder } from './operations.ts';
import type { Session } from './session.ts';

const READ = 'SELECT name, state, is_code, kept_ms FROM retention';
const REMOVE = 'DELETE FROM retention WHERE name = ? AND state = ? AND is_code = ?';
/** What code says only becomes longer; max() answers null when one of them is. */
const WRITE = `
  INSERT INTO retention (name, state, is_code, kept_ms) VALUES (?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET kept_ms = CASE WHEN is_code THEN max(kept_ms, excluded.kept_ms) ELSE excluded.kept_ms END`;
interface RuleRow {
  readonly name: string;
  readonly state: number;
  readonly is_code: number;
  readonly kept_ms: number | null;
}

export function retention(session: Session): RetentionRule[] {
  const rows = session.sql(READ).all() as unknown as RuleRow[];
  return rows.map(({ name, state, is_code, kept_ms }) => ({
    name: name === '' ? null : name,
    state: states[state] as RetentionRule['state'],
    source: is_code === 1 ? 'code' : 'set',
    keptMs: kept_ms,
  }));
}

export function writeRetention(session: Session, writes: readonly RetentionWrite[], order?: Order): void {
  if (order) recordOrder(session, orderRow(order, 'retention'));
  for (const { name, state, source, keptMs } of writes) {
    const rule = [name ?? '', STATE[state], source === 'code' ? 1 : 0] as const;
    if (keptMs === undefined) session.sql(REMOVE).run(...rule);
    else session.sql(WRITE).run(...rule, keptMs);
  }
}
