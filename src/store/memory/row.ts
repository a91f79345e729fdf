import type { Spent } from '../../gate/index.ts';
import { type Job, type JobState, type KeyLife, type Lane, type RunRecord, stateAt } from '../../job.ts';
import type { LimitKey } from '../../limit/limit.ts';
import { decodeResult } from '../../result.ts';
import type { Aside, DeadReason } from '../../retry/decision.ts';
import type { StoredError } from '../../retry/outcome.ts';
import type { RetryPolicy } from '../../retry/policy.ts';
import type { Operation } from '../change.ts';
import { parseData } from '../json.ts';
import type { ClaimedJob, Reaction } from '../store.ts';

/** A job as it is kept. No row ever leaves the store: callers get copies, made below. */
export interface Row {
  /** The order in which the store accepted the jobs. */
  readonly accepted: number;
  readonly id: string;
  readonly name: string;
  /** The queue it was enqueued to: statistics stay with it, and a redrive goes back to it. */
  homeQueue: string;
  retryQueue: string | null;
  resource: string | null;
  limits: readonly LimitKey[];
  /** Limits in which it keeps its turn when it has to run again. */
  turns: readonly string[];
  priority: number;
  version: number | null;
  policy: RetryPolicy;
  readonly key: string | null;
  readonly keyLife: KeyLife;
  readonly tags: readonly string[];
  readonly trace: string | null;
  onDead: Reaction | null;
  readonly enqueuedAt: number;
  readonly ledger: RunRecord[];
  readonly memos: Map<string, string>;

  payload: string;
  queue: string;
  state: JobState;
  /** Stays as it was claimed while the job runs. */
  lane: Lane;
  /** Where it waits aside; null unless it does. */
  aside: Aside | null;
  runs: number;
  attempts: number;
  crashes: number;
  dueAt: number;
  availableAt: number;
  firstStartedAt: number | null;
  finishedAt: number | null;
  /** The lease; null unless the job runs. */
  lease: Lease | null;
  previousDelayMs: number | null;
  givenBack: number;
  deferredSince: number | null;
  snoozes: number;
  deadReason: DeadReason | null;
  lastError: StoredError | null;
  /** Of the last failure: the error group that it is in. */
  fingerprint: string | null;
  spent: Spent | null;
  /** JSON text. */
  progress: string | null;
  /** As `encodeResult` wrote it. */
  result: string | null;
  cancelRequested: boolean;
  /** When it is to run again, as was said while it runs; null when nothing was. */
  runNowAt: number | null;
}

export interface Lease {
  readonly worker: string;
  readonly claimedAt: number;
  readonly endsAt: number;
  readonly alone: boolean;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** An operation, and where its next part begins. */
export interface OperationRow extends Mutable<Operation> {
  readonly order: string;
  /** The job that was looked at last, as `positionOf` says. */
  cursor: readonly [at: number, accepted: number] | null;
  canary: string[];
}

export function toJob(row: Row, now: number): Job {
  return {
    id: row.id,
    name: row.name,
    queue: row.queue,
    state: stateAt(row.state, row.dueAt, now),
    lane: row.lane,
    priority: row.priority,
    payload: parseData(row.payload),
    version: row.version,
    key: row.key,
    tags: row.tags,
    trace: row.trace,
    resource: row.resource,
    limits: row.limits,
    policy: row.policy,
    runs: row.runs,
    attempts: row.attempts,
    crashes: row.crashes,
    enqueuedAt: row.enqueuedAt,
    dueAt: row.dueAt,
    firstStartedAt: row.firstStartedAt,
    finishedAt: row.finishedAt,
    leaseEndsAt: row.lease?.endsAt ?? null,
    worker: row.lease?.worker ?? null,
    deadReason: row.deadReason,
    lastError: row.lastError,
    progress: parseData(row.progress),
    ...decodeResult(row.result),
    cancelRequested: row.cancelRequested,
  };
}

export function toClaimedJob(row: Row, lease: Lease, gateEpoch = 0): ClaimedJob {
  return {
    id: row.id,
    run: row.runs,
    worker: lease.worker,
    name: row.name,
    queue: row.queue,
    homeQueue: row.homeQueue,
    resource: row.resource,
    limits: row.limits,
    lane: row.lane,
    priority: row.priority,
    payload: row.payload,
    policy: row.policy,
    attempts: row.attempts,
    crashes: row.crashes,
    version: row.version,
    trace: row.trace,
    enqueuedAt: row.enqueuedAt,
    dueAt: row.dueAt,
    availableAt: row.availableAt,
    firstStartedAt: row.firstStartedAt ?? lease.claimedAt,
    claimedAt: lease.claimedAt,
    leaseEndsAt: lease.endsAt,
    previousDelayMs: row.previousDelayMs,
    givenBack: row.givenBack,
    deferredSince: row.deferredSince,
    snoozes: row.snoozes,
    lastError: row.lastError,
    cancelRequested: row.cancelRequested,
    alone: lease.alone,
    gateEpoch,
    spent: row.spent,
  };
}

/** A deep, frozen copy as JSON carries it: what another store would give back, and safe to hand out again and again. */
export function kept<T>(value: T): T {
  return freeze(JSON.parse(JSON.stringify(value)));
}

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
