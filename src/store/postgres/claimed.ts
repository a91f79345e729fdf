import type { StoredError } from '../../retry/outcome.ts';
import { parseFrozen, splitJson } from '../json.ts';
import type { ClaimedJob } from '../store.ts';
import { elements, numbersOrNull } from './connection/arrays.ts';
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
  'room',
  'offer',
  'lease',
  'id',
  'numbers',
  'payloads',
  'errors',
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
  /** By queue; null for any number. */
  readonly room: readonly (number | null)[];
  /** The partitions that the next claim should read; null when that has not changed. */
  readonly offer: string | null;
  /** Rows of `leases`: by position of the queue in the request, and by code of the lane. */
  readonly leases: readonly { readonly id: number; readonly queue: number; readonly lane: number }[];
}

/** What the function `claim` answered: see sql/claim.ts. */
export function readClaim(row: readonly unknown[]): { readonly header: ClaimHeader; readonly jobs: StoredJob[] } {
  const of = (column: (typeof claimColumns)[number]): unknown => row[claimColumns.indexOf(column)];
  const list = (column: (typeof claimColumns)[number]): (number | null)[] => {
    const literal = of(column) as string | null;
    return literal === null || literal === '{}' ? [] : numbersOrNull(literal);
  };
  const flags = (column: (typeof claimColumns)[number]): boolean[] =>
    elements((of(column) as string | null) ?? '{}').map((text) => text === 't');
  const lease = list('lease') as number[];
  const header: ClaimHeader = {
    now: of('store_now') as number,
    snapshot: of('snapshot') as string,
    nextDueAt: of('next_due_at') as number | null,
    suspectsWait: flags('suspects_wait'),
    isCutShort: of('cut_short') === true,
    due: list('due'),
    room: list('room'),
    offer: of('offer') as string | null,
    leases: Array.from({ length: lease.length / 3 }, (_, row) => ({
      id: lease[row * 3] as number,
      queue: (lease[row * 3 + 1] as number) - 1,
      lane: lease[row * 3 + 2] as number,
    })),
  };
  return { header, jobs: of('id') === null ? [] : readJobs((column) => of(column) as string) };
}

/** How many numbers there are of each job: see sql/claim.ts. */
const PER_JOB = 12;

function readJobs(of: (column: (typeof claimColumns)[number]) => string): StoredJob[] {
  const numbers = numbersOrNull(of('numbers'));
  const payloads = splitJson(of('payloads'));
  const errors = errorsOf(numbers, of('errors'));
  return elements(of('id')).map((id, row) => {
    const at = row * PER_JOB;
    return {
      id,
      run: numbers[at] as number,
      partition: numbers[at + 1] as number,
      jobType: numbers[at + 2] as number,
      dueAt: numbers[at + 3] as number,
      seq: numbers[at + 4] as number,
      attempts: numbers[at + 5] as number,
      crashes: numbers[at + 6] as number,
      availableAt: numbers[at + 7] as number,
      firstStartedAt: numbers[at + 8] as number,
      enqueuedAt: numbers[at + 9] as number,
      previousDelayMs: numbers[at + 10] as number | null,
      lastError: errors.get(numbers[at + 11] as number) ?? null,
      payload: payloads[row] as string,
    };
  });
}

/** Many jobs may have failed with the same error, so its text comes once. */
function errorsOf(numbers: readonly (number | null)[], texts: string | null): ReadonlyMap<number, StoredError> {
  if (texts === null) return new Map();
  const pointers = numbers.filter((_, at) => at % PER_JOB === PER_JOB - 1);
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
