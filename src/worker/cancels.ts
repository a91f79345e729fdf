import type { Clock, Timer } from '../clock.ts';
import type { ActiveJob } from './active-job.ts';
import type { ActiveJobs } from './active-jobs.ts';

/**
 * Brings cancels to the jobs of a worker as soon as it is told of them, without waiting for the next heartbeat. A cancel may
 * arrive before the answer to the claim of its job does; so those of unknown jobs are remembered for a while.
 */
export class Cancels {
  readonly #clock: Clock;
  readonly #jobs: ActiveJobs;
  readonly #rememberedMs: number;
  readonly #early: Set<string> = new Set();
  #forget: Timer | null = null;

  constructor(clock: Clock, jobs: ActiveJobs, rememberedMs: number) {
    this.#clock = clock;
    this.#jobs = jobs;
    this.#rememberedMs = rememberedMs;
  }

  told(ids: readonly string[]): void {
    if (ids.length === 0) return;
    const unknown = new Set(ids);
    for (const job of this.#jobs.list()) if (unknown.delete(job.lease.job.id)) job.onCancel();
    for (const id of unknown) this.#early.add(id);
    if (this.#early.size > 0) this.#forgetLater();
  }

  /** When a claim has brought a job. */
  claimed(job: ActiveJob): void {
    if (this.#early.size > 0 && this.#early.delete(job.lease.job.id)) job.onCancel();
  }

  stop(): void {
    this.#forget?.cancel();
  }

  #forgetLater(): void {
    this.#forget ??= this.#clock.after(this.#rememberedMs, () => {
      this.#forget = null;
      this.#early.clear();
    });
  }
}
