import type { Clock, Timer } from '../clock.ts';

/** Long enough that a person who looks after an alarm still sees what was. */
const WINDOW_MS = 150_000;

/**
 * The longest that the event loop was blocked in the last 2.5 to 5 minutes: while it is, no lease is renewed. Two windows follow
 * each other, so that nothing is stored per sample.
 */
export class LoopDelay {
  readonly #clock: Clock;
  #timer: Timer | null = null;
  #windowEndsAt = 0;
  #current = 0;
  #previous = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  start(): void {
    this.#windowEndsAt = this.#clock.monotonic() + WINDOW_MS;
    this.#timer = this.#clock.watchLoop?.((lateMs) => this.#sample(lateMs)) ?? null;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** In whole ms; null under a clock that does not measure it. */
  get longestMs(): number | null {
    return this.#timer === null ? null : Math.round(Math.max(this.#current, this.#previous));
  }

  #sample(lateMs: number): void {
    const now = this.#clock.monotonic();
    if (now >= this.#windowEndsAt) {
      this.#previous = this.#current;
      this.#current = 0;
      this.#windowEndsAt = now + WINDOW_MS;
    }
    this.#current = Math.max(this.#current, lateMs);
  }
}
