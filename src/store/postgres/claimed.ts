import type { StoredError } from '../../retry/outcome.ts';
import { parseFrozen, splitJson } from '../json.ts';
import type { ClaimedJob } from '../store.ts';
import { elements, numbers, numbersOrNull } from './connection/arrays.ts';
import type { Stretch } from './scan/scan-cursor.ts';
import type { Session } from './session.ts';

/** As the type `claimed` has it: the columns of many jobs. */
export type ClaimedRow = [
  ids: string,
  runs: string,
  lines: string,
  kinds: string,
  dueAts: string,
  seqs: string,
  attempts: string,
  crashes: string,
  availableAts: string,
  firstStartedAts: string,
  previousDelays: string,
  enqueuedAts: string,
  lastErrors: string,
  errors: string | null,
  payloads: string,
  lease: number,
];

/** The jobs of one row. They come in the order of their line, so the last one of each tells how far it was read. */
export async function readClaimed(
  session: Session,
  row: ClaimedRow,
  holding: Holding,
  stretches: readonly Stretch[],
): Promise<ClaimedJob[]> {
  const ids = elements(row[0]);
  const count = ids.length;
  const runs = numbers(row[1], count);
  const lines = numbers(row[2], count);
  const kinds = numbers(row[3], count);
  const dueAts = numbers(row[4], count);
  const seqs = numbers(row[5], count);
  const attempts = numbers(row[6], count);
  const crashes = numbers(row[7], count);
  const availableAts = numbers(row[8], count);
  const firstStartedAts = numbers(row[9], count);
  const previousDelays = numbersOrNull(row[10], count);
  const enqueuedAts = numbers(row[11], count);
  const lastErrors = numbersOrNull(row[12], count);
  const errors = errorsOf(lastErrors, row[13]);
  const payloads = splitJson(row[14]);
  const lease = { id: Number(row[15]), held: count };
  const lastOf = new Map<number, number>();
  const jobs: ClaimedJob[] = [];
  for (let at = 0; at < count; at++) {
    lastOf.set(lines[at] as number, at);
    const job: StoredJob = {
      id: ids[at] as string,
      run: runs[at] as number,
      line: lines[at] as number,
      kind: kinds[at] as number,
      dueAt: dueAts[at] as number,
      attempts: attempts[at] as number,
      crashes: crashes[at] as number,
      availableAt: availableAts[at] as number,
      firstStartedAt: firstStartedAts[at] as number,
      previousDelayMs: previousDelays[at] as number | null,
      enqueuedAt: enqueuedAts[at] as number,
      payload: payloads[at] as string,
      lastError: errors.get(lastErrors[at] as number) ?? null,
    };
    session.hold(job.id, job.line, job.kind, job.run, lease);
    jobs.push(claimedJob(session, job, holding));
  }
  for (const [line, at] of lastOf) {
    const place = { dueAt: dueAts[at] as number, seq: seqs[at] as number };
    session.reading.reached(stretches, line, place, holding.claimedAt);
  }
  return jobs;
}

/** In a storm they are the same one again and again, so its text comes once. */
function errorsOf(pointers: readonly (number | null)[], texts: string | null): ReadonlyMap<number, StoredError> {
  if (texts === null) return new Map();
  const used = [...new Set(pointers)].filter((pointer) => pointer !== null).sort((a, b) => a - b);
  const errors = splitJson(texts).map((text) => parseFrozen<StoredError>(text));
  return new Map(used.map((pointer, index) => [pointer, errors[index] as StoredError]));
}

type Holding = Pick<ClaimedJob, 'worker' | 'claimedAt' | 'leaseEndsAt' | 'cancelRequested'>;

/** What the row of a job says of it. */
type StoredJob = Pick<
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
> & { readonly line: number; readonly kind: number };

export function claimedJob(session: Session, job: StoredJob, holding: Holding): ClaimedJob {
  const line = session.lines.get(job.line);
  const kind = session.kinds.get(job.kind);
  return {
    id: job.id,
    run: job.run,
    worker: holding.worker,
    name: kind.name,
    queue: line.queue,
    homeQueue: kind.line.queue,
    resource: line.resource,
    lane: line.lane,
    priority: line.priority,
    payload: job.payload,
    policy: kind.policy,
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
    alone: false,
  };
}
