import type { Clock } from '../clock.ts';
import type { ClaimedJob } from '../store/store.ts';

/*
 * How many jobs a worker claims at a time.
 *
 * A place never stays empty while a job is due: whenever fewer jobs run than may, the worker claims at least as many as
 * are missing. On top of that it claims ahead, because the number of commits limits how fast short jobs go, and claiming
 * ahead makes claims and settlements large. Claiming ahead costs, too, so it is bounded:
 *
 * - A crash counts against every job that is claimed. So jobs are claimed ahead only as far as they start within AHEAD_MS.
 * - A fresh job waits for the claims and settlements that are under way. So nothing is claimed ahead while claims bring
 *   mostly retries and redrives and fresh jobs arrive among them. The rest of a backlog does not count as arriving: it was
 *   made before, and without news of work.
 * - A job that counts somewhere while it waits in the buffer (a limit, maxRetriesInFlight) keeps others from starting. So it
 *   leaves the buffer before those that do not, and few of them are claimed ahead.
 * - A worker that is full of retries would learn of a fresh job only when half of them have ended. So news of work lets it
 *   claim a few more at once.
 */

const AHEAD_MS = 50;
/** Jobs that leave the buffer first are claimed ahead only as far as they start within this time. */
const FIRST_MS = 5;
/** Jobs claimed ahead per place, however short they are. */
const MOST_AHEAD = 9;
/** How long fresh jobs count as arriving after a claim has brought one, and how old the news of them may be. */
const FRESH_FOR_MS = 1_000;
/** The part of the places that a worker full of retries goes beyond them when it hears of new work. */
const FOR_NEW_WORK = 0.1;
const LARGEST_CLAIM = 1_000;
/** So many outcomes may wait to be recorded, per job that may be claimed, before new work is held back. */
const MOST_UNRECORDED = 2;
/** Makes the mean follow the last ten runs or so. */
const SMOOTHING = 0.1;

/** What the worker holds. */
export interface Load {
  readonly running: number;
  readonly buffered: number;
  /** Of the buffered ones, those that leave the buffer first. */
  readonly leavingFirst: number;
  readonly settling: number;
}

export class Prefetch {
  readonly #clock: Clock;
  readonly #concurrency: number;
  #meanRunMs: number | null = null;
  #bringsRetries = false;
  #newsUntil = Number.NEGATIVE_INFINITY;
  #freshUntil = Number.NEGATIVE_INFINITY;
  #hasNews = false;

  constructor(clock: Clock, concurrency: number) {
    this.#clock = clock;
    this.#concurrency = concurrency;
  }

  ran(ms: number): void {
    const mean = this.#meanRunMs ?? ms;
    this.#meanRunMs = mean + (ms - mean) * SMOOTHING;
  }

  newWork(): void {
    this.#hasNews = true;
    this.#newsUntil = this.#clock.monotonic() + FRESH_FOR_MS;
  }

  /** Call it when a claim is sent: it will find what was announced before. */
  asked(): void {
    this.#hasNews = false;
  }

  claimed(jobs: readonly Pick<ClaimedJob, 'lane'>[]): void {
    const fresh = jobs.filter(({ lane }) => lane === 'fresh').length;
    this.#bringsRetries = jobs.length > 2 * fresh;
    const now = this.#clock.monotonic();
    if (fresh > 0 && now < this.#newsUntil) this.#freshUntil = now + FRESH_FOR_MS;
  }

  /** How many to claim now; 0 when it is better to wait until more room can be filled at once. */
  places(load: Load): number {
    const { running, buffered, settling } = load;
    const most = this.#most();
    if (settling > MOST_UNRECORDED * most) return 0;
    const room = this.#room(load);
    if (this.#hasNews && this.#bringsRetries) {
      const extra = Math.ceil(this.#concurrency * FOR_NEW_WORK);
      return Math.min(LARGEST_CLAIM, Math.max(0, most + extra - running - buffered));
    }
    return buffered === 0 || room >= most / 2 ? Math.min(LARGEST_CLAIM, room) : 0;
  }

  /**
   * How many jobs may be claimed that leave the buffer first: as many as there are places in which nothing runs, nor will by what
   * is claimed already; and where a backlog keeps the buffer filled, so that no place is ever free, those that start within a moment.
   */
  atOnce(load: Load): number {
    const { running, buffered, leavingFirst, settling } = load;
    if (settling > MOST_UNRECORDED * this.#most()) return 0;
    const free = Math.max(0, this.#concurrency - running - buffered);
    if (buffered === 0 || this.#meanRunMs === null) return free;
    const soon = Math.max(1, Math.ceil((this.#concurrency * FIRST_MS) / this.#meanRunMs));
    return Math.max(free, Math.min(soon - leavingFirst, this.#room(load)));
  }

  #room({ running, buffered }: Load): number {
    return Math.max(0, this.#most() - running - buffered);
  }

  /** So many jobs may run and be buffered together. */
  #most(): number {
    return this.#concurrency + this.#ahead();
  }

  #ahead(): number {
    if (this.#meanRunMs === null) return 0;
    if (this.#bringsRetries && this.#clock.monotonic() < this.#freshUntil) return 0;
    const soon = Math.floor((this.#concurrency * AHEAD_MS) / this.#meanRunMs);
    return Math.min(soon, this.#concurrency * MOST_AHEAD);
  }
}
