import type { Refund } from '../store/store.ts';
import type { Lease } from './lease.ts';
import type { Run } from './run.ts';

/** `ActiveJobs` says what each state means and which way a job goes through them. */
export type ActiveState = 'buffered' | 'running' | 'settling' | 'gone';

/** What a job that has started needs of its run. A run elsewhere, behind the HTTP API, has the same. */
export type ActiveRun = Pick<Run, 'unsentProgress' | 'result' | 'logText' | 'recorded' | 'timedOut' | 'span' | 'stop'>;

/** A job that a worker holds a lease for. Only `ActiveJobs` changes `state` and `index`. */
export class ActiveJob {
  readonly lease: Lease;
  state: ActiveState = 'buffered';
  run: ActiveRun | null = null;
  /** By the worker's own clock. */
  settlingSince: number | null = null;
  cancelRequested: boolean;
  /** What its gate gave back before it started. */
  refund: Refund | undefined = undefined;
  /** A trial has waited for this job to end, and it did not: later trials start beside it. */
  outlastedTrial = false;
  // In store time.
  startedAt = 0;
  endedAt = 0;
  /** Where it stands in the list of its worker. */
  index = 0;

  constructor(lease: Lease) {
    this.lease = lease;
    this.cancelRequested = lease.job.cancelRequested;
  }

  /** The resource whose gate may still keep it from starting; null when it has none, or when the gate has admitted this very job. */
  get behind(): string | null {
    const { resource, gateEpoch } = this.lease.job;
    return gateEpoch === 0 ? resource : null;
  }

  // What the LeaseRenewer needs of it.

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
