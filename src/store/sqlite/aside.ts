import type { Aside } from '../../retry/decision.ts';
import { asideQueue, mayRead, parseQueue, type Reader } from '../aside.ts';
import type { RunningRow } from './running.ts';
import type { Session } from './session.ts';

/* Jobs that wait aside: see ../aside.ts and aside-tables.ts. */

const ADD = 'INSERT OR IGNORE INTO asides (queue, aside) VALUES (?, ?)';
const OF_QUEUE = 'SELECT aside FROM asides WHERE queue = ?';
const REMOVE_EMPTY =
  'DELETE FROM asides WHERE NOT EXISTS (SELECT 1 FROM partitions WHERE partitions.queue = asides.aside)';
const OVERDUE = `
  SELECT seq, jobs.partition AS partition, jobs.queue AS queue, jobs.lane AS lane, jobs.priority AS priority,
    jobs.resource AS resource, jobs.name AS name, jobs.limits AS limits, due_at AS dueAt
  FROM (SELECT aside FROM asides UNION ALL SELECT limited FROM limited_queues WHERE is_aside = 1)
    CROSS JOIN partitions ON partitions.queue = aside CROSS JOIN jobs ON jobs.partition = partitions.id
  WHERE due_at <= ?1 AND available_at <= ?1 LIMIT ?2`;
const MOVE = 'UPDATE jobs SET partition = ?2 WHERE seq = ?1';

interface WaitingRow extends Pick<RunningRow, 'seq' | 'queue' | 'lane' | 'priority' | 'resource' | 'name' | 'limits'> {
  readonly partition: number;
  readonly dueAt: number;
}

/** The queue whose partitions a job enters that goes aside in `queue`. Write transactions only. */
export function enterAside(session: Session, queue: number, name: number, aside: Aside): number {
  const { strings } = session;
  const own = strings.intern(asideQueue(strings.text(queue), strings.text(name), aside));
  session.sql(ADD).run(queue, own);
  return own;
}

/** The queues of jobs aside in `queue` that a worker may read. Costs one look-up in the table when there are none. */
export function readableAsides(session: Session, queue: number, reader: Reader): number[] {
  if (reader.knows === undefined || reader.knows.size === 0) return [];
  const rows = session.sql(OF_QUEUE).all(queue) as { aside: number }[];
  return rows.flatMap(({ aside }) => {
    const { aside: parsed } = parseQueue(session.strings.text(aside));
    return parsed !== null && mayRead(reader, parsed.name, parsed) ? [aside] : [];
  });
}

/** Lets up to `limit` jobs that have waited aside for too long wait among all others. Answers whether there may be more. */
export function leaveAside(session: Session, asideMs: number | null, limit: number): boolean {
  session.sql(REMOVE_EMPTY).run();
  if (asideMs === null) return false;
  const rows = session.sql(OVERDUE).all(session.now - asideMs, limit) as unknown as WaitingRow[];
  for (const row of rows) moveBack(session, row);
  session.madeWork ||= rows.length > 0;
  return rows.length === limit;
}

function moveBack(session: Session, row: WaitingRow): void {
  session.sql(MOVE).run(row.seq, session.partitions.enter(row, row.dueAt));
  session.partitions.leave(row.partition);
}
