import { checkName, namesOf, readOptions } from '../config.ts';
import { MINUTE_MS } from '../duration.ts';
import { FORECAST_MINUTES, sumOf } from '../store/forecast.ts';
import type { Counted, LaneBacklog, Store, StoreForecast, UpcomingJobs } from '../store/store.ts';

/** How many waiting jobs a forecast reads at most, or nearly so: some tenths of a second, however many there are. */
const ROWS_READ = 100_000;
const MOST_SERIES = 50;

export interface ForecastOptions {
  /** Only jobs that wait in this queue. */
  readonly queue?: string;
}

const optionNames = namesOf<ForecastOptions>({ queue: true });

/**
 * empty: no due job waits. draining: the backlog will be empty at `emptyAt`. growing: as many jobs come as end, or more.
 * stalled: jobs wait, and none has ended in the last five minutes.
 */
export type Outlook = 'empty' | 'draining' | 'growing' | 'stalled';

/** Retries that fall due in one minute. */
export interface ForecastMinute extends Counted {
  /** When the minute begins; ms since the epoch. */
  readonly at: number;
  /** `count`; where counting was stopped, an estimate of the whole minute. */
  readonly expected: number;
}

/** Retries of one job name behind one resource. */
export interface ForecastSeries {
  readonly resource: string | null;
  readonly name: string;
  /** All that fall due in the next hour, and an estimate where counting was stopped. */
  readonly total: Counted & { readonly expected: number };
  /** What to expect in each of the minutes. */
  readonly minutes: readonly number[];
}

/** What waits now, what falls due within the next hour, and when the backlog will be empty. Times are ms since the epoch. */
export interface Forecast {
  /** Store time of this answer. */
  readonly now: number;
  /** False when there are so many resources, names or keys that not all of them were read: every number is a lower bound then. */
  readonly isComplete: boolean;
  /** Due jobs of all lanes. */
  readonly backlog: Counted;
  /** Running jobs, and jobs that have ended and are still stored, of each queue that has some. */
  readonly queues: StoreForecast['queues'];
  /** Jobs that run now. */
  readonly running: Counted;
  /** Jobs that have ended and are still stored. With a queue, those that were enqueued in it. */
  readonly ended: StoreForecast['ended'];
  /** What waits, by queue and lane. */
  readonly lanes: readonly LaneBacklog[];
  /** Retries, redrives and suspects that fall due in each of the next 60 minutes. */
  readonly retries: readonly ForecastMinute[];
  /** The same by resource and name, the largest first, 50 at most. */
  readonly series: readonly ForecastSeries[];
  /** Jobs that were enqueued to run at once, and jobs that ended, per minute, measured over the last five. */
  readonly arrivedPerMinute: number;
  readonly endedPerMinute: number;
  readonly outlook: Outlook;
  /**
   * When no due job waits any more, if jobs go on coming and ending as they do now and what is listed falls due as well; null
   * unless it is empty or draining. A lower bound when `backlog` is one.
   */
  readonly emptyAt: number | null;
}

export async function readForecast(store: Store, options: ForecastOptions): Promise<Forecast> {
  const { queue } = readOptions(options, optionNames, 'forecast');
  const only = queue === undefined ? {} : { queue: checkName(queue, 'forecast: queue') };
  return toForecast(await store.forecast({ ...only, rows: ROWS_READ }));
}

export function toForecast(read: StoreForecast): Forecast {
  const { now, lanes, arrivedPerMinute, endedPerMinute } = read;
  const upcoming = read.upcoming.filter(({ lane }) => lane !== 'fresh');
  const inMinutes = byMinute(upcoming);
  const backlog = sumOf(lanes.map(({ due }) => due));
  return {
    now,
    isComplete: read.isComplete,
    backlog,
    queues: read.queues,
    running: read.running,
    ended: read.ended,
    lanes,
    retries: inMinutes.map((own, minute) => ({ at: now + minute * MINUTE_MS, ...totalOf(own) })),
    series: seriesOf(upcoming),
    arrivedPerMinute,
    endedPerMinute,
    ...emptied(read, backlog.count),
  };
}

function seriesOf(upcoming: readonly UpcomingJobs[]): ForecastSeries[] {
  const groups = Map.groupBy(upcoming, ({ resource, name }) => JSON.stringify([resource, name]));
  return [...groups.values()]
    .map((own): ForecastSeries => {
      const { resource, name } = own[0] as UpcomingJobs;
      const minutes = byMinute(own).map((jobs) => totalOf(jobs).expected);
      return { resource, name, total: totalOf(own), minutes };
    })
    .sort((a, b) => b.total.expected - a.total.expected || (a.name < b.name ? -1 : 1))
    .slice(0, MOST_SERIES);
}

function byMinute(upcoming: readonly UpcomingJobs[]): UpcomingJobs[][] {
  const minutes = Map.groupBy(upcoming, ({ minute }) => minute);
  return Array.from({ length: FORECAST_MINUTES }, (_, minute) => minutes.get(minute) ?? []);
}

function totalOf(jobs: readonly UpcomingJobs[]): Counted & { readonly expected: number } {
  return { ...sumOf(jobs), expected: jobs.reduce((sum, { expected }) => sum + expected, 0) };
}

/** Minute by minute while it is known what falls due, and in one step from there on. */
function emptied(read: StoreForecast, due: number): Pick<Forecast, 'outlook' | 'emptyAt'> {
  const { now, arrivedPerMinute, endedPerMinute } = read;
  if (due === 0) return { outlook: 'empty', emptyAt: now };
  if (endedPerMinute === 0) return { outlook: 'stalled', emptyAt: null };
  const net = endedPerMinute - arrivedPerMinute;
  let backlog = due;
  for (const [minute, own] of byMinute(read.upcoming).entries()) {
    const loss = net - totalOf(own).expected;
    if (backlog <= loss)
      return { outlook: 'draining', emptyAt: Math.ceil(now + (minute + backlog / loss) * MINUTE_MS) };
    backlog -= loss;
  }
  if (net <= 0) return { outlook: 'growing', emptyAt: null };
  return { outlook: 'draining', emptyAt: Math.ceil(now + (FORECAST_MINUTES + backlog / net) * MINUTE_MS) };
}
