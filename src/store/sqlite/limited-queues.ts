import { mayRead, type Reader } from '../aside.ts';
import { parseLimitedQueue } from '../limited-queue.ts';
import type { Session } from './session.ts';

/* The queues under which the partitions of jobs behind limits lie: see ../limited-queue.ts. */

const OF_QUEUE = 'SELECT limited AS id FROM limited_queues WHERE queue = ?';
const ANY_WAITING = 'SELECT 1 FROM partitions WHERE queue = ? AND gated_at IS NULL LIMIT 1';

export interface LimitedQueue {
  readonly id: number;
  /** Names. */
  readonly limits: readonly string[];
}

/** Those of `queue` that a worker may read. Costs one look-up in the table when there are none. */
export function limitedQueues(session: Session, queue: number, reader: Reader): LimitedQueue[] {
  const rows = session.sql(OF_QUEUE).all(queue) as { id: number }[];
  return rows.flatMap(({ id }) => {
    const { aside, limits } = parseLimitedQueue(session.strings.text(id));
    return aside === null || mayRead(reader, aside.name, aside) ? [{ id, limits }] : [];
  });
}

export function isWaitedIn(session: Session, limited: number): boolean {
  return session.sql(ANY_WAITING).get(limited) !== undefined;
}
