import type { Clock, Timer } from '../../clock.ts';

/** The first notifications are this far apart: as far as all others of a process (wake.ts). */
const SHORTEST_PAUSE_MS = 10;
/** Later ones wait for this part of the time since the last enqueue, so that a long transaction costs few of them. */
const PART_OF_AGE = 0.1;
/** Jobs of a transaction that stays open for longer are found by polling. */
const LONGEST_MS = 3_000;

/**
 * Notifications after callers' transactions that enqueued jobs and carry no NOTIFY of their own, because the process had
 * sent too many. This process is not told when such a transaction commits, so it notifies repeatedly: every 10 ms
 * at first, and then at growing distances, until 3 s after the last such enqueue. A job is found at most 10 ms, or a
 * tenth of its transaction's length, after the COMMIT. All transactions share one timer.
 */
export class TrailingNotifications {
  readonly #clock: Clock;
  readonly #send: () => void;
  #timer: Timer | null = null;
  #dueAt = 0;
  #lastEnqueueAt = 0;

  constructor(clock: Clock, send: () => void) {
    this.#clock = clock;
    this.#send = send;
  }

  /** A transaction has enqueued without a NOTIFY. */
  start(): void {
    const now = this.#clock.monotonic();
    this.#lastEnqueueAt = now;
    // A timer that is due soon stays: enqueues that follow each other quickly would put it off for ever.
    if (this.#timer !== null && this.#dueAt <= now + SHORTEST_PAUSE_MS) return;
    this.#timer?.cancel();
    this.#schedule(now);
  }

  /** Answers whether more notifications were to come. */
  cancel(): boolean {
    const wereToCome = this.#timer !== null;
    this.#timer?.cancel();
    this.#timer = null;
    return wereToCome;
  }

  #schedule(now: number): void {
    const pauseMs = Math.max(SHORTEST_PAUSE_MS, (now - this.#lastEnqueueAt) * PART_OF_AGE);
    this.#dueAt = now + pauseMs;
    this.#timer = this.#clock.after(pauseMs, () => this.#onDue());
  }

  #onDue(): void {
    this.#timer = null;
    this.#send();
    const now = this.#clock.monotonic();
    if (now - this.#lastEnqueueAt < LONGEST_MS) this.#schedule(now);
  }
}
