import { MINUTE_MS } from '../../duration.ts';
import type { Lane } from '../../job.ts';
import { parseQueue } from '../aside.ts';
import { LANE, STATE } from '../codes.ts';
import {
  type EndedState,
  endedStates,
  FORECAST_MS,
  FORECAST_PARTITIONS,
  type ForecastCaps,
  type ForecastRequest,
  forecastCaps,
  forecastLanes,
  type LoadReading,
  lanesOf,
  loadsOf,
  type MinuteReading,
  type PartitionReading,
  perMinute,
  RATE_MS,
  RATE_ROWS,
  type RateReading,
  RUNNING_COUNTED,
  type StoreForecast,
  upcomingOf,
} from '../forecast.ts';
import type { Session } from './session.ts';

/* Each statement reads an index in its order and stops: none reads more rows than it is told to. */

const QUEUES = `
  WITH RECURSIVE queues (queue) AS (
    SELECT min(queue) FROM partitions
    UNION ALL SELECT (SELECT min(p.queue) FROM partitions p WHERE p.queue > queues.queue) FROM queues WHERE queue IS NOT NULL)
  SELECT queue FROM queues WHERE queue IS NOT NULL`;
const PARTITIONS = 'SELECT id, resource FROM partitions WHERE queue = ? AND lane = ? LIMIT ?';
const DUE = `
  SELECT count(*) AS n, min(due_at) AS first
  FROM (SELECT due_at FROM jobs WHERE partition = ? AND due_at <= ? ORDER BY due_at LIMIT ?)`;
const LATER = 'SELECT count(*) AS n FROM (SELECT 1 FROM jobs WHERE partition = ? AND due_at > ? LIMIT ?)';
const NEXT = 'SELECT min(due_at) AS at FROM jobs WHERE partition = ? AND due_at > ? AND due_at <= ?';
const MINUTE = `
  SELECT name, count(*) AS n, max(due_at) AS last FROM (
    SELECT name, due_at FROM jobs WHERE partition = ? AND due_at > ? AND due_at <= ? ORDER BY due_at LIMIT ?)
  GROUP BY name`;
const ENDED =
  'SELECT finished_at AS at, queue FROM jobs WHERE state = ? AND finished_at > ? ORDER BY finished_at DESC LIMIT ?';
const ARRIVED = `
  SELECT enqueued_at AS at, queue, runs = 0 AND partition IS NOT NULL AND due_at > ?1 AS is_later
  FROM jobs ORDER BY seq DESC LIMIT ?2`;

const RUNNING = `SELECT queue FROM jobs WHERE state = ${STATE.running} LIMIT ?`;
const ENDED_STATES = `
  SELECT queue, ${endedStates.map((state) => `sum(amount) FILTER (WHERE what = 'state:${state}') AS ${state}`).join(', ')}
  FROM tallies GROUP BY queue`;

/** The statements that read jobs, for a test that asks SQLite how it reads them. */
export const forecastReads: readonly string[] = [DUE, LATER, NEXT, MINUTE, RUNNING, ENDED, ARRIVED];

export function forecast(session: Session, { queue, rows }: ForecastRequest): StoreForecast {
  const { now } = session;
  const all = partitionsOf(session, queue);
  const read = all.slice(0, FORECAST_PARTITIONS);
  const caps = forecastCaps(rows, read.length);
  const readings = read.map((partition) => readPartition(session, partition, caps));
  const isWanted = (id: number): boolean => queue === undefined || queueText(session, id) === queue;
  return {
    now,
    isComplete: read.length === all.length,
    lanes: lanesOf(readings, caps),
    ...loadsOf([...readRunning(session), ...readEndedStates(session)], queue),
    upcoming: upcomingOf(readings, caps, now),
    arrivedPerMinute: perMinute([readArrived(session, isWanted)], now),
    endedPerMinute: perMinute(readEnded(session, isWanted), now),
  };
}

interface Found {
  readonly id: number;
  readonly queue: string;
  readonly lane: Lane;
  readonly resource: number;
}

/** One more than are read, if there are more. */
function partitionsOf(session: Session, wanted: string | undefined): Found[] {
  const queues = (session.sql(QUEUES).all() as { queue: number }[])
    .map(({ queue: id }) => ({ id, queue: queueText(session, id) }))
    .filter(({ queue }) => wanted === undefined || queue === wanted);
  const found: Found[] = [];
  for (const lane of forecastLanes) {
    for (const { id, queue } of queues) {
      const left = FORECAST_PARTITIONS + 1 - found.length;
      const rows = session.sql(PARTITIONS).all(id, LANE[lane], left) as { id: number; resource: number }[];
      found.push(...rows.map((row) => ({ ...row, queue, lane })));
    }
  }
  return found;
}

function readPartition(session: Session, { id, queue, lane, resource }: Found, caps: ForecastCaps): PartitionReading {
  const { now } = session;
  const due = session.sql(DUE).get(id, now, caps.due) as { n: number; first: number | null };
  const later = session.sql(LATER).get(id, now, caps.later) as { n: number };
  return {
    queue,
    lane,
    resource: resource === 0 ? null : session.strings.text(resource),
    due: due.n,
    later: later.n,
    oldestDueAt: due.first,
    minutes: later.n === 0 ? [] : readMinutes(session, id, caps.perMinute),
  };
}

function readMinutes(session: Session, id: number, most: number): MinuteReading[] {
  const { now } = session;
  const minutes: MinuteReading[] = [];
  // From one minute that has jobs to the next.
  for (let from = now; from < now + FORECAST_MS; ) {
    const { at } = session.sql(NEXT).get(id, from, now + FORECAST_MS) as { at: number | null };
    if (at === null) break;
    const minute = Math.ceil((at - now) / MINUTE_MS) - 1;
    from = now + (minute + 1) * MINUTE_MS;
    const rows = session.sql(MINUTE).all(id, from - MINUTE_MS, from, most);
    for (const { name, n, last } of rows as { name: number; n: number; last: number }[]) {
      minutes.push({ minute, name: session.strings.text(name), count: n, lastDueAt: last });
    }
  }
  return minutes;
}

function readRunning(session: Session): LoadReading[] {
  const rows = session.sql(RUNNING).all(RUNNING_COUNTED) as { queue: number }[];
  const byQueue = Map.groupBy(rows, ({ queue }) => queue);
  return [...byQueue].map(([id, own]) => ({ queue: queueText(session, id), running: own.length }));
}

function readEndedStates(session: Session): LoadReading[] {
  const rows = session.sql(ENDED_STATES).all() as ({ queue: number } & Record<EndedState, number | null>)[];
  return rows.flatMap(({ queue, completed, dead, cancelled }) => {
    const ended = { completed: completed ?? 0, dead: dead ?? 0, cancelled: cancelled ?? 0 };
    return ended.completed + ended.dead + ended.cancelled === 0 ? [] : [{ queue: queueText(session, queue), ended }];
  });
}

function readEnded(session: Session, isWanted: (queue: number) => boolean): RateReading[] {
  return endedStates.map((state) => {
    const rows = session.sql(ENDED).all(STATE[state], session.now - RATE_MS, RATE_ROWS) as {
      at: number;
      queue: number;
    }[];
    const count = rows.filter((row) => isWanted(row.queue)).length;
    return { read: rows.length, count, oldestAt: rows.at(-1)?.at ?? null };
  });
}

function readArrived(session: Session, isWanted: (queue: number) => boolean): RateReading {
  const { now } = session;
  const rows = session.sql(ARRIVED).all(now, RATE_ROWS) as { at: number; queue: number; is_later: number }[];
  const recent = rows.filter(({ at }) => at > now - RATE_MS);
  const count = recent.filter((row) => row.is_later === 0 && isWanted(row.queue)).length;
  return { read: recent.length, count, oldestAt: recent.at(-1)?.at ?? null };
}

function queueText(session: Session, id: number): string {
  return parseQueue(session.strings.text(id)).queue;
}
