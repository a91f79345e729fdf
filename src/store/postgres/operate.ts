import { holdRow, type OrderRow } from '../orders.ts';
import type { CancelAnswer, HoldTarget, Order } from '../store.ts';
import { plain } from './connection/arrays.ts';
import { orderValues, recordOrder } from './orders.ts';
import type { Session } from './session.ts';
import { FOR_GOOD } from './sql/shared.ts';
import { isUuid } from './uuid.ts';

const CANCEL = 'SELECT id, @.cancel(id) AS result FROM unnest($1::uuid[]) AS g (id)';
/** The order is on record with what became of the jobs, also when there is none of them. */
const CANCEL_BY_ORDER = `
  WITH c AS MATERIALIZED (${CANCEL}), o AS MATERIALIZED (
    SELECT ${recordOrder(2, "(SELECT count(*) FROM c WHERE result IN ('cancelled', 'cancelling'))")})
  SELECT c.id, c.result FROM o LEFT JOIN c ON true`;
const HOLD = `SELECT @.hold($1, $2, $3), ${recordOrder(4)}`;

type CancelRow = [id: string | null, result: CancelAnswer['result']];

export async function cancel(session: Session, ids: readonly string[], order?: Order): Promise<CancelAnswer[]> {
  const known = [...new Set(ids.filter(isUuid))].sort();
  const values = order === undefined ? [] : orderValues({ ...order, action: 'cancel', selection: { ids } });
  const rows = await session.db.query<CancelRow>(order === undefined ? CANCEL : CANCEL_BY_ORDER, [
    plain(known),
    ...values,
  ]);
  const results = new Map(rows);
  const seen = new Set<string>();
  return ids.map((id) => {
    const result = results.get(id) ?? 'not-found';
    // Named twice, it had already ended by the second time.
    const again = seen.has(id) && result === 'cancelled';
    seen.add(id);
    return { id, result: again ? 'already-ended' : result };
  });
}

export function hold(session: Session, target: HoldTarget, until: number | null, order?: Order): Promise<void> {
  return changeHold(session, target, until ?? FOR_GOOD, order && holdRow(order, 'pause', target));
}

export function release(session: Session, target: HoldTarget, order?: Order): Promise<void> {
  return changeHold(session, target, null, order && holdRow(order, 'resume', target));
}

async function changeHold(
  session: Session,
  target: HoldTarget,
  until: number | null,
  order: OrderRow | undefined,
): Promise<void> {
  const [scope, name] = 'queue' in target ? ['queue', target.queue] : ['resource', target.resource];
  await session.db.query(HOLD, [scope, name, until, ...orderValues(order ?? null)]);
  session.candidates.forget();
}
