import type { GateEvent, GateKind, GateRef, GateReport, GateState, Spent } from '../gate/index.ts';

export { type GateKind, type GateRef, gateKinds } from '../gate/index.ts';

import type { Job, JobState, KeyLife, Lane, RunRecord } from '../job.ts';
import type { DeadReason, Decision } from '../retry/decision.ts';
import type { OutcomeKind, StoredError } from '../retry/outcome.ts';
import type { RetryPolicy } from '../retry/policy.ts';
import type { MisfirePolicy } from '../schedule/plan.ts';
import type { Timing } from '../schedule/timing.ts';
import type { Reader } from './aside.ts';
import type { ChangeAnswer, ChangeRequest, Operation } from './change.ts';
import type { ErrorGroup, ErrorGroupFilter } from './error-groups.ts';
import type { JobCount, JobFilter, JobList, JobSelection } from './selection.ts';
import type { RegisteredWorker, WorkerDescription } from './workers.ts';

export type { KnownJobs, Reader } from './aside.ts';
export type {
  ChangeAction,
  ChangeAnswer,
  ChangeRequest,
  Operation,
  OperationOptions,
  SkippedJob,
  SkipReason,
} from './change.ts';
export type { ErrorGroup, ErrorGroupFilter } from './error-groups.ts';
export type { JobCount, JobFilter, JobList, JobSelection } from './selection.ts';
export { type RegisteredWorker, SEEN_EVERY_MS, type WorkerDescription } from './workers.ts';

/**
 * What every store can do, in the words of the queue: no SQL and no driver type crosses this line.
 *
 * Rules that hold for all verbs:
 * - Time is the store's. A caller gives durations; due times and leases are reckoned from the store's clock.
 * - A write that was answered is durable. A write that failed has an unknown result, and may be sent again:
 *   every verb that writes is safe to repeat.
 * - Verbs take batches. One bad row of a batch never stops the others.
 */
export interface Store {
  readonly kind: string;
  /** Whether `onJobs` also tells what other processes did. Where it is false, callers ask again after a while. */
  readonly pushes: boolean;

  // Producing
  /** Stores jobs. Sending a job again under its id changes nothing; a key held by a live job yields that job. */
  enqueue(jobs: readonly NewJob[]): Promise<Enqueued[]>;

  // Working
  /**
   * Takes due jobs under a lease. `runs` and `attempts` rise in the same write: a crash is counted before it happens.
   *
   * Jobs wait in partitions: those of one queue, lane, priority and resource, and in the lanes `retry` and `redrive` also
   * of one job name. `fillQuotas` shares the places of a claim among queues and lanes; inside a lane the lowest priority
   * number comes first, and inside a priority `fillTurns` shares the places among the partitions that are admissible, the
   * least recently served first. Inside a partition jobs come in due order, then in the order of acceptance. Jobs that were
   * settled with an `aside` wait in partitions of their own, by name and that. A claim takes nothing from those that its
   * worker may not read (`mayRead`), and `nextDueAt`, `suspectsWait` and `gated` leave them out.
   */
  claim(request: ClaimRequest): Promise<Claim>;
  /**
   * Takes due jobs of one resource whose partitions are gated, as many as its gate admits, in one write with the gate. Lanes
   * and queues share places as in `claim`. An open gate gives one job, as a probe, drawn with `pickProbe` from the first
   * ten that are due. Takes nothing when the resource is not gated (any more): then `claim` gives its jobs.
   */
  claimGated(request: GatedClaimRequest): Promise<GatedClaim>;
  /**
   * Adds what workers saw to gates, and answers each gate as it is then; after those, the parents that this changed. A gate without a row is closed; a report that says
   * nothing new makes none. A report that is sent again counts again: a gate bears that.
   */
  report(reports: readonly WorkerReport[]): Promise<GateAnswer[]>;
  /** Extends leases and stores progress; tells which were lost and which should stop. */
  heartbeat(beats: readonly Heartbeat[]): Promise<HeartbeatAnswer[]>;
  /**
   * Ends runs. Only the holder of the fence changes anything; a repeated settlement is a no-op that answers `settled`.
   * A repeated crash is `stale`: two rescuers can settle the same one, and only the first may report it.
   */
  settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]>;
  /** Jobs whose lease has run out, oldest first, for a rescuer to settle as `crashed`. */
  expired(limit: number): Promise<ClaimedJob[]>;
  /** Stores the result of a once-only effect, under the fence. False when the lease was lost. */
  remember(fence: Fence, key: string, value: string): Promise<boolean>;
  /** All that was remembered for a job: key to JSON text. */
  recall(jobId: string): Promise<ReadonlyMap<string, string>>;
  /** Those of these jobs that run and should stop. */
  cancelRequested(ids: readonly string[]): Promise<string[]>;

  // Reading
  get(ids: readonly string[]): Promise<Job[]>;
  /**
   * Those of these jobs that have ended, or do not exist. With `watchMs`, the others are watched for that long: when one
   * ends, `onJobs` of the process that asked tells so, whichever process ended it, where the store `pushes`.
   */
  ended(ids: readonly string[], watchMs: number | null): Promise<EndedJob[]>;
  /** Newest first, by id or by acceptance: the two differ no more than producers' clocks do. */
  list(filter: JobFilter): Promise<JobList>;
  count(selection: JobSelection): Promise<JobCount>;
  /** Bulk actions, newest first. */
  operations(limit: number): Promise<Operation[]>;
  /** The ledger of one job, oldest run first. */
  runs(jobId: string): Promise<RunRecord[]>;
  stats(): Promise<StoreStats>;
  /** Gates that have a row: those that are not closed first, then by when they were last heard of. */
  gates(filter: GateFilter): Promise<StoredGate[]>;
  /** What happened to a gate, newest first. */
  gateHistory(gate: GateRef, limit: number): Promise<GateEvent[]>;
  queues(): Promise<QueueInfo[]>;
  /** Schedules by name, or with `soonest` those that have a next tick, the earliest first. */
  schedules(filter: ScheduleFilter): Promise<Schedules>;
  /** Workers that have registered and not stopped, in the order in which they started. */
  workers(): Promise<RegisteredWorker[]>;
  /** What jobs fail with: the groups with the most failing and dead jobs first. Its cost does not grow with the number of jobs. */
  errorGroups(filter: ErrorGroupFilter): Promise<ErrorGroup[]>;

  // Operating
  /** A waiting job ends at once; a running one is told through `onJobs`, and at the latest by its next heartbeat. */
  cancel(ids: readonly string[]): Promise<CancelAnswer[]>;
  /** Does the next part of a bulk action: cancel, run now, redrive or discard. See change.ts. */
  change(request: ChangeRequest): Promise<ChangeAnswer>;
  /**
   * Lets no waiting job of a queue or of a resource start before `until` (store time; null for good): its partitions, and
   * those made later, are not admissible until then. The jobs are neither read nor written. A later hold of the same target
   * replaces the earlier one; a job starts when neither its queue nor its resource is held.
   */
  hold(target: HoldTarget, until: number | null): Promise<void>;
  /** Takes a hold away. */
  release(target: HoldTarget): Promise<void>;
  /** Changes a gate by hand; makes its row when it has none. */
  changeGate(gate: GateRef, change: GateOrder, operator: string): Promise<GateAnswer>;
  /**
   * Writes or removes a schedule and stores jobs, all or nothing. Does nothing when the schedule is not in the version
   * that the caller has read. So of all workers that fire a tick, one does, and the tick is passed in the same write.
   */
  writeSchedule(write: ScheduleWrite): Promise<ScheduleWritten>;
  /**
   * Says that a worker lives, and what it is; null when it has stopped. A worker is listed from its first call on, and
   * forgotten an hour after its last one.
   */
  register(id: string, worker: WorkerDescription | null): Promise<void>;
  /**
   * Deletes up to `limit` finished jobs that outlived their retention, and gates that say nothing any more. Up to as many
   * jobs that have waited aside for too long go back among those that every worker may take.
   */
  prune(retention: Retention, limit: number): Promise<PruneAnswer>;

  /** For stores that can share a database, and so a transaction, with the caller's own data. */
  readonly transactions?: Transactions;

  // Living
  /** Calls back when work may have become claimable, or a schedule was written. A hint: it may come late, twice or never. */
  onWork(listener: () => void): Unsubscribe;
  /** Calls back when jobs have ended or should stop. A hint, like `onWork`. */
  onJobs(listener: JobsListener): Unsubscribe;
  close(): Promise<void>;
}

/** What waiting jobs have in common that are held back together. A paused queue is held for good. */
export type HoldTarget = { readonly queue: string } | { readonly resource: string };

/** At most this many bytes of payload travel in one claim, unless a single job is larger. */
export const CLAIM_BYTES: number = 8 * 1_048_576;

export type Unsubscribe = () => void;

export interface JobsListener {
  /** Jobs that have ended; at least those that are watched (see `Store.ended`). */
  readonly ended?: (ids: readonly string[]) => void;
  /** Running jobs that were cancelled. */
  readonly cancelling?: (ids: readonly string[]) => void;
}

/** How a job ended. Only what a caller that waits for it needs. */
export interface EndedJob {
  readonly id: string;
  readonly state: 'completed' | 'dead' | 'cancelled' | 'not-found';
  /** As `Settlement.result` was; null when there is none. */
  readonly result: string | null;
  readonly deadReason: DeadReason | null;
  readonly error: StoredError | null;
}

/** A database client inside a transaction: `pg`'s own, or an adapter around another library's. */
export interface TransactionClient {
  query(text: string, values: unknown[]): Promise<{ readonly rows: unknown[] }>;
}

export interface Transactions {
  /** Stores jobs as part of the caller's transaction: rolled back, they never existed. */
  enqueue(client: TransactionClient, jobs: readonly NewJob[]): Promise<Enqueued[]>;
  /**
   * Runs `work` and ends a run in one transaction. Null when the fence did not hold: then nothing was written, what
   * `work` wrote included. `settlement` is asked for when the work is done.
   */
  settleWith<Result>(
    work: (client: TransactionClient) => Promise<Result>,
    settlement: () => Settlement,
  ): Promise<{ readonly result: Result } | null>;
}

export interface NewJob {
  /** A UUID in lower case, made by the producer: so it can send the job again without doubling it. */
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  /** Where its retries wait, when not in `queue`. */
  readonly retryQueue: string | null;
  /** The gate it stands behind: a name, or `parent/key`. */
  readonly resource: string | null;
  readonly priority: number;
  /** JSON text as `JSON.stringify` writes it, so without line breaks. */
  readonly payload: string;
  readonly policy: RetryPolicy;
  /** First run this long from now, in store time; ignored when `dueAt` is given. */
  readonly delayMs: number;
  /** First run at this point in time. */
  readonly dueAt: number | null;
  readonly key: string | null;
  readonly keyLife: KeyLife;
  /** Of its definition, when that carries one. */
  readonly version?: number | undefined;
  /** Null for none, never empty. */
  readonly tags?: readonly string[] | null;
  /**
   * When a job that has never started holds the key, and holds it until its first start, this one replaces all of it but its
   * id: the payload, where it waits, and its due time. Sent again, it does so again.
   */
  readonly debounce?: Debounce;
}

export interface Debounce {
  /** A replaced job is not put off beyond this long after it was first enqueued; null for no bound. */
  readonly maxWaitMs: number | null;
}

export interface Enqueued {
  readonly id: string;
  /** True when the key was taken and `id` is the job that holds it. */
  readonly existed: boolean;
  /** True when that job has what was sent now, by `debounce`; left out when it stays as it was. */
  readonly replaced?: true;
}

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

/** What a worker saw of a gate; null only asks for the gate as it is now. */
export interface WorkerReport {
  readonly gate: GateRef;
  readonly report: GateReport | null;
  /** Who saw it, for the gate's history; gates themselves know workers by their keys. */
  readonly worker?: string;
}

export interface GateAnswer {
  readonly gate: GateRef;
  readonly state: GateState;
  /** Store time at which the gate was in this state. */
  readonly now: number;
  /** What this call changed; the caller tells it to the world. */
  readonly events: readonly GateEvent[];
}

export interface GateFilter {
  /** `waiting` of each answer is null: counting a million jobs takes a while. */
  readonly skipWaiting?: boolean;
  readonly kind?: GateKind;
  readonly name?: string;
  readonly limit: number;
}

export interface StoredGate {
  readonly gate: GateRef;
  readonly state: GateState;
  readonly now: number;
  /** Jobs that wait behind it; null for a soft gate, and when they were not counted. */
  readonly waiting: number | null;
}

/** open and close pin the gate; unpin gives it back to its rules; reset lets it forget what it saw. */
export const gateOrders = ['open', 'close', 'unpin', 'reset'] as const;
export type GateOrder = (typeof gateOrders)[number];

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
}

export interface ClaimedJob extends Fence {
  readonly name: string;
  /** Where it was claimed: of a retry, its retry queue. */
  readonly queue: string;
  /** Where it was enqueued, and where statistics count it. */
  readonly homeQueue: string;
  readonly resource: string | null;
  readonly lane: Lane;
  readonly priority: number;
  readonly payload: string;
  readonly policy: RetryPolicy;
  /** Attempts spent, this run included. */
  readonly attempts: number;
  readonly crashes: number;
  /** Of the definition with which it was enqueued; null when that carried none. */
  readonly version: number | null;
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

export interface CancelAnswer {
  readonly id: string;
  /** `cancelling`: it runs; its worker is told. */
  readonly result: 'cancelled' | 'cancelling' | 'already-ended' | 'not-found';
}

export interface PruneAnswer {
  /** How many jobs were deleted. */
  readonly jobs: number;
  /** False when another call would delete more, of jobs or of gates. */
  readonly isDone: boolean;
}

/** How long finished jobs and their ledgers are kept; null for ever. */
export interface Retention {
  readonly completedMs: number | null;
  readonly deadMs: number | null;
  readonly cancelledMs: number | null;
  /** How long a due job waits aside before it goes back among the jobs that every worker may take; undefined for ever. */
  readonly asideMs?: number;
}

/** What the jobs of a schedule have in common. */
export type JobTemplate = Omit<NewJob, 'id' | 'delayMs' | 'dueAt'>;

/** A stored rule that enqueues a job at each of its times. Stores keep it as JSON, and look only at the first three fields. */
export interface Schedule {
  readonly name: string;
  /** Another one with each write, made by the writer. */
  readonly version: string;
  /** The first tick that was not fired yet, in store time; null when there is none, and while it is paused. */
  readonly nextAt: number | null;
  readonly timing: Timing;
  readonly job: JobTemplate;
  readonly misfire: MisfirePolicy;
  readonly misfireLimit: number;
  readonly paused: boolean;
  /** The last tick that was fired. */
  readonly lastAt: number | null;
  /** A digest of the schedule as code last gave it; null when it was never given in code. */
  readonly code: string | null;
  /** When it was last set, paused or resumed. */
  readonly updatedAt: number;
}

export interface ScheduleFilter {
  readonly names?: readonly string[];
  /** Only those with a next tick, the earliest first, instead of all of them by name. */
  readonly soonest?: boolean;
  readonly limit: number;
  /** By name: continue after this one. */
  readonly after?: string;
}

export interface Schedules {
  /** Store time of this answer. */
  readonly now: number;
  readonly schedules: readonly Schedule[];
}

export interface ScheduleWrite {
  readonly name: string;
  /** The version that was read; null when there was no schedule of this name. */
  readonly from: string | null;
  /** The schedule as it is from now on; null removes it. */
  readonly to: Schedule | null;
  readonly jobs: readonly NewJob[];
}

export interface ScheduleWritten {
  /** False when the schedule was not in the version `from`: then nothing was written. */
  readonly written: boolean;
  readonly jobs: readonly Enqueued[];
}

export interface QueueInfo {
  readonly queue: string;
  readonly paused: boolean;
}

/** Totals since the store was made (they survive pruning), and how many jobs are in each state now. */
export interface StoreStats {
  readonly now: number;
  readonly rows: readonly StatsRow[];
}

export interface StatsRow {
  readonly queue: string;
  readonly name: string;
  readonly states: Readonly<Record<JobState, number>>;
  readonly totals: Readonly<Totals>;
}

export interface Totals {
  readonly enqueued: number;
  /** Finished runs by outcome. */
  readonly runs: Readonly<Record<OutcomeKind, number>>;
  /** Finished counted runs that were not a job's first attempt. */
  readonly retries: number;
  /** Those of them that completed. */
  readonly successfulRetries: number;
  /** Jobs that died, by reason. */
  readonly dead: Readonly<Record<DeadReason, number>>;
}
