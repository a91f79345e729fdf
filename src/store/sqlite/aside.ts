import type { Aside } from '../../retry/decision.ts';
import { asideQueue, type KnownJobs, mayRead, parseQueue } from '../aside.ts';
import type { AsideTimeouts } from '../store.ts';
import type { RunningRow } from './running.ts';
import type { Session } from './session.ts';

/* Jobs that wait aside: see ../aside.ts and aside-tables.ts. */

const ADD = 'INSERT OR IGNORE INTO asides (queue, aside) VALUES (?, ?)';
const OF_QUEUE = 'SELECT aside FROM asides WHERE queue = ?';
const ALL = 'SELECT aside FROM asides';
const REMOVE_EMPTY = 'DELETE FROM asides WHERE NOT EXISTS (SELECT 1 FROM partitions WHERE partitions.queue = asides.aside)';
const OVERDUE = `
  SELECT seq, jobs.partition AS partition, jobs.queue AS queue, jobs.lane AS lane, jobs.priority AS priority,
    jobs.resource AS resource, jobs.name AS name, due_at AS dueAt
  FROM partitions CROSS JOIN jobs ON jobs.partition = partitions.id
  WHERE partitions.queue = ?1 AND due_at <= ?2 AND available_at <= ?2 LIMIT ?3`;
const MOVE = 'UPDATE jobs SET partition = ?2 WHERE seq = ?1';

interface WaitingRow extends Pick<RunningRow, 'seq' | 'queue' | 'lane' | 'priority' | 'resource' | 'name'> {
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

/** The queues of jobs aside in `queue` that a worker may read. Costs a probe of the table when there are none. */
export function readableAsides(session: Session, queue: number, knows: KnownJobs | undefined): number[] {
  if (knows === undefined || knows.size === 0) return [];
  const rows = session.sql(OF_QUEUE).all(queue) as { aside: number }[];
  return rows.flatMap(({ aside }) => {
    const { aside: parsed } = parseQueue(session.strings.text(aside));
    return parsed !== null && mayRead(knows, parsed.name, parsed) ? [aside] : [];
  });
}

/** Lets up to `limit` jobs that have waited aside for too long wait among all others. Answers how many. */
export function leaveAside(session: Session, timeouts: AsideTimeouts | undefined, limit: number): number {
  let moved = 0;
  for (const { aside } of timeouts === undefined ? [] : (session.sql(ALL).all() as { aside: number }[])) {
    const { except } = parseQueue(session.strings.text(aside)).aside as Aside;
    const waitedMs = except === null ? timeouts?.unknownMs : timeouts?.rejectedMs;
    const rows = session.sql(OVERDUE).all(aside, session.now - (waitedMs as number), limit - moved);
    for (const row of rows as unknown as WaitingRow[]) moveBack(session, row);
    moved += rows.length;
  }
  session.madeWork ||= moved > 0;
  session.sql(REMOVE_EMPTY).run();
  return moved;
}

function moveBack(session: Session, row: WaitingRow): void {
  session.sql(MOVE).run(row.seq, session.partitions.enter(row, row.dueAt));
  session.partitions.leave(row.partition);
}
