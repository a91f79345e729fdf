import { STATE } from '../codes.ts';
import { holdRow, type OrderRow } from '../orders.ts';
import type { CancelAnswer, HoldTarget, Order, PruneAnswer, Retention } from '../store.ts';
import { plain } from './connection/arrays.ts';
import { pruneGates } from './gates.ts';
import { orderValues, recordOrder } from './orders.ts';
import type { Session } from './session.ts';
import { FOR_GOOD } from './sql/shared.ts';
import { isUuid } from './uuid.ts';

/** So many partitions are looked at when jobs are pruned, unless it takes longer than this. */
const PARTITIONS_AT_ONCE = 10_000;
const LONGEST_LOOK_MS = 100;

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

/** `moved` have waited aside for too long. */
export async function prune(
  session: Session,
  retention: Retention,
  limit: number,
): Promise<{ readonly answer: PruneAnswer; readonly moved: number }> {
  await session.db.query('SELECT @.fold_counts()');
  await session.db.query('SELECT @.fold_error_counts()');
  const keptFor = [
    [STATE.completed, retention.completedMs],
    [STATE.dead, retention.deadMs],
    [STATE.cancelled, retention.cancelledMs],
  ] as const;
  session.pruned.begin();
  let pruned = 0;
  for (const [state, keepMs] of keptFor) {
    if (keepMs === null) continue;
    const [row] = await session.db.query<[pruned: number, until: number | null]>(
      'SELECT * FROM @.prune($1::smallint, $2, $3, $4)',
      [state, session.pruned.until(state), keepMs, limit - pruned],
    );
    const [count, until] = row as [number, number | null];
    if (until !== null) session.pruned.reached(state, until);
    pruned += count;
  }
  session.pruned.end();
  await prunePartitions(session);
  const hasMoreGates = await pruneGates(session);
  await session.db.query('SELECT @.prune_limits($1)', [PARTITIONS_AT_ONCE]);
  await session.db.query('SELECT @.prune_waits()');
  await session.db.query('SELECT @.prune_operations()');
  const [keys] = await session.db.query<[pruned: number]>('SELECT @.prune_keys($1)', [limit]);
  const hasMoreKeys = (keys as [number])[0] === limit;
  const moved = await leaveAside(session, retention.asideMs, limit);
  return { answer: { jobs: pruned, isDone: pruned < limit && !hasMoreGates && !hasMoreKeys && moved < limit }, moved };
}

async function leaveAside({ db, cursors }: Session, asideMs: number | undefined, limit: number): Promise<number> {
  if (asideMs === undefined) return 0;
  const moved = await db.query<[number, number, number]>('SELECT * FROM @.leave_aside($1, $2)', [asideMs, limit]);
  // They keep their due times, which claims have passed.
  for (const [partition, dueAt, seq] of moved) cursors.rewind(partition, dueAt, seq);
  return moved.length;
}

/** See sql/partitions.ts. */
async function prunePartitions({ db, pruned }: Session): Promise<void> {
  const after = pruned.beginPartitions();
  if (after === null) return;
  const [row] = await db.query<[reached: number]>('SELECT @.prune_partitions($1, $2, $3)', [
    after,
    PARTITIONS_AT_ONCE,
    LONGEST_LOOK_MS,
  ]);
  pruned.endPartitions((row as [number])[0]);
}
