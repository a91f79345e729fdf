import { MINUTE_MS } from '../duration.ts';
import type { Lane } from '../lane.ts';

/*
 * What waits, and when it falls due. Stores read it partition by partition in due order, as claims do, and never more than
 * a given number of rows: a count that was stopped says so, and is a lower bound.
 */

/** Minutes into the future. */
export const FORECAST_MINUTES = 60;
export const FORECAST_MS: number = FORECAST_MINUTES * MINUTE_MS;
/** More partitions than this are not read: those of retries come first. */
export const FORECAST_PARTITIONS = 500;
/** Running jobs are counted so far. */
export const RUNNING_COUNTED = 10_000;
/** Over how long the present rates are measured, and from how many jobs at most. */
export const RATE_MS: number = 5 * MINUTE_MS;
export const RATE_ROWS = 10_000;

/** The lanes in which partitions are read. */
export const forecastLanes: readonly Lane[] = ['retry', 'redrive', 'suspect', 'fresh'];

export interface ForecastRequest {
  /** Only jobs that wait in this queue. */
  readonly queue?: string;
  /** About how many waiting jobs may be read. */
  readonly rows: number;
}

/** As far as it was counted: the number, or at least so many when `isExact` is false. */
export interface Counted {
  readonly count: number;
  readonly isExact: boolean;
}

/** What waits in a lane of a queue now. */
export interface LaneBacklog {
  readonly queue: string;
  readonly lane: Lane;
  /** Jobs that could start but for gates, limits, pauses and places. */
  readonly due: Counted;
  /** Jobs that fall due later. */
  readonly later: Counted;
  /** Since when the first of the due ones is due; null when there is none. */
  readonly oldestDueAt: number | null;
}

/** Jobs that fall due in one of the next minutes. */
export interface UpcomingJobs extends Counted {
  readonly queue: string;
  readonly lane: Lane;
  readonly resource: string | null;
  readonly name: string;
  /** 0 for the minute that begins now. */
  readonly minute: number;
  /** `count`, or where counting was stopped, what it would have come to if the rest of the minute were like its start. */
  readonly expected: number;
}

export const endedStates = ['completed', 'dead', 'cancelled'] as const;
export type EndedState = (typeof endedStates)[number];

/** The jobs of one queue that do not wait. */
export interface QueueLoad {
  readonly queue: string;
  /** Jobs that run; a lower bound when the running jobs of all queues were not counted to the end. */
  readonly running: number;
  /** Jobs that were enqueued in it, have ended and are still stored. */
  readonly ended: Readonly<Record<EndedState, number>>;
}

export interface StoreForecast {
  /** Store time of this answer. */
  readonly now: number;
  /** False when there are partitions that were not read. */
  readonly isComplete: boolean;
  readonly lanes: readonly LaneBacklog[];
  /** Queues that have jobs which run or have ended; `running` and `ended` are their sums. */
  readonly queues: readonly QueueLoad[];
  /** Jobs that run. */
  readonly running: Counted;
  /** Jobs that have ended and are still stored; with `queue`, those that were enqueued in it. */
  readonly ended: Readonly<Record<EndedState, number>>;
  readonly upcoming: readonly UpcomingJobs[];
  /** Jobs that were accepted for now, and jobs that ended, per minute of the last RATE_MS. */
  readonly arrivedPerMinute: number;
  readonly endedPerMinute: number;
}

/** What a store has counted of one queue. */
export type LoadReading = { readonly queue: string } & (
  | { readonly running: number }
  | { readonly ended: Readonly<Record<EndedState, number>> }
);

/** Running jobs are counted over all queues, RUNNING_COUNTED of them at most; `wanted` leaves out the other queues afterwards. */
export function loadsOf(
  readings: readonly LoadReading[],
  wanted: string | undefined,
): Pick<StoreForecast, 'queues' | 'running' | 'ended'> {
  const loads = new Map<string, { queue: string; running: number; ended: Record<EndedState, number> }>();
  let read = 0;
  for (const reading of readings) {
    const { queue } = reading;
    if ('running' in reading) read += reading.running;
    if (wanted !== undefined && queue !== wanted) continue;
    const load = loads.get(queue) ?? { queue, running: 0, ended: { completed: 0, dead: 0, cancelled: 0 } };
    loads.set(queue, load);
    if ('running' in reading) load.running += reading.running;
    else for (const state of endedStates) load.ended[state] += reading.ended[state];
  }
  const queues = [...loads.values()].sort((a, b) => order(a.queue, b.queue));
  const total = (countOf: (load: QueueLoad) => number): number => queues.reduce((sum, load) => sum + countOf(load), 0);
  return {
    queues,
    running: { count: total(({ running }) => running), isExact: read < RUNNING_COUNTED },
    ended: {
      completed: total(({ ended }) => ended.completed),
      dead: total(({ ended }) => ended.dead),
      cancelled: total(({ ended }) => ended.cancelled),
    },
  };
}

export interface ForecastCaps {
  readonly due: number;
  readonly later: number;
  readonly perMinute: number;
}

const LEAST_COUNTED = 10;

/** How far to count in each of so many partitions. */
export function forecastCaps(rows: number, partitions: number): ForecastCaps {
  const due = Math.max(LEAST_COUNTED, Math.floor(rows / Math.max(1, partitions)));
  const perMinute = Math.max(LEAST_COUNTED, Math.floor(due / FORECAST_MINUTES));
  return { due, later: perMinute * LEAST_COUNTED, perMinute };
}

/** What a store has read of one partition, as far as the caps. */
export interface PartitionReading {
  readonly queue: string;
  readonly lane: Lane;
  readonly resource: string | null;
  readonly due: number;
  readonly later: number;
  readonly oldestDueAt: number | null;
  readonly minutes: readonly MinuteReading[];
}

export interface MinuteReading {
  readonly minute: number;
  readonly name: string;
  readonly count: number;
  /** When the last of those that were read falls due. */
  readonly lastDueAt: number;
}

/** Adds up readings by queue and lane. */
export function lanesOf(readings: readonly PartitionReading[], caps: ForecastCaps): LaneBacklog[] {
  const groups = Map.groupBy(readings, ({ queue, lane }) => JSON.stringify([queue, lane]));
  return [...groups.values()]
    .map((own): LaneBacklog => {
      const { queue, lane } = own[0] as PartitionReading;
      const oldest = own.flatMap(({ oldestDueAt }) => oldestDueAt ?? []);
      return {
        queue,
        lane,
        due: sumOf(own.map(({ due }) => upTo(due, caps.due))),
        later: sumOf(own.map(({ later }) => upTo(later, caps.later))),
        oldestDueAt: oldest.length === 0 ? null : Math.min(...oldest),
      };
    })
    .filter(({ due, later }) => due.count + later.count > 0)
    .sort((a, b) => order(a.queue, b.queue) || order(a.lane, b.lane));
}

export function upcomingOf(readings: readonly PartitionReading[], caps: ForecastCaps, now: number): UpcomingJobs[] {
  const all = readings.flatMap((reading) => {
    const minutes = Map.groupBy(reading.minutes, ({ minute }) => minute);
    return [...minutes].flatMap(([minute, names]) => minuteOf(reading, minute, names, caps, now));
  });
  const groups = Map.groupBy(all, (one) => JSON.stringify([one.queue, one.lane, one.resource, one.name, one.minute]));
  return [...groups.values()]
    .map((own) => ({
      ...(own[0] as UpcomingJobs),
      ...sumOf(own),
      expected: own.reduce((sum, { expected }) => sum + expected, 0),
    }))
    .sort((a, b) => a.minute - b.minute || order(a.queue, b.queue) || order(a.name, b.name) || order(a.lane, b.lane));
}

/** The jobs of one partition and minute: where counting stopped, the part that was read stands for the whole minute. */
function minuteOf(
  { queue, lane, resource }: PartitionReading,
  minute: number,
  names: readonly MinuteReading[],
  caps: ForecastCaps,
  now: number,
): UpcomingJobs[] {
  const total = names.reduce((sum, { count }) => sum + count, 0);
  const isExact = total < caps.perMinute;
  const readMs = Math.max(...names.map(({ lastDueAt }) => lastDueAt)) - (now + minute * MINUTE_MS);
  const factor = isExact ? 1 : Math.max(1, MINUTE_MS / Math.max(1, readMs));
  return names.map(({ name, count }) => {
    const expected = Math.round(count * factor);
    return { queue, lane, resource, name, minute, count, isExact, expected };
  });
}

export function upTo(count: number, cap: number): Counted {
  return { count, isExact: count < cap };
}

export function sumOf(counts: readonly Counted[]): Counted {
  return {
    count: counts.reduce((sum, { count }) => sum + count, 0),
    isExact: counts.every(({ isExact }) => isExact),
  };
}

/** Jobs of some kind that were read newest first, back to `now - RATE_MS`, RATE_ROWS of them at most. */
export interface RateReading {
  /** All that were read. */
  readonly read: number;
  /** Those of them that are asked for. */
  readonly count: number;
  readonly oldestAt: number | null;
}

export function perMinute(readings: readonly RateReading[], now: number): number {
  const perWindow = readings.reduce((sum, { read, count, oldestAt }) => {
    // A reading that was full covers less time.
    const ms = read < RATE_ROWS || oldestAt === null ? RATE_MS : Math.max(1, now - oldestAt);
    return sum + count * (RATE_MS / ms);
  }, 0);
  return perWindow / (RATE_MS / MINUTE_MS);
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
