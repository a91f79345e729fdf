import type { Lease } from './lease.ts';
import type { Run } from './run.ts';

/** A claimed job on its way through the worker: buffered, then running, then settling. */
export class Hand {
  readonly lease: Lease;
  run: Run | null = null;
  /** By the worker's own clock. */
  settlingSince: number | null = null;
  cancelRequested: boolean;
  // In store time.
  startedAt = 0;
  endedAt = 0;
  /** Among the hands of its worker. */
  place = 0;

  constructor(lease: Lease) {
    this.lease = lease;
    this.cancelRequested = lease.job.cancelRequested;
  }

  // What the heart needs of it.

  get unsentProgress(): string | null {
    return this.run?.unsentProgress ?? null;
  }

  set unsentProgress(text: string | null) {
    if (this.run) this.run.unsentProgress = text;
  }

  onLost(): void {
    // While it settles, the settlement itself will learn whether the lease was lost or the job has just ended.
    if (this.settlingSince !== null || this.run?.recorded) return;
    this.lease.lose();
    this.run?.stop('lease-lost');
  }

  onCancel(): void {
    this.cancelRequested = true;
    this.run?.stop('cancel');
  }
}
