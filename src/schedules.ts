import { type OrderOptions, readOperator } from './audit.ts';
import { checkInteger, closest, readOptions, unknownName } from './config.ts';
import type { JobDefinition } from './definition.ts';
import type { EnqueueResult } from './enqueue-options.ts';
import type { UnknownNameError } from './errors.ts';
import type { Job } from './job.ts';
import type { MisfirePolicy } from './schedule/plan.ts';
import { tickId } from './schedule/tick-id.ts';
import { nextTicks } from './schedule/ticks.ts';
import type { Timing } from './schedule/timing.ts';
import { checkScheduleName, type Overlap, readSchedule, type ScheduleOptions } from './schedule-options.ts';
import { firstTick, type ScheduleWriter } from './schedule-writer.ts';
import type { Schedule, Store } from './store/store.ts';

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 10_000;
const NEXT_SHOWN = 5;
const MOST_NEXT_SHOWN = 1_000;

/** A schedule as it is read back. Times are ms since the epoch, in store time. */
export interface ScheduleInfo {
  readonly name: string;
  /** The name of its jobs. */
  readonly job: string;
  readonly input: unknown;
  readonly queue: string;
  readonly priority: number;
  readonly timing: Timing;
  readonly misfire: MisfirePolicy;
  readonly misfireLimit: number;
  readonly overlap: Overlap;
  readonly paused: boolean;
  /** The next tick; null while it is paused, and when there is none any more. */
  readonly nextAt: number | null;
  /** The last tick that was fired. */
  readonly lastAt: number | null;
  /** The job of that tick. There is none of this id when `overlap: 'skip'` left it out, or when it was pruned. */
  readonly lastJobId: string | null;
  /** `code` when it is, or was, among the `schedules` of an application. */
  readonly source: 'code' | 'stored';
  readonly updatedAt: number;
}

export interface ScheduleDetails {
  readonly schedule: ScheduleInfo;
  /** The next ticks; as they would be without the pause, for one that is paused. */
  readonly nextTimes: readonly number[];
  readonly lastJob: Job | null;
  /** Store time of this answer. */
  readonly now: number;
}

export interface ScheduleListOptions {
  /** How many at most. Default 50. */
  readonly limit?: number;
  /** Continue after the schedule of this name. */
  readonly after?: string;
}

/** Schedules: rules that enqueue a job at each of their times. Workers fire them; see docs/schedules.md. */
export class Schedules {
  readonly #store: Store;
  readonly #writer: ScheduleWriter;

  constructor(store: Store, writer: ScheduleWriter) {
    this.#store = store;
    this.#writer = writer;
  }

  /**
   * Creates a schedule, or changes the one of this name. One that is paused stays paused, and with the same times the next
   * tick stays as it is.
   * @example await mulligan.schedules.set('nightly', cleanup, {}, { cron: '0 3 * * *', timezone: 'Europe/Berlin' })
   */
  async set<Input>(
    name: string,
    job: JobDefinition<Input, unknown> | string,
    input: NoInfer<Input>,
    options: ScheduleOptions,
    order: OrderOptions = {},
  ): Promise<ScheduleInfo> {
    const what = 'schedules.set';
    const checked = checkScheduleName(name, `${what}: name`);
    const by = readBy(order, what);
    return toInfo(await this.#writer.set(readSchedule({ name: checked, job, input, options }, what), what, by));
  }

  /** By name; 50 unless `limit` says otherwise. Continue with `after: lastName`. */
  async list(options: ScheduleListOptions = {}): Promise<ScheduleInfo[]> {
    const { limit = DEFAULT_PAGE, after } = readOptions(options, ['limit', 'after'], 'schedules.list');
    const { schedules } = await this.#store.schedules({
      limit: checkInteger(limit, 'schedules.list: limit', { min: 1, max: LARGEST_PAGE }),
      ...(after === undefined ? {} : { after: checkScheduleName(after, 'schedules.list: after') }),
    });
    return schedules.map(toInfo);
  }

  /** One schedule, its next ticks (5 unless `next` says otherwise) and its last job; null when there is none of this name. */
  async show(name: string, options: { readonly next?: number } = {}): Promise<ScheduleDetails | null> {
    const { next = NEXT_SHOWN } = readOptions(options, ['next'], 'schedules.show');
    const count = checkInteger(next, 'schedules.show: next', { min: 0, max: MOST_NEXT_SHOWN });
    const { now, schedules } = await this.#writer.read(checkScheduleName(name, 'schedules.show'));
    const [schedule] = schedules;
    if (schedule === undefined) return null;
    const { timing } = schedule;
    const info = toInfo(schedule);
    const [lastJob = null] = info.lastJobId === null ? [] : await this.#store.get([info.lastJobId]);
    const first = schedule.paused ? firstTick(schedule, now) : schedule.nextAt;
    const nextTimes = first === null || count === 0 ? [] : [first, ...nextTicks(timing, first, count - 1)];
    return { schedule: info, nextTimes, lastJob, now };
  }

  /** No tick is fired until `resume`. Ticks that pass meanwhile are left out. */
  async pause(name: string, order: OrderOptions = {}): Promise<ScheduleInfo> {
    return this.#changeExisting(name, 'schedules.pause', order, (before, now) =>
      // Written also when it is paused: the order is on record.
      before.paused ? { ...before } : { ...before, paused: true, nextAt: null, updatedAt: now },
    );
  }

  /** Goes on with the first tick from now on. */
  async resume(name: string, order: OrderOptions = {}): Promise<ScheduleInfo> {
    return this.#changeExisting(name, 'schedules.resume', order, (before, now) =>
      before.paused ? { ...before, paused: false, nextAt: firstTick(before, now), updatedAt: now } : { ...before },
    );
  }

  /** Enqueues its job now, also while it is paused. Its ticks stay as they are. */
  async trigger(name: string, order: OrderOptions = {}): Promise<EnqueueResult> {
    const by = readBy(order, 'schedules.trigger');
    const triggered = await this.#writer.trigger(checkScheduleName(name, 'schedules.trigger'), by);
    if (triggered === null) throw await this.#unknown(name, 'schedules.trigger');
    return triggered;
  }

  /** Removes a schedule; jobs that it enqueued stay. False when there is none of this name. */
  async remove(name: string, order: OrderOptions = {}): Promise<boolean> {
    const by = readBy(order, 'schedules.remove');
    let existed = false;
    const remove = (before: Schedule | null): null => {
      existed ||= before !== null;
      return null;
    };
    await this.#writer.change(checkScheduleName(name, 'schedules.remove'), remove, by);
    return existed;
  }

  async #changeExisting(
    name: string,
    what: string,
    order: OrderOptions,
    change: (before: Schedule, now: number) => Schedule,
  ): Promise<ScheduleInfo> {
    const by = readBy(order, what);
    const checked = checkScheduleName(name, what);
    const changed = await this.#writer.change(checked, (before, now) => before && change(before, now), by);
    if (changed === null) throw await this.#unknown(checked, what);
    return toInfo(changed);
  }

  async #unknown(name: string, what: string): Promise<UnknownNameError> {
    const { schedules } = await this.#store.schedules({ limit: LARGEST_PAGE });
    const names = schedules.map((schedule) => schedule.name);
    const meant = closest(name, names);
    return unknownName(what, 'the name of a schedule', name, meant === null ? undefined : `Did you mean ${meant}?`);
  }
}

function readBy(order: OrderOptions, what: string): string {
  return readOperator(readOptions(order, ['by'], what).by, what);
}

function toInfo(schedule: Schedule): ScheduleInfo {
  const { name, job, timing, misfire, misfireLimit, paused, nextAt, lastAt, code, updatedAt } = schedule;
  return {
    name,
    job: job.name,
    input: JSON.parse(job.payload),
    queue: job.queue,
    priority: job.priority,
    timing,
    misfire,
    misfireLimit,
    overlap: job.key === null ? 'allow' : 'skip',
    paused,
    nextAt,
    lastAt,
    lastJobId: lastAt === null ? null : tickId(name, lastAt),
    source: code === null ? 'stored' : 'code',
    updatedAt,
  };
}
