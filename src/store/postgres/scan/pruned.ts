import type { Clock } from '../../../clock.ts';
import { LARGEST_PART } from './scan-cursor.ts';

/** How often to begin at the start again; less often when that takes long. */
const FULL_LOOK_MS = 1_000;

/**
 * Up to which finishing time the jobs of each state have been pruned. A pruned row stays in the index until it is
 * vacuumed, so pruning goes on where it ended. A job may be committed late, so now and then it begins at the start. And
 * which partitions it has been through.
 */
export class Pruned {
  readonly #clock: Clock;
  readonly #until: Map<number, number> = new Map();
  #fullLookAt = 0;
  #lookingSince: number | null = null;
  /** The last partition that was looked at, and when to look at the next ones. */
  #partition = 0;
  #partitionsAt = 0;
  #partitionsSince = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(): void {
    const now = this.#clock.monotonic();
    if (now < this.#fullLookAt || this.#lookingSince !== null) return;
    this.#until.clear();
    this.#lookingSince = now;
  }

  until(state: number): number {
    return this.#until.get(state) ?? 0;
  }

  reached(state: number, finishedAt: number): void {
    this.#until.set(state, finishedAt);
  }

  end(): void {
    if (this.#lookingSince === null) return;
    const now = this.#clock.monotonic();
    this.#fullLookAt = now + Math.max(FULL_LOOK_MS, (now - this.#lookingSince) / LARGEST_PART);
    this.#lookingSince = null;
  }

  /** After which partition to look for empty ones; null when it is too early: jobs that are gone make looking slow. */
  beginPartitions(): number | null {
    this.#partitionsSince = this.#clock.monotonic();
    return this.#partitionsSince < this.#partitionsAt ? null : this.#partition;
  }

  endPartitions(reached: number): void {
    const now = this.#clock.monotonic();
    this.#partition = reached;
    this.#partitionsAt = now + (now - this.#partitionsSince) / LARGEST_PART;
  }
}
