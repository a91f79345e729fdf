import { orderRow } from '../orders.ts';
import type { Order, Schedule, ScheduleFilter, Schedules, ScheduleWrite, ScheduleWritten } from '../store.ts';
import { texts } from './connection/arrays.ts';
import { ENQUEUE_ARGUMENTS, enqueued, enqueueWith, type Taken } from './enqueue.ts';
import { orderValues, recordOrder } from './orders.ts';
import type { Session } from './session.ts';

const ENQUEUE_COUNT = ENQUEUE_ARGUMENTS.split(',').length;
const OWN_ARGUMENTS = [1, 2, 3, 4, 5].map((at) => `$${ENQUEUE_COUNT + at}`);
const WRITE = `SELECT * FROM @.write_schedule(${ENQUEUE_ARGUMENTS}, ${OWN_ARGUMENTS.join(', ')})`;
/** On record when it was written: of two that write one version, one does. */
const WRITE_BY_ORDER = `
  WITH w AS MATERIALIZED (${WRITE}), o AS MATERIALIZED (
    SELECT CASE WHEN (SELECT bool_or(written AND ord IS NULL) FROM w) THEN ${recordOrder(ENQUEUE_COUNT + 6)} END)
  SELECT w.* FROM o LEFT JOIN w ON true`;
const BY_NAME = 'name COLLATE "C"';
/** With the time also when there is no schedule. */
const list = (condition: string, order: string): string => `
  SELECT n.now, s.schedule FROM (SELECT @.now_ms() AS now OFFSET 0) n LEFT JOIN (
    SELECT * FROM @.schedules WHERE ${condition} ORDER BY ${order} LIMIT $1
  ) s ON true ORDER BY ${order}`;
const SOONEST = list('next_at IS NOT NULL', 'next_at, name COLLATE "C"');
const LIST = list(`${BY_NAME} > $2 AND ($3::text[] IS NULL OR name = ANY ($3))`, BY_NAME);

type ListRow = [now: number, schedule: string | null];

export async function schedules(
  { db }: Session,
  { names, soonest = false, limit, after = '' }: ScheduleFilter,
): Promise<Schedules> {
  // Ticks do not wait behind slow reads.
  const rows = soonest
    ? await db.query<ListRow>(SOONEST, [limit])
    : await db.read<ListRow>(LIST, [limit, after, names === undefined ? null : texts(names)]);
  return {
    now: (rows[0] as ListRow)[0],
    schedules: rows.flatMap(([, schedule]) => (schedule === null ? [] : [JSON.parse(schedule) as Schedule])),
  };
}

type WriteRow = [written: boolean, ord: number | null, holder: string | null];

export async function writeSchedule(
  session: Session,
  { name, from, to, jobs }: ScheduleWrite,
  order?: Order,
): Promise<ScheduleWritten> {
  const own = [name, from, to?.version ?? null, to?.nextAt ?? null, to === null ? null : JSON.stringify(to)];
  const rows = await enqueueWith(session, jobs, async (values) => {
    const answer =
      order === undefined
        ? await session.db.query<WriteRow>(WRITE, [...values, ...own])
        : await session.db.query<WriteRow>(WRITE_BY_ORDER, [
            ...values,
            ...own,
            ...orderValues(orderRow(order, 'schedule')),
          ]);
    return answer[0]?.[1] === 0 ? null : answer;
  });
  if (!(rows[0] as WriteRow)[0]) return { written: false, jobs: [] };
  const taken = rows.flatMap(([, ord, holder]): Taken[] => (ord === null ? [] : [[ord, holder as string, false]]));
  return { written: true, jobs: enqueued(jobs, taken) };
}
