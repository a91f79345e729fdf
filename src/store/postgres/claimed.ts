import type { Spent } from '../../gate/index.ts';
import { parseLimits } from '../../limit/limit.ts';
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
  | 'givenBack'
  | 'deferredSince'
  | 'snoozes'
  | 'availableAt'
  | 'firstStartedAt'
  | 'previousDelayMs'
  | 'enqueuedAt'
  | 'payload'
  | 'lastError'
  | 'spent'
  | 'limits'
  | 'trace'
> &
  Position & { readonly partition: number; readonly jobType: number };

/** What the function `claim` answers, in its order: see sql/claim.ts. Arrays come as literals. */
export type ClaimRow = [
  now: number,
  snapshot: string,
  nextDueAt: number | null,
  suspectsWait: string | null,
  isCutShort: boolean | null,
  due: string | null,
  room: string | null,
  offer: string | null,
  gated: string | null,
  asides: string | null,
  isLimited: boolean | null,
  ...taken: TakenRow,
];

/** What every function that takes jobs answers at the end of its row: see sql/take.ts. */
export type TakenRow = [
  lease: string | null,
  ids: string | null,
  numbers: string,
  payloads: string,
  errors: string | null,
  spent: string | null,
  behind: string | null,
  traces: string | null,
];

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
  /** Resources, those that have waited longest first; one may be named several times. */
  readonly gated: readonly string[];
  /** The rows of the tables `asides` and `limited_queues` for these queues; null when they are those that the caller knew. */
  readonly asides: string | null;
  /** Whether jobs wait behind limits, in the queues that were asked about. */
  readonly isLimited: boolean;
  /** Per row of `leases` three numbers: its id, the position of its queue, its lane. */
  readonly leases: readonly number[];
}

export function readClaim(row: ClaimRow): { readonly header: ClaimHeader; readonly jobs: StoredJob[] } {
  const [now, snapshot, nextDueAt, suspectsWait, isCutShort, due, room, offer, gated, asides, isLimited, ...taken] =
    row;
  const header: ClaimHeader = {
    now,
    snapshot,
    nextDueAt,
    suspectsWait: suspectsWait === null ? [] : elements(suspectsWait).map((flag) => flag === 't'),
    isCutShort: isCutShort === true,
    due: numbersOrNull(due),
    room: numbersOrNull(room),
    offer,
    gated: gated === null ? [] : (JSON.parse(gated) as string[]),
    asides,
    isLimited: isLimited === true,
    leases: readLeases(taken),
  };
  return { header, jobs: readJobs(taken) };
}

/** How many numbers there are of each job: see sql/claim.ts. */
const PER_JOB = 15;

/** Per row of `leases` three numbers: its id, the position of its queue, its lane. */
export function readLeases([lease]: TakenRow): readonly number[] {
  return numbersOrNull(lease) as number[];
}

export function readJobs([, ids, literal, texts, errorTexts, notes, behind, traceTexts]: TakenRow): StoredJob[] {
  if (ids === null) return [];
  const numbers = numbersOrNull(literal);
  const payloads = splitJson(texts);
  const errors = errorsOf(numbers, errorTexts);
  const spent = spentOf(notes);
  const limits = textsOf(behind);
  const traces = textsOf(traceTexts);
  return elements(ids).map((id, row) => {
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
      givenBack: numbers[at + 11] as number,
      deferredSince: numbers[at + 12] as number | null,
      snoozes: numbers[at + 13] as number,
      lastError: errors.get(numbers[at + 14] as number) ?? null,
      spent: spent.get(row + 1) ?? null,
      limits: parseLimits(limits.get(row + 1) ?? ''),
      trace: traces.get(row + 1) ?? null,
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

/** Texts that few jobs have, by the position of the job. */
function textsOf(json: string | null): ReadonlyMap<number, string> {
  return new Map(json === null ? [] : (JSON.parse(json) as [ord: number, text: string][]));
}

/** Few jobs have a note, so these come apart: the job's position, and the note. */
function spentOf(literal: string | null): ReadonlyMap<number, Spent> {
  const notes = new Map<number, Spent>();
  const numbers = numbersOrNull(literal) as number[];
  for (let at = 0; at < numbers.length; at += 3) {
    notes.set(numbers[at] as number, { at: numbers[at + 1] as number, count: numbers[at + 2] as number });
  }
  return notes;
}

type Holding = Pick<ClaimedJob, 'worker' | 'claimedAt' | 'leaseEndsAt' | 'cancelRequested' | 'alone'>;

export function claimedJob(
  job: StoredJob,
  partition: Partition,
  jobType: JobType,
  holding: Holding,
  gateEpoch = 0,
): ClaimedJob {
  return {
    id: job.id,
    run: job.run,
    worker: holding.worker,
    name: jobType.name,
    queue: partition.queue,
    homeQueue: jobType.queue,
    resource: partition.resource,
    limits: job.limits,
    lane: partition.lane,
    priority: partition.priority,
    payload: job.payload,
    policy: jobType.policy,
    attempts: job.attempts,
    crashes: job.crashes,
    givenBack: job.givenBack,
    deferredSince: job.deferredSince,
    snoozes: job.snoozes,
    version: jobType.version,
    trace: job.trace,
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
    gateEpoch,
    spent: job.spent,
  };
}
