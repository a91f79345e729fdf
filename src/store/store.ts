import type { GateEvent, GateRef } from '../gate/index.ts';

export { type GateKind, type GateRef, gateKinds } from '../gate/index.ts';

import type { JobState, KeyLife, RunRecord } from '../job.ts';
import type { LimitAction, LimitKey } from '../limit/limit.ts';
import type { DeadReason } from '../retry/decision.ts';
import type { OutcomeKind, StoredError } from '../retry/outcome.ts';
import type { RetryPolicy } from '../retry/policy.ts';
import type { RunLog } from '../run-log.ts';
import type { MisfirePolicy } from '../schedule/plan.ts';
import type { Timing } from '../schedule/timing.ts';
import type { ChangeAnswer, ChangeRequest, Operation, Order } from './change.ts';
import type { ErrorGroup, ErrorGroupFilter } from './error-groups.ts';
import type { ErrorHistoryRequest, StoreErrorHistory } from './error-history.ts';
import type { ForecastRequest, StoreForecast } from './forecast.ts';
import type { GateAnswer, GateFilter, GateOrder, StoredGate, WorkerReport } from './gate-verbs.ts';
import type { HistoryRequest, StoreHistory } from './history.ts';
import type { LedgerPage, LedgerRequest } from './ledger.ts';
import type {
  LimitedClaim,
  LimitedClaimRequest,
  LimitFilter,
  LimitInfo,
  LimitKeyFilter,
  LimitKeyInfo,
  LimitWrite,
  PermitAnswer,
  PermitRequest,
} from './limit-verbs.ts';
import type {
  Claim,
  ClaimedJob,
  ClaimRequest,
  Fence,
  GatedClaim,
  GatedClaimRequest,
  Heartbeat,
  HeartbeatAnswer,
  SettleAnswer,
  Settlement,
} from './run-verbs.ts';
import type { JobCount, JobFilter, JobList, JobSelection } from './selection.ts';
import type { RegisteredWorker, WorkerDescription } from './workers.ts';

export { type KnownJobs, type Reader, rejectedKind } from './aside.ts';
export type {
  ChangeAction,
  ChangeAnswer,
  ChangeRequest,
  Operation,
  OperationOptions,
  Order,
  SkippedJob,
  SkipReason,
} from './change.ts';
export type { ErrorGroup, ErrorGroupFilter } from './error-groups.ts';
export type { ErrorHistoryRequest, StoredErrorSeries, StoreErrorHistory } from './error-history.ts';
export type { Counted, ForecastRequest, LaneBacklog, QueueLoad, StoreForecast, UpcomingJobs } from './forecast.ts';
export * from './gate-verbs.ts';
export type { HistoryCounts, HistoryRequest, StoreHistory } from './history.ts';
export type { LedgerJob, LedgerPage, LedgerRequest, LedgerRun } from './ledger.ts';
export * from './limit-verbs.ts';
export * from './run-verbs.ts';
export type { JobCount, JobFilter, JobList, JobSelection } from './selection.ts';
export {
  endangersLeases,
  type HttpWorker,
  LOST_AFTER_MS,
  type RegisteredWorker,
  SEEN_EVERY_MS,
  SILENT_AFTER_MS,
  takesJob,
  type WorkerDescription,
  type WorkerState,
} from './workers.ts';

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
  /**
   * Stores jobs. Sending a job again under its id changes nothing; a key that is held yields the job that took it. That job
   * may have ended, or even be gone, when the key is held for longer than the job lives.
   */
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
   * Takes due jobs that stand behind limits, as many as these let start. Their partitions are those of one queue, lane,
   * priority, resource and list of limits and keys, in the lanes `retry` and `redrive` also of one name. They share places
   * as in `claim`, so among the keys of one priority the least recently served comes first. A gated partition is left to
   * `claimGated`, which asks the limits too; suspects are left to `claim`, whose trials do not ask them, but count.
   */
  claimLimited(request: LimitedClaimRequest): Promise<LimitedClaim>;
  /** Takes `cost` starts of a key's rate for something that a handler does. Takes nothing when they are not all there. */
  permit(request: PermitRequest): Promise<PermitAnswer>;
  /**
   * Adds what workers saw to gates, and answers each gate as it is then; after those, the parents that this changed. A gate without a row is closed; a report that says
   * nothing new makes none. A report that is sent again counts again: a gate bears that.
   */
  report(reports: readonly WorkerReport[]): Promise<GateAnswer[]>;
  /** Extends leases and stores progress; tells which were lost and which should stop. */
  heartbeat(beats: readonly Heartbeat[]): Promise<HeartbeatAnswer[]>;
  /**
   * Ends runs. Only the holder of the fence changes anything; a repeated settlement is a no-op that answers `settled`.
   * A repeated crash is `stale`: two rescuers can settle the same one, and only the first may report it. A settlement that buries a job
   * with `onDead` stores `reactionTo` it in the same write.
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
  /** In the order asked for. Like `list`, it may stop early; `getAll` goes on. */
  get(ids: readonly string[]): Promise<JobList>;
  /**
   * Those of these jobs that have ended, or do not exist; when their results are more than an answer carries (see page.ts), some
   * of them, and the next call tells others. With `watchMs`, the others are watched for that long: when one
   * ends, `onJobs` of the process that asked tells so, whichever process ended it, where the store `pushes`.
   */
  ended(ids: readonly string[], watchMs: number | null): Promise<EndedJob[]>;
  /**
   * Newest first, by id or by acceptance: the two differ no more than producers' clocks do. Stops where the jobs carry as much
   * as one answer may, and says so with `stoppedAfter`.
   */
  list(filter: JobFilter): Promise<JobList>;
  count(selection: JobSelection): Promise<JobCount>;
  /** The audit: bulk actions and other orders of operators, newest first. */
  operations(limit: number): Promise<Operation[]>;
  /** The ledger of one job, oldest run first. */
  runs(jobId: string): Promise<RunRecord[]>;
  /**
   * What runs of one job logged, newest run first: of at most `limit` runs. A run that logged nothing, or crashed, has none.
   * Apart from `runs`, whose readers are many and need no log.
   */
  logs(jobId: string, limit: number): Promise<RunLog[]>;
  /**
   * The ledgers of many ended jobs, in pages or as a random part, for statistics. It reads rows that no longer change, and
   * takes no lock that another verb waits for. See ledger.ts.
   */
  ledger(request: LedgerRequest): Promise<LedgerPage>;
  stats(): Promise<StoreStats>;
  /** What waits, when it falls due, and how fast jobs come and end. Reads no more rows than asked for: see forecast.ts. */
  forecast(request: ForecastRequest): Promise<StoreForecast>;
  /** How many runs ended, how, and how long they took, step by step. It outlives the ledger. See history.ts. */
  history(request: HistoryRequest): Promise<StoreHistory>;
  /** Gates that have a row: those that are not closed first, then by when they were last heard of. */
  gates(filter: GateFilter): Promise<StoredGate[]>;
  /** What happened to a gate, newest first. */
  gateHistory(gate: GateRef, limit: number): Promise<GateEvent[]>;
  queues(): Promise<QueueInfo[]>;
  /** Limits by name. */
  limits(filter: LimitFilter): Promise<LimitInfo[]>;
  /** Keys of a limit: those with an operator's rule first, then by how many of their jobs wait, most first. */
  limitKeys(limit: string, filter: LimitKeyFilter): Promise<LimitKeyInfo[]>;
  /** Schedules by name, or with `soonest` those that have a next tick, the earliest first. */
  schedules(filter: ScheduleFilter): Promise<Schedules>;
  /** Workers that have registered and not stopped, in the order in which they started. */
  workers(): Promise<RegisteredWorker[]>;
  /** What jobs fail with: the groups with the most failing and dead jobs first. Its cost does not grow with the number of jobs. */
  errorGroups(filter: ErrorGroupFilter): Promise<ErrorGroup[]>;
  /** How many runs failed with which kind of error, step by step. It outlives jobs and groups. See error-history.ts. */
  errorHistory(request: ErrorHistoryRequest): Promise<StoreErrorHistory>;

  // Operating. With `order`, an operator says so: the same transaction leaves its row in the audit (orders.ts).
  /** A waiting job ends at once; a running one is told through `onJobs`, and at the latest by its next heartbeat. */
  cancel(ids: readonly string[], order?: Order): Promise<CancelAnswer[]>;
  /** Does the next part of a bulk action: cancel, run now, redrive or discard. See change.ts. */
  change(request: ChangeRequest): Promise<ChangeAnswer>;
  /**
   * Lets no waiting job of a queue or of a resource start before `until` (store time; null for good): its partitions, and
   * those made later, are not admissible until then. The jobs are neither read nor written. A later hold of the same target
   * replaces the earlier one; a job starts when neither its queue nor its resource is held.
   */
  hold(target: HoldTarget, until: number | null, order?: Order): Promise<void>;
  /** Takes a hold away. */
  release(target: HoldTarget, order?: Order): Promise<void>;
  /** Changes a gate by hand; makes its row when it has none. */
  changeGate(gate: GateRef, change: GateOrder, operator: string, order?: Order): Promise<GateAnswer>;
  /** Changes what limits allow, for jobs that start from now on: those that run go on. */
  writeLimits(writes: readonly LimitWrite[], order?: Order): Promise<void>;
  /**
   * Writes or removes a schedule and stores jobs, all or nothing. Does nothing when the schedule is not in the version
   * that the caller has read. So of all workers that fire a tick, one does, and the tick is passed in the same write.
   */
  writeSchedule(write: ScheduleWrite, order?: Order): Promise<ScheduleWritten>;
  /**
   * Says that a worker lives, and what it is; null when it has stopped. A worker is listed from its first call on, and
   * forgotten an hour after its last one.
   */
  register(id: string, worker: WorkerDescription | null): Promise<void>;
  /** The stored rules of how long finished jobs are kept, in no order. */
  retention(): Promise<RetentionRule[]>;
  /** Changes these rules. One from code only makes a stored one of code longer: see retention.ts. */
  writeRetention(writes: readonly RetentionWrite[], order?: Order): Promise<void>;
  /**
   * Deletes up to `limit` finished jobs that outlived their retention, gates that say nothing any more, and keys whose window is over. Up to as many
   * jobs that were due aside for `asideMs` (null: none) go back among those that every worker may take.
   */
  prune(limit: number, asideMs?: number | null): Promise<PruneAnswer>;

  /**
   * Adds runs that have ended to the history and to that of errors, each exactly once: a bounded number of them. Any number of processes may call it
   * every so often; one at a time does it. Runs of a job that is deleted before are added when it is.
   */
  rollUp(): Promise<RolledUp>;

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

export type Unsubscribe = () => void;

export interface JobsListener {
  /** Jobs that have ended; at least those that are watched (see `Store.ended`). */
  readonly ended?: (ids: readonly string[]) => void;
  /** Running jobs that were cancelled. */
  readonly cancelling?: (ids: readonly string[]) => void;
  /** The connection was cut and is there again: what was told meanwhile has been missed. */
  readonly missed?: () => void;
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
  /** `runNow` of these jobs as part of the caller's transaction: rolled back, it was never ordered. */
  runNow(client: TransactionClient, order: RunNowInside): Promise<ChangeAnswer>;
  /**
   * Runs `work` and ends a run in one transaction. Null when the fence did not hold: then nothing was written, what
   * `work` wrote included. `settlement` is asked for when the work is done.
   */
  settleWith<Result>(
    work: (client: TransactionClient) => Promise<Result>,
    settlement: () => Settlement,
  ): Promise<{ readonly result: Result } | null>;
}

/** An order of `runNow` in a transaction, which is done when it is answered. */
export interface RunNowInside extends Pick<ChangeRequest, 'id' | 'order' | 'by'> {
  readonly ids: readonly string[];
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
  /** By the name of the limit, each once; left out for none. */
  readonly limits?: readonly LimitKey[];
  /**
   * What to do when keys of `limits` are full (../limit/on-limit.ts), in the same write; left out when the job waits in any case.
   * A job whose key is held, or that replaces one by `debounce`, is no further job: these are then not asked.
   */
  readonly onLimit?: readonly LimitAction[];
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
  /** With the key life `window`, and only then: for how long the key is held, from when the job is accepted. */
  readonly windowMs?: number;
  /** Of its definition, when that carries one. */
  readonly version?: number | undefined;
  /** Null for none, never empty. */
  readonly tags?: readonly string[] | null;
  /** Where it was enqueued, for the traces of its runs: a W3C traceparent and, after a space, a tracestate if there is one. */
  readonly trace?: string | undefined;
  /**
   * When a job that has never started holds the key, and holds it until its first start, this one replaces all of it but its
   * id: the payload, where it waits, and its due time. Sent again, it does so again.
   */
  readonly debounce?: Debounce;
  /** Stored as a job when this one dies: each time, and in the settlement that buries it. */
  readonly onDead?: Reaction;
}

/** What a job that reacts to the death of another one has. Whatever its definition says of full limits, it is stored, and waits. */
export type Reaction = Omit<JobTemplate, 'key' | 'keyLife' | 'windowMs' | 'debounce' | 'onLimit'>;

export interface Debounce {
  /** A replaced job is not put off beyond this long after it was first enqueued; null for no bound. */
  readonly maxWaitMs: number | null;
}

export interface Enqueued {
  readonly id: string;
  /** True when nothing was stored: `id` is the job that holds the key, or a live job of a limit's key that is full (`onLimit`). */
  readonly existed: boolean;
  /** True when that job has what was sent now, by `debounce`; left out when it stays as it was. */
  readonly replaced?: true;
}

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

export interface RolledUp {
  /** False when another call would add more. */
  readonly isDone: boolean;
}

/** For how long finished jobs of one state and their ledgers are kept. */
export interface RetentionRule {
  /** Of the jobs; null for all names that have no rule of their own. */
  readonly name: string | null;
  readonly state: 'completed' | 'dead' | 'cancelled';
  /** What definitions say, or what an operator said, which goes before. */
  readonly source: 'code' | 'set';
  /** Null for ever. */
  readonly keptMs: number | null;
}

/** A rule, or without `keptMs` that there is to be none. */
export type RetentionWrite = Omit<RetentionRule, 'keptMs'> & { readonly keptMs?: number | null };

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
