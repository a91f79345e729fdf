import type { Lane } from '../../job.ts';
import type { RetryPolicy } from '../../retry/policy.ts';
import type { Claim, ClaimedJob } from '../store.ts';
import { laneCodes } from './schema.ts';
import type { Session } from './session.ts';
import type { Stream } from './words.ts';

/*
 * A claim on its way from the thread. Copying a job object with its twenty names costs more than claiming it, so
 * rows travel as the arrays they are read as, and what many of them share travels once.
 */
export const PACKED_COLUMNS = `
  seq, stream, name, policy, lane, priority, id, runs, payload, attempts, crashes, enqueued_at, due_at, available_at,
  first_started_at, previous_delay_ms, last_error, cancel_requested`;

export type PackedJob = readonly [
  seq: number,
  stream: number,
  name: number,
  policy: number,
  lane: number,
  priority: number,
  id: string,
  runs: number,
  payload: string,
  attempts: number,
  crashes: number,
  enqueuedAt: number,
  dueAt: number,
  availableAt: number,
  firstStartedAt: number,
  previousDelayMs: number | null,
  lastError: string | null,
  cancelRequested: number,
];

export interface PackedClaim extends Omit<Claim, 'jobs'> {
  readonly rows: readonly PackedJob[];
  readonly worker: string;
  readonly leaseEndsAt: number;
  readonly streams: ReadonlyMap<number, Stream>;
  readonly names: ReadonlyMap<number, string>;
  readonly policies: ReadonlyMap<number, RetryPolicy>;
}

/** The order of service inside a lane. */
export function byService(a: PackedJob, b: PackedJob): number {
  return a[5] - b[5] || a[12] - b[12] || a[0] - b[0];
}

/** What the numbers in these rows stand for. */
export function legend(
  session: Session,
  rows: readonly PackedJob[],
): Pick<PackedClaim, 'streams' | 'names' | 'policies'> {
  const streams = new Map<number, Stream>();
  const names = new Map<number, string>();
  const policies = new Map<number, RetryPolicy>();
  for (const [, stream, name, policy] of rows) {
    if (!streams.has(stream)) streams.set(stream, session.streams.get(stream));
    if (!names.has(name)) names.set(name, session.words.text(name));
    if (!policies.has(policy)) policies.set(policy, session.policy(policy));
  }
  return { streams, names, policies };
}

export function unpack(packed: PackedClaim): Claim {
  const { now, nextDueAt, suspectsWait, rows } = packed;
  return { now, nextDueAt, suspectsWait, jobs: rows.map((row) => unpackJob(row, packed)) };
}

function unpackJob(row: PackedJob, { now, worker, leaseEndsAt, streams, names, policies }: PackedClaim): ClaimedJob {
  const { queue, resource } = streams.get(row[1]) as Stream;
  return {
    id: row[6],
    run: row[7],
    worker,
    name: names.get(row[2]) as string,
    queue,
    resource,
    lane: laneCodes[row[4]] as Lane,
    priority: row[5],
    payload: row[8],
    policy: policies.get(row[3]) as RetryPolicy,
    attempts: row[9],
    crashes: row[10],
    enqueuedAt: row[11],
    dueAt: row[12],
    availableAt: row[13],
    firstStartedAt: row[14],
    claimedAt: now,
    leaseEndsAt,
    previousDelayMs: row[15],
    lastError: row[16] === null ? null : JSON.parse(row[16]),
    cancelRequested: row[17] === 1,
  };
}
