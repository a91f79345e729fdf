import type { Clock, Timer } from '../clock.ts';
import { StoreUnavailableError } from '../errors.ts';
import type { Logger } from '../observe/log.ts';
import { tickOf } from '../schedule/tick.ts';
import type { Enqueued, NewJob, Schedule, Store } from '../store/store.ts';

/*
 * Fires the ticks of schedules. Every worker does this; there is no leader.
 *
 *   look (read the schedules that tick soonest) -> fire those that are due -> sleep until the next tick, a hint, or a poll
 *
 * A tick is fired by one write: it moves the schedule past the tick and stores the job, and does nothing when another
 * worker has moved it before. The store's clock says what is due. The sleep is only a guess of when that will be: a worker
 * that wakes too early looks again.
 */

/** How many schedules are read at once. */
const READ_AT_ONCE = 100;
/** A hint that something was written is followed by a look, but no more often than this: most writes are no schedules. */
const WAKE_EVERY_MS = 1_000;
/** Workers that wait for the same tick do not all come at once: the first fires it, and the others find it fired. */
export const SPREAD_MS = 40;
/** A schedule that cannot be fired is logged once in this time. */
const COMPLAIN_EVERY_MS = 60_000;

export interface TickerParts {
  readonly store: Pick<Store, 'schedules' | 'writeSchedule'>;
  readonly clock: Clock;
  readonly pollMs: number;
  /** `SPREAD_MS`; 0 where no other process has the store open, so that a test finds a tick fired at its very time. */
  readonly spreadMs: number;
  readonly log: Logger;
  readonly onEnqueued: (job: NewJob, answer: Enqueued) => void;
  /** The store could not be asked. */
  readonly onError: (error: unknown) => void;
}

export class Ticker {
  readonly #parts: TickerParts;
  readonly #complainedAt: Map<string, number> = new Map();
  #timer: Timer | null = null;
  /** When the timer fires; null during a look. */
  #wakesAt: number | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isWoken = false;
  #stopped = false;
  #underWay: Promise<void> = Promise.resolve();

  constructor(parts: TickerParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#sleep(0);
  }

  /** A schedule may have been written. */
  wake(): void {
    this.#isWoken = true;
    if (this.#wakesAt === null || this.#stopped) return;
    const now = this.#parts.clock.monotonic();
    const at = Math.max(now, this.#lookedAt + WAKE_EVERY_MS);
    if (at < this.#wakesAt) this.#sleep(at - now);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#underWay;
  }

  #sleep(ms: number): void {
    const { clock, spreadMs } = this.#parts;
    if (this.#stopped) return;
    this.#timer?.cancel();
    const waitMs = ms + clock.random() * spreadMs;
    this.#wakesAt = clock.monotonic() + waitMs;
    this.#timer = clock.after(waitMs, () => {
      this.#wakesAt = null;
      this.#isWoken = false;
      this.#lookedAt = clock.monotonic();
      this.#underWay = this.#look().then(
        (nextMs) => this.#sleep(this.#isWoken ? Math.min(WAKE_EVERY_MS, nextMs) : nextMs),
        (error) => {
          this.#parts.onError(error);
          this.#sleep(this.#parts.pollMs);
        },
      );
    });
  }

  /** Fires what is due; answers how long to sleep. */
  async #look(): Promise<number> {
    const { store, pollMs } = this.#parts;
    const { now, schedules } = await store.schedules({ soonest: true, limit: READ_AT_ONCE });
    const due = schedules.filter(({ nextAt }) => nextAt !== null && nextAt <= now);
    let next = schedules[due.length]?.nextAt ?? Number.POSITIVE_INFINITY;
    if (due.length === READ_AT_ONCE) next = now;
    for (const schedule of due) {
      if (this.#stopped) return 0;
      next = Math.min(next, await this.#fire(schedule, now).catch((error) => this.#failed(schedule, error)));
    }
    return next <= now ? 0 : Math.min(pollMs, next - now);
  }

  /** Answers when it ticks next; infinity for never. */
  async #fire(schedule: Schedule, now: number): Promise<number> {
    const { store, clock, log, onEnqueued } = this.#parts;
    const { name } = schedule;
    const tick = tickOf(schedule, clock.newId(), now);
    if (tick === null) return schedule.nextAt ?? Number.POSITIVE_INFINITY;
    const { to, jobs, isLate } = tick;
    const { nextAt } = to;
    const answer = await store.writeSchedule({ name, from: schedule.version, to, jobs });
    // Another worker has fired it, by the same plan.
    if (!answer.written) return nextAt ?? Number.POSITIVE_INFINITY;
    if (isLate) {
      const missed = { schedule: name, since: schedule.nextAt, misfire: schedule.misfire, fired: jobs.length };
      log.warn('ticks of a schedule were missed: no worker could fire them in time', missed);
    }
    for (const [index, job] of jobs.entries()) onEnqueued(job, answer.jobs[index] as Enqueued);
    return nextAt ?? Number.POSITIVE_INFINITY;
  }

  /**
   * One schedule that cannot be fired must not keep the others from it: its time zone may be unknown to this system, or a
   * lock was not given in time. It is tried again with the next look.
   */
  #failed({ name }: Schedule, error: unknown): number {
    if (error instanceof StoreUnavailableError) throw error;
    const now = this.#parts.clock.monotonic();
    if (now - (this.#complainedAt.get(name) ?? Number.NEGATIVE_INFINITY) >= COMPLAIN_EVERY_MS) {
      this.#complainedAt.set(name, now);
      this.#parts.log.error('a tick of a schedule could not be fired; trying again', { schedule: name, error });
    }
    return Number.POSITIVE_INFINITY;
  }
}
