import type { StoredError } from '../../retry/outcome.ts';
import { parseFrozen, splitJson } from '../json.ts';
import type { ClaimedJob } from '../store.ts';
import { elements, numbers, numbersOrNull } from './connection/arrays.ts';
import type { JobType } from './job-types.ts';
import type { Partition } from './partitions.ts';
import type { Position } from './scan/scan-cursor.ts';

/** What the row of a job says of it. */
export type StoredJob = Pick<
  ClaimedJob,
  | 'id'
  | 'run'
  | 'dueAt'
  | 'attempts'
  | 'crashes'
  | 'availableAt'
  | 'firstStartedAt'
  | 'previousDelayMs'
  | 'enqueuedAt'
  | 'payload'
  | 'lastError'
> &
  Position & { readonly partition: number; readonly jobType: number };

/** What the function `claim` answers, in its order. */
const claimColumns = [
  'store_now',
  'snapshot',
  'next_due_at',
  'suspects_wait',
  'cut_short',
  'due',
  'all_counted',
  'room',
  'offer',
  'lease',
  'lease_of',
  'id',
  'run',
  'partition',
  'job_type',
  'due_at',
  'seq',
  'attempts',
  'crashes',
  'available_at',
  'first_started_at',
  'previous_delay_ms',
  'enqueued_at',
  'last_error',
  'errors',
  'payloads',
] as const;

export interface ClaimHeader {
  readonly now: number;
  readonly snapshot: string;
  readonly nextDueAt: number | null;
  /** By queue: whether a suspect might start, before this claim. */
  readonly suspectsWait: readonly boolean[];
  readonly isCutShort: boolean;
  /** By given partition; null for one that is not admissible. */
  readonly due: readonly (number | null)[];
  /** By given partition: `due` is all that is due. */
  readonly allCounted: readonly boolean[];
  /** By queue; null for any number. */
  readonly room: readonly (number | null)[];
  /** The partitions that the next claim should read; null when that has not changed. */
  readonly offer: string | null;
  /** Rows of `leases`, and of each a given partition whose queue and lane it has. */
  readonly leases: readonly { readonly id: number; readonly given: number }[];
}

/** What the function `claim` answered: see sql/claim.ts. */
export function readClaim(row: readonly unknown[]): { readonly header: ClaimHeader; readonly jobs: StoredJob[] } {
  const of = (column: (typeof claimColumns)[number]): unknown => row[claimColumns.indexOf(column)];
  const list = (column: (typeof claimColumns)[number]): (number | null)[] => {
    const literal = of(column) as string | null;
    return literal === null || literal === '{}'
      ? []
      : elements(literal).map((text) => (text === 'NULL' ? null : Number(text)));
  };
  const flags = (column: (typeof claimColumns)[number]): boolean[] =>
    elements((of(column) as string | null) ?? '{}').map((text) => text === 't');
  const leaseOf = list('lease_of');
  const header: ClaimHeader = {
    now: of('store_now') as number,
    snapshot: of('snapshot') as string,
    nextDueAt: of('next_due_at') as number | null,
    suspectsWait: flags('suspects_wait'),
    isCutShort: of('cut_short') as boolean,
    due: list('due'),
    allCounted: flags('all_counted'),
    room: list('room'),
    offer: of('offer') as string | null,
    leases: list('lease').map((id, index) => ({ id: id as number, given: (leaseOf[index] as number) - 1 })),
  };
  return { header, jobs: of('id') === null ? [] : readJobs((column) => of(column) as string) };
}

function readJobs(of: (column: (typeof claimColumns)[number]) => string): StoredJob[] {
  const ids = elements(of('id'));
  const count = ids.length;
  const runs = numbers(of('run'), count);
  const partitions = numbers(of('partition'), count);
  const jobTypes = numbers(of('job_type'), count);
  const dueAts = numbers(of('due_at'), count);
  const seqs = numbers(of('seq'), count);
  const attempts = numbers(of('attempts'), count);
  const crashes = numbers(of('crashes'), count);
  const availableAts = numbers(of('available_at'), count);
  const firstStartedAts = numbers(of('first_started_at'), count);
  const previousDelays = numbersOrNull(of('previous_delay_ms'), count);
  const enqueuedAts = numbers(of('enqueued_at'), count);
  const lastErrors = numbersOrNull(of('last_error'), count);
  const errors = errorsOf(lastErrors, of('errors'));
  const payloads = splitJson(of('payloads'));
  return ids.map((id, at) => ({
    id,
    run: runs[at] as number,
    partition: partitions[at] as number,
    jobType: jobTypes[at] as number,
    dueAt: dueAts[at] as number,
    seq: seqs[at] as number,
    attempts: attempts[at] as number,
    crashes: crashes[at] as number,
    availableAt: availableAts[at] as number,
    firstStartedAt: firstStartedAts[at] as number,
    previousDelayMs: previousDelays[at] as number | null,
    enqueuedAt: enqueuedAts[at] as number,
    payload: payloads[at] as string,
    lastError: errors.get(lastErrors[at] as number) ?? null,
  }));
}

/** Many jobs may have failed with the same error, so its text comes once. */
function errorsOf(pointers: readonly (number | null)[], texts: string | null): ReadonlyMap<number, StoredError> {
  if (texts === null) return new Map();
  const used = [...new Set(pointers)].filter((pointer) => pointer !== null).sort((a, b) => a - b);
  const errors = splitJson(texts).map((text) => parseFrozen<StoredError>(text));
  return new Map(used.map((pointer, index) => [pointer, errors[index] as StoredError]));
}

type Holding = Pick<ClaimedJob, 'worker' | 'claimedAt' | 'leaseEndsAt' | 'cancelRequested' | 'alone'>;

export function claimedJob(job: StoredJob, partition: Partition, jobType: JobType, holding: Holding): ClaimedJob {
  return {
    id: job.id,
    run: job.run,
    worker: holding.worker,
    name: jobType.name,
    queue: partition.queue,
    homeQueue: jobType.queue,
    resource: partition.resource,
    lane: partition.lane,
    priority: partition.priority,
    payload: job.payload,
    policy: jobType.policy,
    attempts: job.attempts,
    crashes: job.crashes,
    enqueuedAt: job.enqueuedAt,
    dueAt: job.dueAt,
    availableAt: job.availableAt,
    firstStartedAt: job.firstStartedAt,
    claimedAt: holding.claimedAt,
    leaseEndsAt: holding.leaseEndsAt,
    previousDelayMs: job.previousDelayMs,
    lastError: job.lastError,
    cancelRequested: holding.cancelRequested,
    alone: holding.alone,
  };
}
