import type { Lane } from '../../job.ts';
import { LANE } from '../codes.ts';
import { fillQuotas } from '../fill.ts';
import type { Claim, ClaimedJob, ClaimRequest, QueueQuota } from '../store.ts';
import { type ClaimedRow, readClaimed } from './claimed.ts';
import { elements, numbersOrNull, plain, texts } from './connection/arrays.ts';
import type { Stretch } from './scan/scan-cursor.ts';
import type { Session } from './session.ts';

const CLAIM = `
  SELECT * FROM @.claim($1, $2, $3, $4::text[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[],
    $10::int[], $11::int[], $12::smallint[], $13::smallint[], $14::bigint[], $15::bigint[], $16::bigint[],
    $17::bigint[], $18)`;
const CLAIM_ALL = `
  SELECT * FROM @.claim_all($1, $2, $3, $4::text[], $5::int[], $6::int[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11)`;

const KNOW_AGAIN_MS = 100;

export async function claim(session: Session, request: ClaimRequest): Promise<Claim> {
  const worker = await session.workers.intern(request.worker);
  for (;;) {
    const look = session.reading.look();
    const answer = await claimFromKnown(session, request, worker);
    // It went on beside the claim. One that found nothing goes again when the look did.
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
  await knowKinds(session, rows, leaseMs);
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

/** The jobs are leased to this worker by now, so what is still to be read of them is asked for as long as the lease lasts. */
async function knowKinds({ db, kinds }: Session, rows: readonly ClaimedRow[], leaseMs: number): Promise<void> {
  const ids = new Set(rows.flatMap((row) => elements(row[3]).map(Number)));
  const patientUntil = db.clock.monotonic() + leaseMs;
  for (;;) {
    try {
      await kinds.know(ids);
      return;
    } catch (error) {
      if (db.clock.monotonic() >= patientUntil) throw error;
      await db.pause(KNOW_AGAIN_MS);
    }
  }
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
    plain(stretches.map(({ line }) => LANE[line.lane])),
    plain(stretches.map(({ line }) => line.priority)),
    ...places,
  ]);
  return { rows, isShared: true };
}

/** Whether what is due will probably fit, and everything may be taken that does. */
function mayTakeAll(session: Session, queues: readonly QueueQuota[], stretches: readonly Stretch[]): boolean {
  if (queues.some(({ maxRetriesInFlight, suspect }) => maxRetriesInFlight !== null || suspect > 0)) return false;
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

/** A claim that is not filled has seen the end of every line it was allowed to read. */
function markEmptied(
  session: Session,
  stretches: readonly Stretch[],
  queues: readonly QueueQuota[],
  paused: readonly string[],
  now: number,
): void {
  const capped = new Set(queues.filter((quota) => quota.maxRetriesInFlight !== null).map(({ queue }) => queue));
  const onTrial = new Set(queues.filter((quota) => quota.suspect > 0).map(({ queue }) => queue));
  const read = stretches.filter(({ line: { queue, lane } }) => {
    if (lane === 'suspect' || onTrial.has(queue) || paused.includes(queue)) return false;
    return lane !== 'retry' || !capped.has(queue);
  });
  session.reading.emptied(read, now);
}
