import { type Clock, idMaker, inNextTurn, type Timer } from '../clock.ts';
import { checkInteger, readOptions } from '../config.ts';
import { ConfigError } from '../errors.ts';
import { seededRandom } from '../seeded-random.ts';
import { Heap } from '../store/memory/heap.ts';

/** 2026-01-01T00:00:00Z: a fixed start, so that a failing test shows the same times in every run. */
const DEFAULT_START = 1_767_225_600_000;
/** The last time a Date can hold. */
const LAST_DATE = 8.64e15;

/** A timer that sets itself again with no delay would otherwise keep `advance` busy for ever. */
const MOST_TIMERS_IN_ONE_INSTANT = 100_000;

/** Ids draw from their own stream: making one more id must not shift every later random number. */
const ID_STREAM = 0x9e3779b9;

export interface VirtualClockOptions {
  /** Wall-clock time at the start, in ms since the epoch. */
  readonly startAt?: number;
  /** The same seed gives the same random numbers and ids. */
  readonly seed?: number;
}

interface VirtualTimer extends Timer {
  readonly dueAt: number;
  readonly order: number;
  readonly action: () => void;
}

/**
 * A clock that stands still until it is told to move.
 *
 * @example
 * const clock = new VirtualClock({ seed: 7 });
 * clock.after(500, () => console.log('half a second later'));
 * await clock.advance(1_000);
 */
export class VirtualClock implements Clock {
  readonly #random: () => number;
  readonly #newId: () => string;
  readonly #timers: Heap<VirtualTimer> = new Heap(
    (a, b) => a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order),
  );
  #monotonic = 0;
  #wallAhead: number;
  #timersMade = 0;
  #advancing = false;

  constructor(options: VirtualClockOptions = {}) {
    const given = readOptions(options, ['startAt', 'seed'], 'VirtualClock');
    const seed = checkInteger(given.seed ?? 1, 'VirtualClock: seed');
    const idBits = seededRandom(seed ^ ID_STREAM);
    this.#wallAhead = checkInteger(given.startAt ?? DEFAULT_START, 'VirtualClock: startAt', { min: 0, max: LAST_DATE });
    this.#random = seededRandom(seed);
    this.#newId = idMaker(
      () => this.now(),
      (count) => Uint8Array.from({ length: count }, () => Math.floor(idBits() * 256)),
    );
  }

  /** How many timers are set and have not fired. */
  get pending(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#monotonic + this.#wallAhead;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  random(): number {
    return this.#random();
  }

  newId(): string {
    return this.#newId();
  }

  after(delayMs: number, action: () => void): Timer {
    // `|| 0` because NaN would never compare as due, nor as later than anything.
    const dueAt = this.#monotonic + Math.max(0, delayMs || 0);
    const timer: VirtualTimer = {
      dueAt,
      order: this.#timersMade++,
      action,
      cancel: () => void this.#timers.remove(timer),
    };
    this.#timers.add(timer);
    return timer;
  }

  /**
   * Moves wall and monotonic time on together and fires the timers on the way: by due time, then in the
   * order they were set. Between two timers, all code that waits on promises goes as far as it can.
   */
  async advance(ms: number): Promise<void> {
    if (!(ms >= 0 && ms < Number.POSITIVE_INFINITY)) {
      throw new ConfigError(`advance expects 0 or more ms, got ${ms}; step() moves the wall clock back.`);
    }
    if (this.#advancing) throw new ConfigError('advance is under way already: await it before advancing again.');
    this.#advancing = true;
    try {
      await this.#advanceTo(this.#monotonic + ms);
    } finally {
      this.#advancing = false;
    }
  }

  /** Sets the wall clock, as an administrator or NTP would; monotonic time and timers do not notice. */
  set(time: number): void {
    this.#wallAhead = time - this.#monotonic;
  }

  /** Steps the wall clock by this much, back when negative. */
  step(ms: number): void {
    this.#wallAhead += ms;
  }

  async #advanceTo(target: number): Promise<void> {
    let firedNow = 0;
    await letPromisesRun();
    for (let next = this.#timers.first(); next && next.dueAt <= target; next = this.#timers.first()) {
      firedNow = next.dueAt > this.#monotonic ? 1 : firedNow + 1;
      if (firedNow > MOST_TIMERS_IN_ONE_INSTANT) {
        throw new ConfigError(
          `More than ${MOST_TIMERS_IN_ONE_INSTANT} timers fired in one instant: does one set itself again with no delay?`,
        );
      }
      this.#timers.remove(next);
      this.#monotonic = next.dueAt;
      next.action();
      await letPromisesRun();
    }
    this.#monotonic = target;
  }
}

let turnsUnderWay = 0;

/** How many turns of the event loop the virtual clocks of this process wait for. */
export function pendingTurns(): number {
  return turnsUnderWay;
}

/** One turn of the event loop: by then no promise callback is left. Counting `await`s would only guess. */
function letPromisesRun(): Promise<void> {
  turnsUnderWay++;
  return new Promise((resolve) =>
    inNextTurn(() => {
      turnsUnderWay--;
      resolve();
    }),
  );
}
