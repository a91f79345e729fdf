import type { Lane } from '../../job.ts';
import { LANE } from '../codes.ts';
import type { LimitUse } from './limit-use.ts';
import type { Partition } from './partitions.ts';
import { NEVER } from './restrictions.ts';
import type { Session } from './session.ts';

/*
 * Partitions that wait for a key are not read by claims, however many they are. Whatever may give the key room lists it in
 * `limit_freed`, and the next limited claim brings some of its partitions back: those that waited longest, of each lane.
 * While more of them wait and the key has room, it stays listed. So no partition waits for a key that has room and is not
 * listed, and a settlement costs the same however many partitions wait for its key.
 */

/** So many keys, and of each lane so many partitions, are brought back by one claim. */
const KEYS_AT_ONCE = 64;
const PARTITIONS_AT_ONCE = 16;
const FREED = `SELECT waits_for AS waitsFor FROM limit_freed LIMIT ${KEYS_AT_ONCE + 1}`;
const ANY_FREED = 'SELECT 1 FROM limit_freed LIMIT 1';
const DONE = 'DELETE FROM limit_freed WHERE waits_for = ?';
const WAITING = `
  SELECT id, held_until AS heldUntil, gate_at AS gateAt, admissible_at AS admissibleAt, gated_at AS gatedAt, limits,
    resource, lane
  FROM partitions WHERE waits_for = ? AND lane = ? AND held_until > ?
  ORDER BY priority, waits_turn LIMIT ${PARTITIONS_AT_ONCE}`;

const limitedLanes = ['retry', 'redrive', 'fresh'] as const satisfies Lane[];

export function isAnyFreed(session: Session): boolean {
  return session.sql(ANY_FREED).get() !== undefined;
}

/** Brings partitions back whose key has room. True when there may be more of them. */
export function bringBack(session: Session, use: LimitUse): boolean {
  const rows = session.sql(FREED).all() as { waitsFor: string }[];
  let hasMore = rows.length > KEYS_AT_ONCE;
  for (const { waitsFor } of rows.slice(0, KEYS_AT_ONCE)) {
    const isDone = limitedLanes.map((lane) => bringLaneBack(session, use, waitsFor, lane)).every(Boolean);
    if (isDone) session.sql(DONE).run(waitsFor);
    hasMore ||= !isDone;
  }
  return hasMore;
}

/** False when more may be brought back. */
function bringLaneBack(session: Session, use: LimitUse, waitsFor: string, lane: Lane): boolean {
  const wait = use.waitOf(use.parse(waitsFor), lane);
  // Another job of the key must end first, which lists it again.
  if (wait?.until === NEVER) return true;
  const rows = session.sql(WAITING).all(waitsFor, LANE[lane], wait?.until ?? -1) as unknown as (Partition & {
    resource: number;
    lane: number;
  })[];
  session.partitions.bringBack(rows, wait);
  return rows.length < PARTITIONS_AT_ONCE;
}
