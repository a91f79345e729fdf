import type { GateEvent, Spent } from '../gate/index.ts';
import type { Lane } from '../job.ts';
import type { LimitKey } from '../limit/limit.ts';
import type { Decision } from '../retry/decision.ts';
import type { OutcomeKind, StoredError } from '../retry/outcome.ts';
import type { RetryPolicy } from '../retry/policy.ts';
import type { Reader } from './aside.ts';

/* What workers ask of a store and hear from it: claims, heartbeats, settlements. */

/** At most this many bytes of payload travel in one claim, unless a single job is larger. */
export const CLAIM_BYTES: number = 8 * 1_048_576;

/** The right to write about a run. A caller that cannot name all three is late. */
export interface Fence {
  readonly id: string;
  readonly run: number;
  readonly worker: string;
}

export interface ClaimRequest extends Reader {
  readonly worker: string;
  readonly leaseMs: number;
  /** At most this many in all. */
  readonly limit: number;
  /** Served in this order: first each queue its `share`, then what is left of `limit`. */
  readonly queues: readonly QueueQuota[];
}

/** How many of a claim's places each queue and lane may take; `fillQuotas` says how they combine. */
export interface QueueQuota {
  readonly queue: string;
  readonly share: number;
  /** Places of this queue kept for retries, while fresh work waits. */
  readonly retry: number;
  /** Places of this queue kept for redriven jobs, while fresh work waits. */
  readonly redrive: number;
  /**
   * Suspects are tried one at a time, so they are claimed alone: when this is 1, the queue gives one suspect and nothing
   * else, and none while another suspect of the queue is running, in whichever worker.
   */
  readonly suspect: number;
  /**
   * No more retries of this queue than this may run at once, suspects included, over all workers. While a suspect is due,
   * one of these places is kept for it, so that other retries cannot keep it from ever starting.
   */
  readonly maxRetriesInFlight: number | null;
}

export interface GatedClaimRequest extends ClaimRequest {
  readonly resource: string;
}

export interface GatedClaim {
  readonly jobs: ClaimedJob[];
  /** Store time of this claim. */
  readonly now: number;
  /** When this worker may ask again; null when only another state of the gate admits a job, or none is due. */
  readonly nextAt: number | null;
  /** What this claim changed; the caller tells it to the world. */
  readonly events: readonly GateEvent[];
}

/** At most this many resources are named by one claim. */
export const GATED_NAMED = 8;

export interface Claim {
  readonly jobs: ClaimedJob[];
  /** Store time of this claim. */
  readonly now: number;
  /**
   * When the next job of these queues may start: it falls due, or its partition becomes admissible, also to `claimGated`. `now` when the claim
   * stopped at CLAIM_BYTES and left due jobs behind. Null when none waits or the claim was filled. A due job that
   * `maxRetriesInFlight` holds back is not counted; whether the jobs behind it in its partition are is left to the store.
   */
  readonly nextDueAt: number | null;
  /** True when a due suspect waits in one of these queues that a claim for suspects would take now. */
  readonly suspectsWait: boolean;
  /**
   * Resources whose gated partitions in these queues have a due job that `claimGated` may admit now: at most GATED_NAMED,
   * those that have waited longest first. `claim` itself takes nothing from a gated partition.
   */
  readonly gated: readonly string[];
  /** True when jobs wait in these queues behind limits, which `claimLimited` would take: `claim` takes none of them. */
  readonly limited: boolean;
}

export interface ClaimedJob extends Fence {
  readonly name: string;
  /** Where it was claimed: of a retry, its retry queue. */
  readonly queue: string;
  /** Where it was enqueued, and where statistics count it. */
  readonly homeQueue: string;
  readonly resource: string | null;
  readonly limits: readonly LimitKey[];
  readonly lane: Lane;
  readonly priority: number;
  readonly payload: string;
  readonly policy: RetryPolicy;
  /** Attempts spent, this run included. */
  readonly attempts: number;
  readonly crashes: number;
  /** Runs before this one, since it was enqueued or redriven, that did not count: deferred or released. */
  readonly givenBack: number;
  /** When the first of its deferred runs ended since it was enqueued, redriven or last snoozed; null when there is none. */
  readonly deferredSince: number | null;
  /** Runs right before this one that were snoozed. */
  readonly snoozes: number;
  /** Of the definition with which it was enqueued; null when that carried none. */
  readonly version: number | null;
  /** As `NewJob.trace` was; null for none. */
  readonly trace: string | null;
  readonly enqueuedAt: number;
  /** When it fell due for this run. */
  readonly dueAt: number;
  /** When it first could have run since it was enqueued or redriven, or since a worker that knows it last had it. */
  readonly availableAt: number;
  /** The first start since it was enqueued or redriven; a run that was handed back does not count as one. */
  readonly firstStartedAt: number;
  readonly claimedAt: number;
  readonly leaseEndsAt: number;
  /** The delay chosen before this run; decorrelated jitter grows from it. */
  readonly previousDelayMs: number | null;
  readonly lastError: StoredError | null;
  readonly cancelRequested: boolean;
  /** What the last heartbeat said of it; false before the first. */
  readonly alone: boolean;
  /** Under which epoch of its gate it was admitted; 0 by `claim`. It is not stored. */
  readonly gateEpoch: number;
  /** Attempts that an outage may have cost, as the last settlement left them. */
  readonly spent: Spent | null;
}

export interface Heartbeat extends Fence {
  readonly leaseMs: number;
  /** Whether no other job runs beside it in its process: what its crash would prove. Undefined leaves it as it was. */
  readonly alone?: boolean;
  /** JSON text; undefined leaves the stored progress alone. */
  readonly progress?: string;
}

export type HeartbeatAnswer =
  | { readonly kept: true; readonly leaseEndsAt: number; readonly cancelRequested: boolean }
  | { readonly kept: false };

/**
 * The end of a run. Beyond the fence, a `crashed` one only lands while the lease is expired: a worker
 * that comes back in time keeps its run.
 */
export interface Settlement extends Fence {
  readonly outcome: OutcomeKind;
  readonly decision: Decision;
  readonly error: StoredError | null;
  /** What a gate makes of the job's attempts; undefined leaves them, and the note, as they are. */
  readonly refund?: Refund;
  /** What a completed run returned, as `encodeResult` wrote it. */
  readonly result?: string;
  /** JSON text: progress that no heartbeat has stored. */
  readonly progress?: string;
  /** JSON text: the last lines that the run logged, as `parseRunLog` (../run-log.ts) reads them. */
  readonly log?: string;
  /** In store time, as the worker reckons it from the claim. The next due time is the store's own. */
  readonly startedAt: number;
  readonly endedAt: number;
}

export interface Refund {
  /** Attempts of earlier runs that are given back. */
  readonly attempts: number;
  /** The note that the job keeps from now on. */
  readonly spent: Spent | null;
}

/**
 * `cancelled`: the run is on the ledger as it was sent, but a cancel had come in meanwhile, so the job has ended as
 * cancelled instead of waiting again.
 */
export type SettleAnswer = 'settled' | 'cancelled' | 'stale';
