import type { LimitKey } from '../../limit/limit.ts';
import type { JobType } from './job-types.ts';
import type { Partition } from './partitions.ts';

/** More than any worker holds; beyond it, settling looks the job up. */
const MOST_HELD = 50_000;

/** A row of the table `leases`: the jobs of one claim, queue and lane. */
export interface Lease {
  readonly id: number;
  /** How many of its jobs are not settled. */
  held: number;
}

/** What a settlement must know of a job to say where it waits next. */
export interface HeldJob {
  readonly partition: Partition;
  readonly jobType: JobType;
  readonly limits: readonly LimitKey[];
}

interface HeldRun extends HeldJob {
  readonly run: number;
  /** Null for a run that another process claimed. */
  readonly lease: Lease | null;
}

/**
 * The runs that were claimed here and are not settled. Only a hint, which saves a look-up per job, and tells when a row of
 * `leases` is no longer needed: the fence is in the write, and rows that stay are found when they are checked.
 */
export class Leases {
  readonly #held: Map<string, HeldRun> = new Map();
  #ended: number[] = [];

  hold(id: string, run: number, { partition, jobType, limits }: HeldJob, lease: Lease | null): void {
    if (this.#held.size >= MOST_HELD) this.#held.clear();
    this.#held.set(id, { partition, jobType, limits, run, lease });
  }

  get(id: string, run: number): HeldJob | undefined {
    const held = this.#held.get(id);
    return held?.run === run ? held : undefined;
  }

  /** This run is over, and what it did to the job is committed. */
  release(id: string, run: number): void {
    const held = this.#held.get(id);
    // Perhaps it has been claimed again meanwhile.
    if (held === undefined || held.run !== run) return;
    this.#held.delete(id);
    if (held.lease !== null && --held.lease.held === 0) this.#ended.push(held.lease.id);
  }

  /** Rows of which nothing is held any more. Each is answered once. */
  takeEnded(): number[] {
    const ended = this.#ended;
    if (ended.length > 0) this.#ended = [];
    return ended;
  }
}
