import type { Clock } from '../clock.ts';
import type { ClaimedJob } from '../store/store.ts';

/**
 * The timed right to run one job. It reckons with the worker's monotonic clock from the moment before the store was
 * asked, so it never ends later here than it does in the store; and it turns that clock into store time, so no
 * worker's wall clock is ever used.
 */
export class Lease {
  /** As it was claimed, but for attempts that were given back since. */
  job: ClaimedJob;
  readonly leaseMs: number;
  readonly #clock: Clock;
  readonly #claimedAt: number;
  #endsAt: number;
  #lost = false;
  /** Set by `extend`: heartbeats until then must not shorten it. */
  #extendedTo = 0;

  constructor(job: ClaimedJob, leaseMs: number, askedAt: number, clock: Clock) {
    this.job = job;
    this.leaseMs = leaseMs;
    this.#clock = clock;
    this.#claimedAt = clock.monotonic();
    this.#endsAt = askedAt + leaseMs;
  }

  /** The time in the store, as near as this worker can know it. */
  get storeNow(): number {
    return Math.round(this.job.claimedAt + (this.#clock.monotonic() - this.#claimedAt));
  }

  get ended(): boolean {
    return this.leftMs <= 0;
  }

  get leftMs(): number {
    return this.#lost ? 0 : this.#endsAt - this.#clock.monotonic();
  }

  get lost(): boolean {
    return this.#lost;
  }

  /** How long the next heartbeat should extend it. */
  get wantedMs(): number {
    return Math.max(this.leaseMs, Math.ceil(this.#extendedTo - this.#clock.monotonic()));
  }

  want(ms: number): void {
    this.#extendedTo = this.#clock.monotonic() + ms;
  }

  renewed(askedAt: number, ms: number): void {
    this.#endsAt = askedAt + ms;
  }

  lose(): void {
    this.#lost = true;
  }
}
