import type { StoredError } from '../../retry/outcome.ts';
import { laneCodes } from '../codes.ts';
import type { Claim, ClaimedJob, ClaimRequest, QueueQuota } from '../store.ts';
import { plain, texts } from './arrays.ts';
import type { Place } from './marks.ts';
import type { Session } from './session.ts';
import type { Line } from './words.ts';

const CLAIM = `
  SELECT * FROM @.claim($1, $2, $3, $4::text[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[],
    $10::int[], $11::int[], $12::smallint[], $13::smallint[], $14::bigint[], $15::bigint[], $16)`;
const EXPIRED = 'SELECT * FROM @.expired($1, $2)';

/** As the type `claimed` has it. */
type ClaimedRow = [
  id: string | null,
  run: number,
  line: number,
  dueAt: number,
  seq: number,
  attempts: number,
  crashes: number,
  availableAt: number,
  firstStartedAt: number,
  claimedAt: number,
  leaseEndsAt: number,
  previousDelayMs: number | null,
  worker: number,
  cancelRequested: boolean | null,
  lastError: string | null,
  name: number,
  policy: number,
  enqueuedAt: number,
  retryQueue: string | null,
  payload: string,
  home: number,
];

export async function claim(session: Session, request: ClaimRequest): Promise<Claim> {
  session.db.longestLeaseMs = Math.max(session.db.longestLeaseMs, request.leaseMs);
  const wordOf = await session.words.intern([request.worker]);
  for (;;) {
    const answer = await claimFromKnown(session, request, wordOf(request.worker));
    if (answer !== null) return answer;
    await session.lines.refresh();
  }
}

/** Null when another process has opened a line that this one does not know yet. */
async function claimFromKnown(
  session: Session,
  { leaseMs, limit, queues }: ClaimRequest,
  worker: number,
): Promise<Claim | null> {
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
  const [, , , now, newestLine, , , nextDueAt, , , , , , suspectsWait, , , , , , paused] = rows.pop() as ClaimedRow;
  if (newestLine > newest) return null;
  const filled = rows.length === limit;
  markRead(session, rows, now);
  if (!filled) markEmptied(session, lines, queues, JSON.parse(paused) as string[], now);
  const jobs = await claimedJobs(session, rows);
  return { jobs, now, nextDueAt: filled ? null : nextDueAt, suspectsWait: suspectsWait === true };
}

/** Rows come in the order of their line, so the last one of each tells how far it was read. */
function markRead(session: Session, rows: readonly ClaimedRow[], now: number): void {
  const last = new Map<number, ClaimedRow>();
  for (const row of rows) last.set(row[2], row);
  for (const [line, [, , , dueAt, seq]] of last) session.waiting.reached(line, { dueAt, seq }, now);
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

/** All leases are one line, in the order in which they end. */
const LEASES = 0;

export async function expired(session: Session, limit: number): Promise<ClaimedJob[]> {
  const [from] = session.leases.begin([LEASES]) as [Place];
  const rows = await session.db.query<ClaimedRow>(EXPIRED, [limit, from.dueAt]).finally(() => session.leases.end());
  const [, , , now] = rows.pop() as ClaimedRow;
  // Whoever rescues these may fail; until they are settled, the next look must find them again.
  if (rows.length === 0) session.leases.emptied([LEASES], now);
  return claimedJobs(session, rows);
}

async function claimedJobs(session: Session, rows: readonly ClaimedRow[]): Promise<ClaimedJob[]> {
  const { words, lines } = session;
  await words.know(rows.flatMap((row) => [row[12], row[15], row[16]]));
  await lines.know(rows.flatMap((row) => [row[2], row[20]]));
  return rows.map((row) => claimedJob(session, row));
}

function claimedJob(session: Session, row: ClaimedRow): ClaimedJob {
  const [id, run, lineId, dueAt, , attempts, crashes, availableAt, firstStartedAt, claimedAt, leaseEndsAt] = row;
  const [, , , , , , , , , , , previousDelayMs, worker, cancelRequested, lastError, name, policy, enqueuedAt] = row;
  const line = session.lines.get(lineId);
  const job: ClaimedJob = {
    id: id as string,
    run,
    worker: session.words.text(worker),
    name: session.words.text(name),
    queue: line.queue,
    homeQueue: session.lines.get(row[20]).queue,
    resource: line.resource,
    lane: line.lane,
    priority: line.priority,
    payload: row[19],
    policy: session.words.policy(policy),
    attempts,
    crashes,
    enqueuedAt,
    dueAt,
    availableAt,
    firstStartedAt,
    claimedAt,
    leaseEndsAt,
    previousDelayMs,
    lastError: lastError === null ? null : (JSON.parse(lastError) as StoredError),
    cancelRequested: cancelRequested === true,
  };
  session.hold(job, { line: lineId, retryQueue: row[18] });
  return job;
}
