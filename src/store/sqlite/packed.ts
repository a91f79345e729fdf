import type { Lane } from '../../job.ts';
import type { RetryPolicy } from '../../retry/policy.ts';
import { laneCodes } from '../codes.ts';
import type { Claim, ClaimedJob, SettleAnswer, Settlement } from '../store.ts';
import type { Session } from './session.ts';
import type { Stream } from './words.ts';

/*
 * Claims and settlements on their way between threads. Copying a job object with its twenty names costs more than
 * claiming it, so rows travel as arrays, and what many of them share travels once.
 */
export const PACKED_COLUMNS = `
  seq, stream, name, policy, lane, priority, id, runs, payload, attempts, crashes, enqueued_at, due_at, available_at,
  first_started_at, previous_delay_ms, last_error, cancel_requested, home_stream`;

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
  firstStartedAt: number | null,
  previousDelayMs: number | null,
  lastError: string | null,
  cancelRequested: number,
  homeStream: number,
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

/** A waiting row, as the claim at `now` leaves it. */
export function taken(row: PackedJob, now: number): PackedJob {
  const after: { -readonly [Index in keyof PackedJob]: PackedJob[Index] } = [...row];
  after[7]++;
  after[9]++;
  after[14] ??= now;
  return after;
}

/** What the numbers in these rows stand for. */
export function legend(
  session: Session,
  rows: readonly PackedJob[],
): Pick<PackedClaim, 'streams' | 'names' | 'policies'> {
  const streams = new Map<number, Stream>();
  const names = new Map<number, string>();
  const policies = new Map<number, RetryPolicy>();
  const addStream = (stream: number): void => {
    if (!streams.has(stream)) streams.set(stream, session.streams.get(stream));
  };
  for (const row of rows) {
    const [, stream, name, policy] = row;
    addStream(stream);
    addStream(row[18]);
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
    homeQueue: (streams.get(row[18]) as Stream).queue,
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
    firstStartedAt: row[14] as number,
    claimedAt: now,
    leaseEndsAt,
    previousDelayMs: row[15],
    lastError: row[16] === null ? null : JSON.parse(row[16]),
    cancelRequested: row[17] === 1,
  };
}

export type PackedSettlement = readonly [
  id: string,
  run: number,
  worker: string,
  outcome: Settlement['outcome'],
  decision: Settlement['decision'],
  error: Settlement['error'],
  startedAt: number,
  endedAt: number,
];

export function packSettlement(settlement: Settlement): PackedSettlement {
  const { id, run, worker, outcome, decision, error, startedAt, endedAt } = settlement;
  return [id, run, worker, outcome, decision, error, startedAt, endedAt];
}

export function unpackSettlement(packed: PackedSettlement): Settlement {
  const [id, run, worker, outcome, decision, error, startedAt, endedAt] = packed;
  return { id, run, worker, outcome, decision, error, startedAt, endedAt };
}

/** Only those of a batch that are not `settled`, by their place: nearly always none. */
export type PackedAnswers = readonly (readonly [index: number, answer: SettleAnswer])[];

export function packAnswers(answers: readonly SettleAnswer[]): PackedAnswers {
  return [...answers.entries()].filter(([, answer]) => answer !== 'settled');
}

export function unpackAnswers(packed: PackedAnswers, count: number): SettleAnswer[] {
  const answers = new Array<SettleAnswer>(count).fill('settled');
  for (const [index, answer] of packed) answers[index] = answer;
  return answers;
}
