import type { Job, RunRecord } from '../../job.ts';
import { lanes, stateAt, states } from '../../job.ts';
import { parseLimits } from '../../limit/limit.ts';
import { decodeResult } from '../../result.ts';
import type { DeadReason, Decision } from '../../retry/decision.ts';
import type { OutcomeKind, StoredError } from '../../retry/outcome.ts';
import { parseData } from '../json.ts';
import type { Session } from './session.ts';

/** From rows to the objects of the contract; running jobs travel in another form (see packed-claim.ts). */
export const JOB_COLUMNS = `
  id, state, queue, lane, priority, resource, due_at, runs, attempts, crashes, worker, lease_ends_at, cancel_requested,
  first_started_at, finished_at, dead_reason, enqueued_at, name, policy, key, tags, trace, progress, result, limits, payload,
  (SELECT error FROM errors WHERE errors.id = last_error) AS last_error`;

export interface JobRow {
  readonly id: string;
  readonly state: number;
  readonly queue: number;
  readonly lane: number;
  readonly priority: number;
  readonly resource: number;
  readonly due_at: number;
  readonly runs: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly worker: number | null;
  readonly lease_ends_at: number | null;
  readonly cancel_requested: number;
  readonly first_started_at: number | null;
  readonly finished_at: number | null;
  readonly dead_reason: string | null;
  readonly enqueued_at: number;
  readonly name: number;
  readonly policy: number;
  readonly key: string | null;
  readonly tags: string | null;
  readonly trace: string | null;
  readonly progress: string | null;
  readonly result: string | null;
  readonly limits: string | null;
  readonly last_error: string | null;
  readonly payload: string;
}

export function job(session: Session, row: JobRow): Job {
  const state = states[row.state] as Job['state'];
  const { policy, version } = session.policy(row.policy);
  return {
    id: row.id,
    name: session.strings.text(row.name),
    queue: session.strings.text(row.queue),
    state: stateAt(state, row.due_at, session.now),
    lane: lanes[row.lane] as Job['lane'],
    priority: row.priority,
    payload: parseData(row.payload),
    version,
    key: row.key,
    tags: parse<string[]>(row.tags) ?? [],
    trace: row.trace,
    resource: row.resource === 0 ? null : session.strings.text(row.resource),
    limits: parseLimits(row.limits ?? ''),
    policy,
    runs: row.runs,
    attempts: row.attempts,
    crashes: row.crashes,
    enqueuedAt: row.enqueued_at,
    dueAt: row.due_at,
    firstStartedAt: row.first_started_at,
    finishedAt: row.finished_at,
    leaseEndsAt: row.lease_ends_at,
    worker: row.worker === null ? null : session.strings.text(row.worker),
    deadReason: row.dead_reason as DeadReason | null,
    lastError: parse<StoredError>(row.last_error),
    progress: parseData(row.progress),
    ...decodeResult(row.result),
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
    worker: session.strings.text(row.worker),
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
