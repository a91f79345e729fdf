import type { Lane } from '../../job.ts';
import type { StoredError } from '../../retry/outcome.ts';
import { laneCodes } from '../codes.ts';
import { fillQuotas } from '../fill.ts';
import { parseFrozen, splitJson } from '../json.ts';
import type { Claim, ClaimedJob, ClaimRequest, QueueQuota } from '../store.ts';
import { elements, numbers, numbersOrNull, plain, texts } from './arrays.ts';
import type { Stretch } from './reading.ts';
import type { Session } from './session.ts';

const CLAIM = `
  SELECT * FROM @.claim($1, $2, $3, $4::text[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[],
    $10::int[], $11::int[], $12::smallint[], $13::smallint[], $14::bigint[], $15::bigint[], $16::bigint[],
    $17::bigint[], $18)`;
const CLAIM_ALL = `
  SELECT * FROM @.claim_all($1, $2, $3, $4::text[], $5::int[], $6::int[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11)`;
const EXPIRED = `
  SELECT (job).id, (job).runs, (job).line, (job).kind, (job).due_at, (job).attempts, (job).crashes, (job).available_at,
    (job).first_started_at, (job).previous_delay_ms, (job).enqueued_at, (job).payload, error,
    (job).worker, (job).claimed_at, (job).lease_ends_at, (job).cancel_requested
  FROM @.expired($1)`;

/** As the type `claimed` has it: the columns of many jobs. */
type ClaimedRow = [
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
type ExpiredRow = [
  id: string,
  run: number,
  line: number,
  kind: number,
  dueAt: number,
  attempts: number,
  crashes: number,
  availableAt: number,
  firstStartedAt: number,
  previousDelayMs: number | null,
  enqueuedAt: number,
  payload: string,
  error: string | null,
  worker: number,
  claimedAt: number,
  leaseEndsAt: number,
  cancelRequested: boolean,
];

export async function claim(session: Session, request: ClaimRequest): Promise<Claim> {
  session.db.longestLeaseMs = Math.max(session.db.longestLeaseMs, request.leaseMs);
  const worker = await session.workers.intern(request.worker);
  for (;;) {
    const look = session.reading.look();
    const answer = await claimFromKnown(session, request, worker);
    // It went on beside the claim, so that hardly anybody waits for it.
    const hasFound = await look;
    if (answer === null) await session.lines.refresh();
    else if (answer.jobs.length > 0 || !hasFound) return answer;
  }
}

/** Null when another process has opened a line that this one does not know yet. */
async function claimFromKnown(session: Session, request: ClaimRequest, worker: number): Promise<Claim | null> {
  const { leaseMs, limit, queues } = request;
  const { newest } = session.lines;
  const names = queues.map(({ queue }) => queue);
  const stretches = await session.reading.stretches(session.lines.ofQueues(names));
  const { rows, isShared } = await send(session, request, worker, { names, newest, stretches });
  const [, suspectsWait, newestLine, , now, , , , nextDueAt, , , , , snapshot, paused] = rows.pop() as ClaimedRow;
  if (Number(elements(newestLine)[0]) > newest) return null;
  const storeNow = Number(elements(now)[0]);
  session.reading.saw(storeNow, snapshot as string);
  const leaseEndsAt = storeNow + leaseMs;
  const holding = { worker: request.worker, claimedAt: storeNow, leaseEndsAt, cancelRequested: false };
  const jobs: ClaimedJob[] = [];
  for (const row of rows) jobs.push(...(await readClaimed(session, row, holding, stretches)));
  const filled = jobs.length === limit;
  session.lastClaimWasFilled = filled;
  if (!filled) markEmptied(session, stretches, queues, JSON.parse(paused) as string[], storeNow);
  return {
    jobs: isShared || rows.length < 2 ? jobs : inOrder(request, jobs, rows),
    now: storeNow,
    nextDueAt: filled ? null : (numbersOrNull(nextDueAt, 1)[0] ?? null),
    suspectsWait: suspectsWait !== null,
  };
}

/** What a claim goes by. Lines may be opened while it is under way: then it must not seem to have known them. */
interface Known {
  readonly names: readonly string[];
  readonly newest: number;
  readonly stretches: readonly Stretch[];
}

async function send(
  session: Session,
  { leaseMs, limit, queues }: ClaimRequest,
  worker: number,
  { names, newest, stretches }: Known,
): Promise<{ readonly rows: ClaimedRow[]; readonly isShared: boolean }> {
  const lines = plain(stretches.map(({ line }) => line.id));
  const queueOf = plain(stretches.map(({ line }) => names.indexOf(line.queue) + 1));
  const places = [
    plain(stretches.map(({ from }) => from.dueAt)),
    plain(stretches.map(({ from }) => from.seq)),
    plain(stretches.map(({ until }) => until.dueAt)),
    plain(stretches.map(({ until }) => until.seq)),
    newest,
  ];
  if (mayTakeAll(session, queues, stretches)) {
    const rows = await session.db.query<ClaimedRow>(CLAIM_ALL, [
      worker,
      leaseMs,
      limit,
      texts(names),
      lines,
      queueOf,
      ...places,
    ]);
    const hasToShare = rows.at(-1)?.[1] !== null;
    if (!hasToShare) return { rows, isShared: false };
  }
  const rows = await session.db.query<ClaimedRow>(CLAIM, [
    worker,
    leaseMs,
    limit,
    texts(names),
    plain(queues.map((quota) => quota.share)),
    plain(queues.map((quota) => quota.retry)),
    plain(queues.map((quota) => quota.redrive)),
    plain(queues.map((quota) => quota.suspect)),
    plain(queues.map((quota) => quota.maxRetriesInFlight)),
    lines,
    queueOf,
    plain(stretches.map(({ line }) => laneCodes.indexOf(line.lane))),
    plain(stretches.map(({ line }) => line.priority)),
    ...places,
  ]);
  return { rows, isShared: true };
}

/** Whether what is due will probably fit, and everything may be taken that does. */
function mayTakeAll(session: Session, queues: readonly QueueQuota[], stretches: readonly Stretch[]): boolean {
  if (queues.some(({ maxRetriesInFlight }) => maxRetriesInFlight !== null)) return false;
  if (stretches.some(({ line }) => line.lane === 'suspect')) return false;
  return !session.lastClaimWasFilled || stretches.every(({ line }) => line.id === stretches[0]?.line.id);
}

/** As they would have been taken lane by lane: these come line by line. There is a place for each, so all are taken. */
function inOrder(request: ClaimRequest, jobs: readonly ClaimedJob[], rows: readonly ClaimedRow[]): ClaimedJob[] {
  const seqs = rows.flatMap((row) => elements(row[5]).map(Number));
  const waiting = jobs
    .map((job, index) => ({ job, seq: seqs[index] as number }))
    .sort((a, b) => a.job.priority - b.job.priority || a.job.dueAt - b.job.dueAt || a.seq - b.seq);
  const laneOf = (queue: string, lane: Lane): string => `${lane} ${queue}`;
  const lanes = new Map<string, ClaimedJob[]>(jobs.map(({ queue, lane }) => [laneOf(queue, lane), []]));
  for (const { job } of waiting) lanes.get(laneOf(job.queue, job.lane))?.push(job);
  const sorted: ClaimedJob[] = [];
  fillQuotas(request, (queue, lane, count) => {
    const taken = lanes.get(laneOf(queue, lane))?.splice(0, count) ?? [];
    sorted.push(...taken);
    return taken.length;
  });
  return sorted;
}

/** The jobs of one row. They come in the order of their line, so the last one of each tells how far it was read. */
async function readClaimed(
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
  await session.kinds.know(new Set(kinds));
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

/** A claim that is not filled has seen the end of every line it was allowed to read. */
function markEmptied(
  session: Session,
  stretches: readonly Stretch[],
  queues: readonly QueueQuota[],
  paused: readonly string[],
  now: number,
): void {
  const capped = new Set(queues.filter((quota) => quota.maxRetriesInFlight !== null).map(({ queue }) => queue));
  const read = stretches.filter(({ line: { queue, lane } }) => {
    if (lane === 'suspect' || paused.includes(queue)) return false;
    return lane !== 'retry' || !capped.has(queue);
  });
  session.reading.emptied(read, now);
}

export async function expired(session: Session, limit: number): Promise<ClaimedJob[]> {
  const rows = await session.db.query<ExpiredRow>(EXPIRED, [limit]);
  await session.kinds.know(rows.map((row) => row[3]));
  await session.lines.know(rows.map((row) => row[2]));
  await session.workers.know(rows.map((row) => row[13]));
  return rows.map((row) => {
    const [id, run, line, kind, dueAt, attempts, crashes, availableAt, firstStartedAt, previousDelayMs] = row;
    const [, , , , , , , , , , enqueuedAt, payload, error, worker, claimedAt, leaseEndsAt, cancelRequested] = row;
    const lastError = error === null ? null : parseFrozen<StoredError>(error);
    const times = { dueAt, availableAt, firstStartedAt, previousDelayMs, enqueuedAt };
    const holding = { worker: session.workers.name(worker), claimedAt, leaseEndsAt, cancelRequested };
    session.hold(id, line, kind, run, null);
    return claimedJob(session, { id, run, line, kind, attempts, crashes, ...times, payload, lastError }, holding);
  });
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

function claimedJob(session: Session, job: StoredJob, holding: Holding): ClaimedJob {
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
  };
}
