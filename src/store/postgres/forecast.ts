import { type Lane, lanes } from '../../job.ts';
import {
  FORECAST_PARTITIONS,
  type ForecastRequest,
  forecastCaps,
  lanesOf,
  loadsOf,
  perMinute,
  RATE_MS,
  type RateReading,
  type StoreForecast,
  upcomingOf,
} from '../forecast.ts';
import { plain } from './connection/arrays.ts';
import type { Session } from './session.ts';

type PartitionRow = [id: number, queue: string, lane: number, resource: string];
type LaneRow = [id: number, due: number, later: number, oldestDueAt: number | null];
type UpcomingRow = [id: number, minute: number, jobType: number, count: number, lastDueAt: number];
type RateRow = [read: number, count: number, oldestAt: number | null];

export async function forecast(session: Session, { queue, rows }: ForecastRequest): Promise<StoreForecast> {
  const { db, jobTypes } = session;
  const [[time], all] = await Promise.all([
    db.read<[now: number]>('SELECT @.now_ms()'),
    db.read<PartitionRow>('SELECT * FROM @.forecast_partitions($1)', [queue ?? null]),
  ]);
  const [now] = time as [number];
  const read = all.slice(0, FORECAST_PARTITIONS);
  const caps = forecastCaps(rows, read.length);
  const inLanes = await db.read<LaneRow>('SELECT * FROM @.forecast_lanes($1, $2, $3, $4)', [
    plain(read.map(([id]) => id)),
    now,
    caps.due,
    caps.later,
  ]);
  const later = inLanes.filter((row) => row[2] > 0).map(([id]) => id);
  const [upcoming, running, states, ended, arrived] = await Promise.all([
    db.read<UpcomingRow>('SELECT * FROM @.forecast_upcoming($1, $2, $3)', [plain(later), now, caps.perMinute]),
    db.read<[queue: string, running: number]>('SELECT * FROM @.forecast_running()'),
    db.read<[queue: string, completed: number, dead: number, cancelled: number]>('SELECT * FROM @.forecast_states()'),
    db.read<RateRow>('SELECT * FROM @.forecast_ended($1, $2)', [now - RATE_MS, queue ?? null]),
    db.read<RateRow>('SELECT * FROM @.forecast_arrived($1, $2, $3)', [now - RATE_MS, queue ?? null, now]),
  ]);
  const loads = [
    ...running.map(([inQueue, count]) => ({ queue: inQueue, running: count })),
    ...states.map(([inQueue, completed, dead, cancelled]) => ({
      queue: inQueue,
      ended: { completed, dead, cancelled },
    })),
  ];
  const typeOf = await jobTypes.load(upcoming.map((row) => row[2]));
  const minutesOf = Map.groupBy(upcoming, ([id]) => id);
  const laneOf = new Map(inLanes.map((row) => [row[0], row]));
  const readings = read.map(([id, inQueue, lane, resource]) => {
    const [, due, behind, oldestDueAt] = laneOf.get(id) as LaneRow;
    return {
      queue: inQueue,
      lane: lanes[lane] as Lane,
      resource: resource || null,
      due,
      later: behind,
      oldestDueAt,
      minutes: (minutesOf.get(id) ?? []).map(([, minute, jobType, count, lastDueAt]) => {
        return { minute, name: typeOf(jobType).name, count, lastDueAt };
      }),
    };
  });
  return {
    now,
    isComplete: read.length === all.length,
    lanes: lanesOf(readings, caps),
    ...loadsOf(loads, queue),
    upcoming: upcomingOf(readings, caps, now),
    arrivedPerMinute: perMinute(arrived.map(toReading), now),
    endedPerMinute: perMinute(ended.map(toReading), now),
  };
}

function toReading([read, count, oldestAt]: RateRow): RateReading {
  return { read, count, oldestAt };
}
