import type { Clock, Timer } from '../clock.ts';
import { partsOf } from '../parts.ts';
import type { Heartbeat, HeartbeatAnswer, Store } from '../store/store.ts';
import type { Lease } from './lease.ts';

/** Three chances before a lease runs out. */
const RENEWALS_PER_LEASE = 3;
/** Progress does not wait for the next regular renewal, but does not cause a write per call either. */
const SOON_MS = 500;
/** Progress travels with heartbeats, so a call is bounded in bytes; one without progress is this large. */
const HEARTBEAT_BYTES = 200;
const LARGEST_CALL_BYTES = 4 * 1_048_576;

/** One active job, as the renewer sees it. */
export interface Renewable {
  readonly lease: Lease;
  /** JSON text that the store has not got yet. */
  unsentProgress: string | null;
  onLost(): void;
  onCancel(): void;
}

/** Renews all leases of a worker together, three times per lease, and passes on what the store says about them. */
export class LeaseRenewer {
  readonly #store: Pick<Store, 'heartbeat'>;
  readonly #clock: Clock;
  readonly #renewable: () => readonly Renewable[];
  readonly #everyMs: number;
  readonly #onError: (error: unknown) => void;
  #timer: Timer | null = null;
  #soon: Timer | null = null;
  #stopped = false;

  constructor(
    store: Pick<Store, 'heartbeat'>,
    clock: Clock,
    leaseMs: number,
    renewable: () => readonly Renewable[],
    onError: (error: unknown) => void,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#renewable = renewable;
    this.#everyMs = leaseMs / RENEWALS_PER_LEASE;
    this.#onError = onError;
  }

  start(): void {
    if (this.#stopped) return;
    this.#timer = this.#clock.after(this.#everyMs, () => {
      // The next renewal does not wait for this one: a call that hangs must not end all leases.
      this.start();
      this.#renewAll();
    });
  }

  /** Renews within a moment, for progress. */
  renewSoon(): void {
    if (this.#soon !== null || this.#stopped) return;
    this.#soon = this.#clock.after(SOON_MS, () => {
      this.#soon = null;
      this.#renewAll();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#soon?.cancel();
  }

  /** False when the lease was lost. `alone` says whether another job runs beside it; only this call writes that. */
  async renew(job: Renewable, alone?: boolean): Promise<boolean> {
    return this.#send([job], alone === undefined ? {} : { alone });
  }

  /** False when any of the leases was lost. */
  async #send(jobs: readonly Renewable[], more: Pick<Heartbeat, 'alone'> = {}): Promise<boolean> {
    const askedAt = this.#clock.monotonic();
    const heartbeats = jobs.map((job) => ({ ...heartbeatOf(job), ...more }));
    const answers = await this.#store.heartbeat(heartbeats);
    let kept = true;
    for (const [index, job] of jobs.entries()) {
      const answer = answers[index] as HeartbeatAnswer;
      const { leaseMs, progress } = heartbeats[index] as Heartbeat;
      if (!answer.kept) {
        kept = false;
        job.onLost();
        continue;
      }
      job.lease.renewed(askedAt, leaseMs);
      if (job.unsentProgress === progress) job.unsentProgress = null;
      if (answer.cancelRequested) job.onCancel();
    }
    return kept;
  }

  #renewAll(): void {
    const bytesOf = ({ unsentProgress }: Renewable): number => HEARTBEAT_BYTES + (unsentProgress?.length ?? 0);
    const bounds = { maxBytes: LARGEST_CALL_BYTES, bytesOf };
    for (const part of partsOf(this.#renewable(), bounds)) this.#send(part).catch(this.#onError);
  }
}

function heartbeatOf({ lease, unsentProgress }: Renewable): Heartbeat {
  const { id, run, worker } = lease.job;
  return { id, run, worker, leaseMs: lease.wantedMs, ...(unsentProgress === null ? {} : { progress: unsentProgress }) };
}
