import type { Lane } from '../../job.ts';
import { lanes } from '../../job.ts';
import type { StoredError } from '../../retry/outcome.ts';
import type { RetryPolicy } from '../../retry/policy.ts';
import { joinJson, parseFrozen, splitJson } from '../json.ts';
import type { Claim, ClaimedJob } from '../store.ts';
import type { Session } from './session.ts';
import type { Stream } from './words.ts';

/*
 * A claim on its way from the thread. Copying a job object with its twenty names costs more than claiming it, so jobs
 * travel in columns, and what many of them share travels once.
 */

/** The columns of a claimed row: first those that hold numbers, then texts. */
export const CLAIMED_COLUMNS = `
  seq, stream, name, policy, lane, priority, runs, attempts, crashes, enqueued_at, due_at, available_at,
  first_started_at, previous_delay_ms, cancel_requested, home_stream, last_error, id, payload`;

export type ClaimedRow = readonly [
  seq: number,
  stream: number,
  name: number,
  policy: number,
  lane: number,
  priority: number,
  runs: number,
  attempts: number,
  crashes: number,
  enqueuedAt: number,
  dueAt: number,
  availableAt: number,
  firstStartedAt: number | null,
  previousDelayMs: number | null,
  cancelRequested: number,
  homeStream: number,
  lastError: number | null,
  id: string,
  payload: string,
];

/** Where each column stands in a row. */
export const AT = {
  seq: 0,
  stream: 1,
  name: 2,
  policy: 3,
  lane: 4,
  priority: 5,
  runs: 6,
  attempts: 7,
  crashes: 8,
  enqueuedAt: 9,
  dueAt: 10,
  availableAt: 11,
  firstStartedAt: 12,
  previousDelayMs: 13,
  cancelRequested: 14,
  homeStream: 15,
  lastError: 16,
  id: 17,
  payload: 18,
} as const;
/** How many of the columns hold numbers. */
const NUMBERS = 17;

export interface PackedClaim extends Omit<Claim, 'jobs'> {
  readonly jobs: PackedRows;
  readonly worker: string;
  readonly leaseEndsAt: number;
  readonly streams: ReadonlyMap<number, Stream>;
  readonly names: ReadonlyMap<number, string>;
  readonly policies: ReadonlyMap<number, RetryPolicy>;
  /** JSON. */
  readonly errors: ReadonlyMap<number, string>;
}

interface PackedRows {
  readonly ids: readonly string[];
  /** JSON, joined. */
  readonly payloads: string;
  /** Row after row; NaN for null. */
  readonly numbers: Float64Array;
}

export function packRows(rows: readonly ClaimedRow[]): PackedRows {
  const numbers = new Float64Array(rows.length * NUMBERS);
  let at = 0;
  for (const row of rows) {
    for (let column = 0; column < NUMBERS; column++) numbers[at++] = (row[column] as number | null) ?? Number.NaN;
  }
  return {
    ids: rows.map((row) => row[AT.id]),
    payloads: joinJson(rows.map((row) => row[AT.payload])),
    numbers,
  };
}

/** The order of service inside a lane. */
export function byService(a: ClaimedRow, b: ClaimedRow): number {
  return a[AT.priority] - b[AT.priority] || a[AT.dueAt] - b[AT.dueAt] || a[AT.seq] - b[AT.seq];
}

/** A waiting row, as the claim at `now` leaves it. */
export function taken(row: ClaimedRow, now: number): ClaimedRow {
  const after: { -readonly [Index in keyof ClaimedRow]: ClaimedRow[Index] } = [...row];
  after[AT.runs]++;
  after[AT.attempts]++;
  after[AT.firstStartedAt] ??= now;
  return after;
}

/** What the numbers in these rows stand for. */
export function legend(
  session: Session,
  rows: readonly ClaimedRow[],
): Pick<PackedClaim, 'streams' | 'names' | 'policies' | 'errors'> {
  const streams = new Map<number, Stream>();
  const names = new Map<number, string>();
  const policies = new Map<number, RetryPolicy>();
  const errors = new Map<number, string>();
  const addStream = (stream: number): void => {
    if (!streams.has(stream)) streams.set(stream, session.streams.get(stream));
  };
  for (const row of rows) {
    const [, stream, name, policy] = row;
    addStream(stream);
    addStream(row[AT.homeStream]);
    if (!names.has(name)) names.set(name, session.words.text(name));
    if (!policies.has(policy)) policies.set(policy, session.policy(policy));
    const error = row[AT.lastError];
    if (error !== null && !errors.has(error)) errors.set(error, session.errors.text(error));
  }
  return { streams, names, policies, errors };
}

export function unpack(packed: PackedClaim): Claim {
  const { now, nextDueAt, suspectsWait } = packed;
  const { ids } = packed.jobs;
  const payloads = splitJson(packed.jobs.payloads);
  const errors = new Map([...packed.errors].map(([id, text]) => [id, parseFrozen<StoredError>(text)]));
  const jobs = ids.map((id, index) =>
    unpackJob(packed, index, {
      id,
      payload: payloads[index] as string,
      // Not a number for none.
      lastError: errors.get(packed.jobs.numbers[index * NUMBERS + AT.lastError] as number) ?? null,
    }),
  );
  return { now, nextDueAt, suspectsWait, jobs };
}

function unpackJob(
  packed: PackedClaim,
  index: number,
  texts: Pick<ClaimedJob, 'id' | 'payload' | 'lastError'>,
): ClaimedJob {
  const { now, worker, leaseEndsAt, streams, names, policies } = packed;
  const { numbers } = packed.jobs;
  const number = (column: number): number => numbers[index * NUMBERS + column] as number;
  const { queue, resource } = streams.get(number(AT.stream)) as Stream;
  const previousDelayMs = number(AT.previousDelayMs);
  return {
    id: texts.id,
    run: number(AT.runs),
    worker,
    name: names.get(number(AT.name)) as string,
    queue,
    homeQueue: (streams.get(number(AT.homeStream)) as Stream).queue,
    resource,
    lane: lanes[number(AT.lane)] as Lane,
    priority: number(AT.priority),
    payload: texts.payload,
    policy: policies.get(number(AT.policy)) as RetryPolicy,
    attempts: number(AT.attempts),
    crashes: number(AT.crashes),
    enqueuedAt: number(AT.enqueuedAt),
    dueAt: number(AT.dueAt),
    availableAt: number(AT.availableAt),
    firstStartedAt: number(AT.firstStartedAt),
    claimedAt: now,
    leaseEndsAt,
    previousDelayMs: Number.isNaN(previousDelayMs) ? null : previousDelayMs,
    lastError: texts.lastError,
    cancelRequested: number(AT.cancelRequested) === 1,
    alone: false,
  };
}
