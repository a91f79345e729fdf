import { orderRow } from '../orders.ts';
import type { Order, Schedule, ScheduleFilter, Schedules, ScheduleWrite } from '../store.ts';
import { enqueue } from './enqueue.ts';
import { recordOrder } from './operations.ts';
import type { PackedEnqueued, PackedNewJobs } from './packed-jobs.ts';
import type { Session } from './session.ts';

const VERSION = 'SELECT version FROM schedules WHERE name = ?';
const WRITE = `
  INSERT INTO schedules (name, version, next_at, schedule) VALUES (?, ?, ?, ?)
  ON CONFLICT (name) DO UPDATE SET version = excluded.version, next_at = excluded.next_at, schedule = excluded.schedule`;
const REMOVE = 'DELETE FROM schedules WHERE name = ?';
const SOONEST = 'SELECT schedule FROM schedules WHERE next_at IS NOT NULL ORDER BY next_at, name LIMIT ?';
const NAMED = `
  SELECT schedule FROM schedules WHERE name IN (SELECT value FROM json_each(?1)) AND name > ?2 ORDER BY name LIMIT ?3`;
const BY_NAME = 'SELECT schedule FROM schedules WHERE name > ? ORDER BY name LIMIT ?';

export function schedules(session: Session, { names, soonest = false, limit, after = '' }: ScheduleFilter): Schedules {
  const rows = soonest
    ? session.sql(SOONEST).all(limit)
    : names === undefined
      ? session.sql(BY_NAME).all(after, limit)
      : session.sql(NAMED).all(JSON.stringify(names), after, limit);
  return { now: session.now, schedules: rows.map(({ schedule }) => JSON.parse(schedule as string) as Schedule) };
}

/** The answer to its jobs; null when the schedule was not in the version that was read. */
export type PackedScheduleWritten = PackedEnqueued | null;

export function writeSchedule(
  session: Session,
  { name, from, to }: Omit<ScheduleWrite, 'jobs'>,
  jobs: PackedNewJobs,
  order?: Order,
): PackedScheduleWritten {
  const row = session.sql(VERSION).get(name) as { version: string } | undefined;
  const version = row?.version ?? null;
  // Already in the new version: the answer to this very write was lost.
  if (version !== from && version !== (to?.version ?? null)) return null;
  if (to === null) session.sql(REMOVE).run(name);
  else session.sql(WRITE).run(name, to.version, to.nextAt, JSON.stringify(to));
  if (order) recordOrder(session, orderRow(order, 'schedule'));
  // A worker sleeps until the next tick it knows of.
  session.madeWork = true;
  return jobs[0].length === 0 ? [] : enqueue(session, ...jobs);
}
