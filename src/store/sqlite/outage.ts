import type { Clock } from '../../clock.ts';

/**
 * No lease runs out in a stretch shorter than this: the shortest lease lasts a second, and is renewed when two thirds of
 * it are left.
 */
const SHORTEST_MS = 250;

/**
 * Notices when no process can write, because a program holds the file's lock: this process finds the lock taken, and for a
 * while sees no commit of another one. While many processes merely take turns at the lock, their commits tell.
 */
export class Outage {
  readonly #clock: Clock;
  #committedAt: number;
  #since: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#committedAt = clock.monotonic();
  }

  /** A commit, by this process or by another one, was made since the last call of any method here. */
  committed(): void {
    this.#committedAt = this.#clock.monotonic();
  }

  /** The lock was taken, and nothing was committed since the last call of any method here. */
  busy(): void {
    if (this.#clock.monotonic() - this.#committedAt >= SHORTEST_MS) this.#since = this.#committedAt;
  }

  /** How long ago the last outage began; 0 when there was none. */
  get awayMs(): number {
    return this.#since === null ? 0 : this.#clock.monotonic() - this.#since;
  }
}
