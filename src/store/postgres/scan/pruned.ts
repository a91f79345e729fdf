import type { Clock } from '../../../clock.ts';
import { PruneCursors } from '../../retention.ts';
import { LARGEST_PART } from './scan-cursor.ts';

/** Finished jobs in the order they ended. */
export type FinishedPlace = readonly [finishedAt: number, id: string];

const OLDEST: FinishedPlace = [0, '00000000-0000-0000-0000-000000000000'];

/** How far pruning has come: in the finished jobs, and in the partitions. */
export class Pruned {
  readonly jobs: PruneCursors<FinishedPlace> = new PruneCursors<FinishedPlace>(OLDEST);
  readonly #clock: Clock;
  /** The last partition that was looked at, and when to look at the next ones. */
  #partition = 0;
  #partitionsAt = 0;
  #partitionsSince = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
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
