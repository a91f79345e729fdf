import { MINUTE_MS } from '../../duration.ts';
import { isTerminal } from '../../job.ts';
import {
  endedStates,
  FORECAST_MS,
  FORECAST_PARTITIONS,
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
import type { Row } from './row.ts';
import type { MemoryState } from './state.ts';

export function forecast(state: MemoryState, { queue, rows }: ForecastRequest, now: number): StoreForecast {
  const all = state.partitions.all().filter((partition) => queue === undefined || partition.queue === queue);
  const read = all
    .sort((a, b) => forecastLanes.indexOf(a.lane) - forecastLanes.indexOf(b.lane))
    .slice(0, FORECAST_PARTITIONS);
  const caps = forecastCaps(rows, read.length);
  const readings = read.map((partition): PartitionReading => {
    const [due, later] = partition.split(now);
    return {
      queue: partition.queue,
      lane: partition.lane,
      resource: partition.resource,
      due: Math.min(due.length, caps.due),
      later: Math.min(later.length, caps.later),
      oldestDueAt: due[0]?.dueAt ?? null,
      minutes: minutesOf(later, caps.perMinute, now),
    };
  });
  const jobs = [...state.rows.values()].filter((row) => queue === undefined || row.queue === queue);
  const arrived = jobs.filter((row) => row.runs > 0 || isTerminal(row.state) || row.dueAt <= now);
  return {
    now,
    isComplete: all.length === read.length,
    lanes: lanesOf(readings, caps),
    ...loadsOf(readLoads(state), queue),
    upcoming: upcomingOf(readings, caps, now),
    arrivedPerMinute: perMinute([newest(arrived, ({ enqueuedAt }) => enqueuedAt, now)], now),
    endedPerMinute: perMinute([newest(jobs, ({ finishedAt }) => finishedAt ?? 0, now)], now),
  };
}

function readLoads(state: MemoryState): LoadReading[] {
  const running = [...state.rows.values()].filter((row) => row.state === 'running').slice(0, RUNNING_COUNTED);
  const none = { completed: 0, dead: 0, cancelled: 0 };
  return [
    ...running.map(({ queue }) => ({ queue, running: 1 })),
    ...endedStates.flatMap((ended) =>
      [...state.ended[ended]].map(({ homeQueue }) => ({ queue: homeQueue, ended: { ...none, [ended]: 1 } })),
    ),
  ];
}

function minutesOf(later: readonly Row[], most: number, now: number): MinuteReading[] {
  const soon = later.filter(({ dueAt }) => dueAt <= now + FORECAST_MS);
  const minutes = Map.groupBy(soon, ({ dueAt }) => Math.ceil((dueAt - now) / MINUTE_MS) - 1);
  return [...minutes].flatMap(([minute, rows]) =>
    [...Map.groupBy(rows.slice(0, most), ({ name }) => name)].map(([name, own]) => ({
      minute,
      name,
      count: own.length,
      lastDueAt: (own.at(-1) as Row).dueAt,
    })),
  );
}

function newest(rows: readonly Row[], timeOf: (row: Row) => number, now: number): RateReading {
  const times = rows.map(timeOf).filter((at) => at > now - RATE_MS);
  const read = times.sort((a, b) => b - a).slice(0, RATE_ROWS);
  return { read: read.length, count: read.length, oldestAt: read.at(-1) ?? null };
}
