import { createHash } from 'node:crypto';
import { newOrder } from './audit.ts';
import type { Clock } from './clock.ts';
import { describe, unexpected } from './config.ts';
import type { Enqueuer, Target } from './enqueue.ts';
import type { EnqueueResult } from './enqueue-options.ts';
import { type ConfigError, StoreBusyError } from './errors.ts';
import { operatorName } from './operator.ts';
import { scheduleNote } from './order-notes.ts';
import { nextTick } from './schedule/ticks.ts';
import type { Timing } from './schedule/timing.ts';
import type { ReadSchedule } from './schedule-options.ts';
import type { Enqueued, JobTemplate, NewJob, Order, Schedule, Schedules, ScheduleWrite, Store } from './store/store.ts';

/** Each time another process wins, so this many would have to write the same schedule at once, again and again. */
const MOST_TRIES = 20;
/** After the first few tries, that process is given time: its transaction may be slow to end. */
const TRIES_AT_ONCE = 5;
const PAUSE_MS = 100;
const PAGE = 1_000;

export interface ScheduleWriterParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly enqueuer: Enqueuer;
  readonly targetOf: (job: unknown, what: string) => Target;
}

/** What a caller says of a schedule; the rest is how far it has come. */
interface Wanted extends Pick<Schedule, 'timing' | 'misfire' | 'misfireLimit'> {
  readonly job: JobTemplate;
}

/** Reads and writes schedules, by hand and from code. The jobs are prepared here, so that any worker can store them. */
export class ScheduleWriter {
  readonly #parts: ScheduleWriterParts;

  constructor(parts: ScheduleWriterParts) {
    this.#parts = parts;
  }

  read(name: string): Promise<Schedules> {
    return this.#parts.store.schedules({ names: [name], limit: 1 });
  }

  /**
   * Reads, changes and writes back; when another process has written the schedule meanwhile, does that again. What
   * is answered as it was read is not written. With `by`, the write is on record as an order.
   */
  async change<Changed extends Schedule | null>(
    name: string,
    change: (before: Schedule | null, now: number) => Changed,
    by: string | null = null,
  ): Promise<Changed> {
    const { store, clock } = this.#parts;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      if (tries >= TRIES_AT_ONCE) await sleep(clock, PAUSE_MS * (0.5 + clock.random()));
      const { now, schedules } = await this.read(name);
      const before = schedules[0] ?? null;
      const changed = change(before, now);
      if (changed === before) return changed;
      const to = changed && { ...changed, version: clock.newId() };
      const write: ScheduleWrite = { name, from: before?.version ?? null, to, jobs: [] };
      if ((await store.writeSchedule(write, this.#order(by, before, write))).written) return to;
    }
    throw new Overwritten(name);
  }

  /** Stores a job of the schedule now; null when there is no such schedule. Its ticks stay as they are. */
  async trigger(name: string, by: string): Promise<EnqueueResult | null> {
    const { clock, enqueuer } = this.#parts;
    const id = clock.newId();
    for (let tries = 1; ; tries++) {
      const [schedule] = (await this.read(name)).schedules;
      if (schedule === undefined) return null;
      const job: NewJob = { ...schedule.job, id, delayMs: 0, dueAt: null };
      try {
        return await enqueuer.enqueueWith(job, (traced) => this.#writeWith(traced, schedule, by));
      } catch (error) {
        if (!(error instanceof Overwritten) || tries === MOST_TRIES) throw error;
        if (tries >= TRIES_AT_ONCE) await sleep(clock, PAUSE_MS * (0.5 + clock.random()));
      }
    }
  }

  async #writeWith(job: NewJob, schedule: Schedule, by: string): Promise<Enqueued> {
    const { store, clock } = this.#parts;
    const to = { ...schedule, version: clock.newId() };
    const write: ScheduleWrite = { name: schedule.name, from: schedule.version, to, jobs: [job] };
    const { written, jobs } = await store.writeSchedule(write, this.#order(by, schedule, write));
    if (!written) throw new Overwritten(schedule.name);
    return jobs[0] as Enqueued;
  }

  #order(by: string | null, before: Schedule | null, write: ScheduleWrite): Order | undefined {
    return by === null ? undefined : newOrder(this.#parts.clock, by, scheduleNote(before, write));
  }

  async set(given: ReadSchedule, what: string, by: string): Promise<Schedule> {
    const wanted = await this.#prepare(given, what, `${what}: ${given.name}`);
    const change = (before: Schedule | null, now: number): Schedule => {
      const schedule = merged(given.name, wanted, before, now);
      if (schedule.nextAt === null && !schedule.paused) throw neverTicks(wanted.timing, what);
      return schedule;
    };
    return this.change(given.name, change, by);
  }

  /**
   * Stores the schedules of an application, when it opens. One that code gives as it did the last time stays as it is, with
   * what was changed by hand since; one that code gives otherwise is changed. During a rolling deploy, the process that
   * opened last decides.
   */
  async reconcile(schedules: readonly ReadSchedule[], what: string): Promise<void> {
    for (const given of schedules) {
      const place = `${what}: ${given.name}`;
      const wanted = await this.#prepare(given, place, place);
      const code = createHash('sha256').update(JSON.stringify(wanted)).digest('hex').slice(0, 16);
      await this.change(given.name, (before, now) => {
        if (before?.code === code) return before;
        const schedule = { ...merged(given.name, wanted, before, now), code };
        // A deploy may come after the time of a one-off: then it is kept as one that is over.
        const isOver = schedule.nextAt === null && !schedule.paused;
        if (isOver && wanted.timing.kind !== 'at') throw neverTicks(wanted.timing, place);
        return schedule;
      });
    }
  }

  /** Removes schedules that code gave once, and that are not among these. */
  async removeMissing(schedules: readonly ReadSchedule[]): Promise<void> {
    const names = new Set(schedules.map(({ name }) => name));
    for await (const { name } of this.all()) {
      const isMissing = (one: Schedule | null): boolean => one !== null && one.code !== null && !names.has(name);
      // What it removes is lost: that is on record, though no person said so.
      await this.change(name, (before) => (isMissing(before) ? null : before), operatorName());
    }
  }

  async *all(): AsyncGenerator<Schedule> {
    for (let after = ''; ; ) {
      const { schedules } = await this.#parts.store.schedules({ limit: PAGE, ...(after === '' ? {} : { after }) });
      yield* schedules;
      if (schedules.length < PAGE) return;
      after = (schedules.at(-1) as Schedule).name;
    }
  }

  /** `place` names the schedule, for messages about its jobs. */
  async #prepare(given: ReadSchedule, what: string, place: string): Promise<Wanted> {
    const { enqueuer, targetOf } = this.#parts;
    const prepared = await enqueuer.prepare(targetOf(given.job, what), given.input, given.jobOptions, place);
    const { id: _id, delayMs: _delayMs, dueAt: _dueAt, ...template } = prepared.job;
    const key = given.overlap === 'skip' ? `schedule:${given.name}` : null;
    const { timing, misfire, misfireLimit } = given;
    return { timing, misfire, misfireLimit, job: { ...template, key } };
  }
}

class Overwritten extends StoreBusyError {
  constructor(name: string) {
    super(
      `expected to write the schedule ${describe(name)}, but other processes wrote it again and again; nothing was written. Try again.`,
    );
  }
}

function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}

/** After the last tick, too: a store clock that was put back must not fire it again. */
export function firstTick({ timing, lastAt }: Pick<Schedule, 'timing' | 'lastAt'>, now: number): number | null {
  return nextTick(timing, Math.max(now, lastAt ?? Number.NEGATIVE_INFINITY));
}

/** With the times of before, the next tick stays: it may be due already. */
function merged(name: string, wanted: Wanted, before: Schedule | null, now: number): Schedule {
  const { lastAt = null, paused = false, code = null } = before ?? {};
  const keepsNext = before !== null && !paused && isSame(before.timing, wanted.timing);
  const nextAt = keepsNext ? before.nextAt : paused ? null : firstTick({ ...wanted, lastAt }, now);
  // The version is chosen with each try to write it.
  return { name, version: '', ...wanted, nextAt, lastAt, paused, code, updatedAt: now };
}

function isSame(a: Timing, b: Timing): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function neverTicks(timing: Timing, what: string): ConfigError {
  if (timing.kind === 'at') {
    const hint = 'To run the job now, enqueue it.';
    return unexpected(`${what}: at`, 'a time in the future', new Date(timing.at).toISOString(), hint);
  }
  const pattern = timing.kind === 'cron' ? timing.cron : timing;
  return unexpected(`${what}: ${timing.kind}`, 'a pattern that matches at some time', pattern, 'It never does.');
}
