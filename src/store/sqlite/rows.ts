import type { Job, RunRecord } from '../../job.ts';
import { lanes, stateAt, states } from '../../job.ts';
import type { DeadReason, Decision } from '../../retry/decision.ts';
import type { OutcomeKind, StoredError } from '../../retry/outcome.ts';
import type { ClaimedJob } from '../store.ts';
import type { Session } from './session.ts';

/** From rows to the objects of the contract; together with packed-claim.ts the only place that knows both. */
export const CLAIMED_COLUMNS = `
  seq, id, stream, home_stream, lane, priority, due_at, runs, attempts, crashes, worker, claimed_at, lease_ends_at,
  cancel_requested, first_started_at, previous_delay_ms, available_at, enqueued_at, name, policy, payload,
  (SELECT error FROM errors WHERE errors.id = last_error) AS last_error`;

export interface ClaimedRow {
  readonly seq: number;
  readonly id: string;
  readonly stream: number;
  readonly home_stream: number;
  readonly lane: number;
  readonly priority: number;
  readonly due_at: number;
  readonly runs: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly worker: number;
  readonly claimed_at: number;
  readonly lease_ends_at: number;
  readonly cancel_requested: number;
  readonly first_started_at: number;
  readonly previous_delay_ms: number | null;
  readonly available_at: number;
  readonly enqueued_at: number;
  readonly name: number;
  readonly policy: number;
  readonly last_error: string | null;
  readonly payload: string;
}

export function claimedJob(session: Session, row: ClaimedRow): ClaimedJob {
  const stream = session.streams.get(row.stream);
  return {
    id: row.id,
    run: row.runs,
    worker: session.words.text(row.worker),
    name: session.words.text(row.name),
    queue: stream.queue,
    homeQueue: session.streams.get(row.home_stream).queue,
    resource: stream.resource,
    lane: lanes[row.lane] as ClaimedJob['lane'],
    priority: row.priority,
    payload: row.payload,
    policy: session.policy(row.policy),
    attempts: row.attempts,
    crashes: row.crashes,
    enqueuedAt: row.enqueued_at,
    dueAt: row.due_at,
    availableAt: row.available_at,
    firstStartedAt: row.first_started_at,
    claimedAt: row.claimed_at,
    leaseEndsAt: row.lease_ends_at,
    previousDelayMs: row.previous_delay_ms,
    lastError: parse<StoredError>(row.last_error),
    cancelRequested: row.cancel_requested === 1,
    alone: false,
  };
}

export interface JobRow extends Omit<ClaimedRow, 'worker' | 'first_started_at' | 'lease_ends_at'> {
  readonly state: number;
  readonly worker: number | null;
  readonly first_started_at: number | null;
  readonly lease_ends_at: number | null;
  readonly finished_at: number | null;
  readonly dead_reason: string | null;
  readonly key: string | null;
  readonly progress: string | null;
}

export function job(session: Session, row: JobRow): Job {
  const stream = session.streams.get(row.stream);
  const state = states[row.state] as Job['state'];
  return {
    id: row.id,
    name: session.words.text(row.name),
    queue: stream.queue,
    state: stateAt(state, row.due_at, session.now),
    lane: lanes[row.lane] as Job['lane'],
    priority: row.priority,
    payload: JSON.parse(row.payload),
    key: row.key,
    resource: stream.resource,
    policy: session.policy(row.policy),
    runs: row.runs,
    attempts: row.attempts,
    crashes: row.crashes,
    enqueuedAt: row.enqueued_at,
    dueAt: row.due_at,
    firstStartedAt: row.first_started_at,
    finishedAt: row.finished_at,
    leaseEndsAt: row.lease_ends_at,
    worker: row.worker === null ? null : session.words.text(row.worker),
    deadReason: row.dead_reason as DeadReason | null,
    lastError: parse<StoredError>(row.last_error),
    progress: parse<unknown>(row.progress),
    cancelRequested: row.cancel_requested === 1,
  };
}

export interface RunRow {
  readonly run: number;
  readonly attempt: number;
  readonly outcome: string;
  readonly counted: number;
  readonly worker: number;
  readonly started_at: number;
  readonly ended_at: number;
  readonly next_due_at: number | null;
  readonly decision: string;
  readonly error: string | null;
}

export function runRecord(session: Session, jobId: string, row: RunRow): RunRecord {
  return {
    jobId,
    run: row.run,
    attempt: row.attempt,
    outcome: row.outcome as OutcomeKind,
    counted: row.counted === 1,
    worker: session.words.text(row.worker),
    startedAt: row.started_at,
    endedAt: row.ended_at,
    error: parse<StoredError>(row.error),
    decision: JSON.parse(row.decision) as Decision,
    nextDueAt: row.next_due_at,
  };
}

function parse<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T);
}
