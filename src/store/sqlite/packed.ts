import type { Lane } from '../../job.ts';
import type { StoredError } from '../../retry/outcome.ts';
import type { RetryPolicy } from '../../retry/policy.ts';
import { laneCodes } from '../codes.ts';
import type { Claim, ClaimedJob, Enqueued, NewJob, SettleAnswer, Settlement } from '../store.ts';
import type { Session } from './session.ts';
import type { Stream } from './words.ts';

/*
 * Jobs, claims and settlements on their way between threads. Copying a job object with its twenty names costs more
 * than claiming it, so they travel as arrays and columns, and what many of them share travels once.
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
  readonly jobs: PackedJobs;
  readonly worker: string;
  readonly leaseEndsAt: number;
  readonly streams: ReadonlyMap<number, Stream>;
  readonly names: ReadonlyMap<number, string>;
  readonly policies: ReadonlyMap<number, RetryPolicy>;
}

/** Rows column by column. Ids and JSON have no line breaks, so they are joined by them. */
interface PackedJobs {
  readonly ids: string;
  readonly payloads: string;
  /** Row after row, in the order of NUMBERS; NaN for null. */
  readonly numbers: Float64Array;
  /** In a storm they are all the same, so each stands here once for jobs that follow one another. */
  readonly lastErrors: readonly { readonly text: string | null; readonly count: number }[];
}

const LINE_BREAK = '\n';
/** The columns that hold numbers. */
const NUMBERS = [0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 12, 13, 14, 15, 17, 18] as const;
const WIDTH = NUMBERS.length;
const placeOf = (column: (typeof NUMBERS)[number]): number => NUMBERS.indexOf(column);
const PLACE = {
  stream: placeOf(1),
  name: placeOf(2),
  policy: placeOf(3),
  lane: placeOf(4),
  priority: placeOf(5),
  runs: placeOf(7),
  attempts: placeOf(9),
  crashes: placeOf(10),
  enqueuedAt: placeOf(11),
  dueAt: placeOf(12),
  availableAt: placeOf(13),
  firstStartedAt: placeOf(14),
  previousDelayMs: placeOf(15),
  cancelRequested: placeOf(17),
  homeStream: placeOf(18),
};

export function packJobs(rows: readonly PackedJob[]): PackedJobs {
  const numbers = new Float64Array(rows.length * WIDTH);
  let at = 0;
  for (const row of rows) for (const column of NUMBERS) numbers[at++] = row[column] ?? Number.NaN;
  return {
    ids: rows.map((row) => row[6]).join(LINE_BREAK),
    payloads: rows.map((row) => row[8]).join(LINE_BREAK),
    numbers,
    lastErrors: packErrors(rows),
  };
}

function packErrors(rows: readonly PackedJob[]): PackedJobs['lastErrors'] {
  const errors: { text: string | null; count: number }[] = [];
  for (const row of rows) {
    const last = errors.at(-1);
    if (last?.text === row[16]) last.count++;
    else errors.push({ text: row[16], count: 1 });
  }
  return errors;
}

function unpackErrors(packed: PackedJobs['lastErrors']): (StoredError | null)[] {
  return packed.flatMap(({ text, count }) =>
    new Array<StoredError | null>(count).fill(text === null ? null : JSON.parse(text, freeze)),
  );
}

function freeze(_: string, value: unknown): unknown {
  return Object.freeze(value);
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
  const { now, nextDueAt, suspectsWait, jobs: packedJobs } = packed;
  const jobs: ClaimedJob[] = [];
  if (packedJobs.numbers.length > 0) {
    const ids = packedJobs.ids.split(LINE_BREAK);
    const payloads = packedJobs.payloads.split(LINE_BREAK);
    const errors = unpackErrors(packedJobs.lastErrors);
    for (let at = 0; at < ids.length; at++) {
      jobs.push(unpackJob(packed, at, ids[at] as string, payloads[at] as string, errors[at] as StoredError | null));
    }
  }
  return { now, nextDueAt, suspectsWait, jobs };
}

function unpackJob(
  packed: PackedClaim,
  index: number,
  id: string,
  payload: string,
  lastError: StoredError | null,
): ClaimedJob {
  const { now, worker, leaseEndsAt, streams, names, policies } = packed;
  const { numbers } = packed.jobs;
  const number = (place: number): number => numbers[index * WIDTH + place] as number;
  const { queue, resource } = streams.get(number(PLACE.stream)) as Stream;
  const previousDelayMs = number(PLACE.previousDelayMs);
  return {
    id,
    run: number(PLACE.runs),
    worker,
    name: names.get(number(PLACE.name)) as string,
    queue,
    homeQueue: (streams.get(number(PLACE.homeStream)) as Stream).queue,
    resource,
    lane: laneCodes[number(PLACE.lane)] as Lane,
    priority: number(PLACE.priority),
    payload,
    policy: policies.get(number(PLACE.policy)) as RetryPolicy,
    attempts: number(PLACE.attempts),
    crashes: number(PLACE.crashes),
    enqueuedAt: number(PLACE.enqueuedAt),
    dueAt: number(PLACE.dueAt),
    availableAt: number(PLACE.availableAt),
    firstStartedAt: number(PLACE.firstStartedAt),
    claimedAt: now,
    leaseEndsAt,
    previousDelayMs: Number.isNaN(previousDelayMs) ? null : previousDelayMs,
    lastError,
    cancelRequested: number(PLACE.cancelRequested) === 1,
  };
}

/** What many jobs share. */
type SharedParts = Pick<NewJob, 'name' | 'queue' | 'retryQueue' | 'resource' | 'priority' | 'policy' | 'keyLife'>;

/** `of` is the place in what is shared. */
type OwnParts = readonly [
  of: number,
  id: string,
  payload: string,
  delayMs: number,
  dueAt: number | null,
  key: string | null,
];

export type PackedNewJobs = readonly [own: readonly OwnParts[], shared: readonly SharedParts[]];

export function packNewJobs(jobs: readonly NewJob[]): PackedNewJobs {
  const shared: SharedParts[] = [];
  const own = jobs.map((job): OwnParts => {
    if (!sharesWith(job, shared.at(-1))) {
      const { name, queue, retryQueue, resource, priority, policy, keyLife } = job;
      shared.push({ name, queue, retryQueue, resource, priority, policy, keyLife });
    }
    return [shared.length - 1, job.id, job.payload, job.delayMs, job.dueAt, job.key];
  });
  return [own, shared];
}

function sharesWith(job: NewJob, last: SharedParts | undefined): boolean {
  return (
    job.policy === last?.policy &&
    job.name === last.name &&
    job.queue === last.queue &&
    job.retryQueue === last.retryQueue &&
    job.resource === last.resource &&
    job.priority === last.priority &&
    job.keyLife === last.keyLife
  );
}

export function unpackNewJobs([own, shared]: PackedNewJobs): NewJob[] {
  return own.map(([of, id, payload, delayMs, dueAt, key]) => {
    const { name, queue, retryQueue, resource, priority, policy, keyLife } = shared[of] as SharedParts;
    return { id, name, queue, retryQueue, resource, priority, payload, policy, delayMs, dueAt, key, keyLife };
  });
}

/** Only those whose key another job holds, by their place. */
export type PackedEnqueued = readonly (readonly [index: number, holder: string])[];

export function packEnqueued(answers: readonly Enqueued[]): PackedEnqueued {
  return answers.flatMap(({ id, existed }, index) => (existed ? [[index, id] as const] : []));
}

export function unpackEnqueued(packed: PackedEnqueued, jobs: readonly NewJob[]): Enqueued[] {
  const answers = jobs.map(({ id }): Enqueued => ({ id, existed: false }));
  for (const [index, holder] of packed) answers[index] = { id: holder, existed: true };
  return answers;
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
