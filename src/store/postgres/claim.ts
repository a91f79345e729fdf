import type { StoredError } from '../../retry/outcome.ts';
import { laneCodes } from '../codes.ts';
import type { Claim, ClaimedJob, ClaimRequest, QueueQuota } from '../store.ts';
import { plain, texts } from './arrays.ts';
import type { Line } from './names.ts';
import type { Session } from './session.ts';

const CLAIM = `
  SELECT * FROM @.claim($1, $2, $3, $4::text[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[],
    $10::int[], $11::int[], $12::smallint[], $13::smallint[], $14::bigint[], $15::bigint[], $16)`;
const EXPIRED = 'SELECT (job).*, worker, claimed_at, lease_ends_at, cancel_requested FROM @.expired($1)';

/** As the type `claimed` has it. */
type ClaimedRow = [
  id: string,
  run: number,
  line: number,
  kind: number,
  dueAt: number,
  seq: number,
  attempts: number,
  crashes: number,
  availableAt: number,
  firstStartedAt: number,
  previousDelayMs: number | null,
  enqueuedAt: number,
  lastError: number | null,
  errorText: string | null,
  payload: string,
];
type ExpiredRow = [
  ...job: ClaimedRow,
  worker: number,
  claimedAt: number,
  leaseEndsAt: number,
  cancelRequested: boolean,
];

export async function claim(session: Session, request: ClaimRequest): Promise<Claim> {
  session.db.longestLeaseMs = Math.max(session.db.longestLeaseMs, request.leaseMs);
  const worker = await session.workers.intern(request.worker);
  for (;;) {
    const answer = await claimFromKnown(session, request, worker);
    if (answer !== null) return answer;
    await session.lines.refresh();
  }
}

/** Null when another process has opened a line that this one does not know yet. */
async function claimFromKnown(session: Session, request: ClaimRequest, worker: number): Promise<Claim | null> {
  const { leaseMs, limit, queues } = request;
  const { newest } = session.lines;
  const names = queues.map(({ queue }) => queue);
  const lines = session.lines.ofQueues(names);
  const ids = lines.map((line) => line.id);
  const from = session.waiting.begin(ids);
  const rows = await session.db
    .query<ClaimedRow>(CLAIM, [
      worker,
      leaseMs,
      limit,
      texts(names),
      plain(queues.map((quota) => quota.share)),
      plain(queues.map((quota) => quota.retry)),
      plain(queues.map((quota) => quota.redrive)),
      plain(queues.map((quota) => quota.suspect)),
      plain(queues.map((quota) => quota.maxRetriesInFlight)),
      plain(ids),
      plain(lines.map((line) => names.indexOf(line.queue) + 1)),
      plain(lines.map((line) => laneCodes.indexOf(line.lane))),
      plain(lines.map((line) => line.priority)),
      plain(from.map((place) => place.dueAt)),
      plain(from.map((place) => place.seq)),
      newest,
    ])
    .finally(() => session.waiting.end());
  const [, suspectsWait, newestLine, , now, , , , nextDueAt, , , , , , paused] = rows.pop() as ClaimedRow;
  if (newestLine > newest) return null;
  const filled = rows.length === limit;
  markRead(session, rows, now);
  if (!filled) markEmptied(session, lines, queues, JSON.parse(paused) as string[], now);
  await session.kinds.know(rows.map((row) => row[3]));
  const held = { worker: request.worker, claimedAt: now, leaseEndsAt: now + leaseMs, cancelRequested: false };
  const errors = errorsOf(rows);
  const jobs = rows.map((row) => claimedJob(session, row, errors, held));
  return { jobs, now, nextDueAt: filled ? null : nextDueAt, suspectsWait: suspectsWait === 1 };
}

/** Rows come in the order of their line, so the last one of each tells how far it was read. */
function markRead(session: Session, rows: readonly ClaimedRow[], now: number): void {
  const last = new Map<number, ClaimedRow>();
  for (const row of rows) last.set(row[2], row);
  for (const [line, [, , , , dueAt, seq]] of last) session.waiting.reached(line, { dueAt, seq }, now);
}

/** A claim that is not filled has seen the end of every line it was allowed to read. */
function markEmptied(
  session: Session,
  lines: readonly Line[],
  queues: readonly QueueQuota[],
  paused: readonly string[],
  now: number,
): void {
  const capped = new Set(queues.filter((quota) => quota.maxRetriesInFlight !== null).map(({ queue }) => queue));
  const read = lines.filter(({ queue, lane }) => {
    if (lane === 'suspect' || paused.includes(queue)) return false;
    return lane !== 'retry' || !capped.has(queue);
  });
  session.waiting.emptied(
    read.map((line) => line.id),
    now,
  );
}

export async function expired(session: Session, limit: number): Promise<ClaimedJob[]> {
  const rows = await session.db.query<ExpiredRow>(EXPIRED, [limit]);
  await session.kinds.know(rows.map((row) => row[3]));
  await session.lines.know(rows.map((row) => row[2]));
  await session.workers.know(rows.map((row) => row[15]));
  const jobs = rows.map((row) => row.slice(0, 15) as ClaimedRow);
  const errors = errorsOf(jobs);
  return rows.map((row, index) => {
    const [worker, claimedAt, leaseEndsAt, cancelRequested] = row.slice(15) as [number, number, number, boolean];
    const held = { worker: session.workers.name(worker), claimedAt, leaseEndsAt, cancelRequested };
    return claimedJob(session, jobs[index] as ClaimedRow, errors, held);
  });
}

/** In a storm they are the same one again and again, so its text comes once. */
function errorsOf(rows: readonly ClaimedRow[]): ReadonlyMap<number, StoredError> {
  const errors = new Map<number, StoredError>();
  for (const [, , , , , , , , , , , , lastError, text] of rows) {
    if (lastError === null || text === null || errors.has(lastError)) continue;
    errors.set(lastError, JSON.parse(text, (_, value: unknown) => Object.freeze(value)) as StoredError);
  }
  return errors;
}

type Holding = Pick<ClaimedJob, 'worker' | 'claimedAt' | 'leaseEndsAt' | 'cancelRequested'>;

function claimedJob(
  session: Session,
  row: ClaimedRow,
  errors: ReadonlyMap<number, StoredError>,
  holding: Holding,
): ClaimedJob {
  const [id, run, lineId, kindId, dueAt, , attempts, crashes, availableAt, firstStartedAt, previousDelayMs] = row;
  const [, , , , , , , , , , , enqueuedAt, lastError, , payload] = row;
  const line = session.lines.get(lineId);
  const kind = session.kinds.get(kindId);
  session.hold(id, { line: lineId, kind: kindId });
  return {
    id,
    run,
    worker: holding.worker,
    name: kind.name,
    queue: line.queue,
    homeQueue: kind.line.queue,
    resource: line.resource,
    lane: line.lane,
    priority: line.priority,
    payload,
    policy: kind.policy,
    attempts,
    crashes,
    enqueuedAt,
    dueAt,
    availableAt,
    firstStartedAt,
    claimedAt: holding.claimedAt,
    leaseEndsAt: holding.leaseEndsAt,
    previousDelayMs,
    lastError: lastError === null ? null : (errors.get(lastError) as StoredError),
    cancelRequested: holding.cancelRequested,
  };
}
