import type { Lane } from '../../job.ts';
import { isRetry, lanes } from '../../job.ts';
import { LANE, STATE } from '../codes.ts';
import { fillQuotas } from '../fill.ts';
import type { ClaimRequest } from '../store.ts';
import {
  AT,
  byService,
  CLAIMED_COLUMNS,
  type ClaimedRow,
  legend,
  type PackedClaim,
  packRows,
  taken,
} from './packed-claim.ts';
import type { Session } from './session.ts';
import type { Stream } from './words.ts';

/*
 * A claim walks the index of waiting jobs: per stream and lane, from one stored priority to the next, and in
 * each only over jobs that are due. So it touches what it takes, plus a probe per priority in use.
 */
const NEXT_PRIORITY = `
  SELECT priority FROM jobs WHERE state < 3 AND stream = ? AND lane = ? AND priority >= ?
  ORDER BY priority LIMIT 1`;
/* The plus keeps SQLite from planning anew for each limit, which takes longer than the rest. */
const DUE = `
  SELECT ${CLAIMED_COLUMNS} FROM jobs
  WHERE state < 3 AND stream = ? AND lane = ? AND priority = ? AND due_at <= ?
  ORDER BY due_at, seq LIMIT +?`;
const NEXT_DUE = `
  SELECT due_at FROM jobs WHERE state < 3 AND stream = ? AND lane = ? AND priority = ? AND due_at > ?
  ORDER BY due_at LIMIT 1`;
/*
 * No RETURNING: it would copy every row once more. Nobody else can write inside this transaction, so the rows that
 * were just read are known to be what they are now, but for what is set here (see `taken`). key_life 0: the key is
 * given up at the first start.
 */
const TAKE = `
  UPDATE jobs SET state = ${STATE.running}, runs = runs + 1, attempts = attempts + 1, worker = ?2, claimed_at = ?3,
    lease_ends_at = ?4, first_started_at = coalesce(first_started_at, ?3),
    held_key = CASE key_life WHEN 0 THEN NULL ELSE held_key END
  WHERE seq IN (SELECT value FROM json_each(?1))`;
const RETRIES_RUNNING = `
  SELECT count(*) AS n FROM jobs
  WHERE state = ${STATE.running} AND lane IN (${LANE.retry}, ${LANE.suspect})
    AND stream IN (SELECT id FROM streams WHERE queue = ?)`;
const PAUSED = 'SELECT queue FROM paused_queues';

/** Answers a claim that would find nothing without a write transaction; null when there may be something. */
export function claimNothing(session: Session, request: ClaimRequest): PackedClaim | null {
  session.streams.refresh();
  const open = withoutPaused(session, request);
  for (const { queue, suspect } of open.queues) {
    for (const lane of lanes) {
      if ((lane === 'suspect') !== suspect > 0) continue;
      if (findDue(session, queue, lane, 1).length > 0) return null;
    }
  }
  return answer(session, open, [], new RetryRoom(session, open));
}

export function claim(session: Session, request: ClaimRequest): PackedClaim {
  session.streams.refresh();
  const open = withoutPaused(session, request);
  const room = new RetryRoom(session, open);
  const rows: ClaimedRow[] = [];
  fillQuotas(open, (queue, lane, count) => {
    const allowed = Math.min(count, room.left(queue, lane));
    const taken = take(session, open, findDue(session, queue, lane, allowed));
    room.use(queue, lane, taken.length);
    rows.push(...taken);
    return taken.length;
  });
  return answer(session, open, rows, room);
}

function withoutPaused(session: Session, request: ClaimRequest): ClaimRequest {
  const paused = session.sql(PAUSED).all() as { queue: string }[];
  if (paused.length === 0) return request;
  return { ...request, queues: request.queues.filter(({ queue }) => !paused.some((row) => row.queue === queue)) };
}

function findDue(session: Session, queue: string, lane: Lane, count: number): ClaimedRow[] {
  const streams = session.streams.ofQueue(queue);
  if (count <= 0) return [];
  if (streams.length === 1) return findDueInStream(session, streams[0] as Stream, lane, count);
  return streams
    .flatMap((stream) => findDueInStream(session, stream, lane, count))
    .sort(byService)
    .slice(0, count);
}

function findDueInStream(session: Session, stream: Stream, lane: Lane, count: number): ClaimedRow[] {
  const found: ClaimedRow[] = [];
  for (const priority of priorities(session, stream, lane)) {
    const left = count - found.length;
    const rows = session.arrays(DUE).all(stream.id, LANE[lane], priority, session.now, left);
    found.push(...(rows as unknown as ClaimedRow[]));
    if (found.length >= count) break;
  }
  return found;
}

function* priorities(session: Session, stream: Stream, lane: Lane): Generator<number> {
  let next = 0;
  for (;;) {
    const row = session.sql(NEXT_PRIORITY).get(stream.id, LANE[lane], next);
    if (!row) return;
    const { priority } = row as { priority: number };
    yield priority;
    next = priority + 1;
  }
}

function take(session: Session, request: ClaimRequest, found: readonly ClaimedRow[]): ClaimedRow[] {
  if (found.length === 0) return [];
  const { now, inHand } = session;
  const seqs = JSON.stringify(found.map((row) => row[AT.seq]));
  session.sql(TAKE).run(seqs, session.words.intern(request.worker), now, now + request.leaseMs);
  const rows = found.map((row) => taken(row, now));
  for (const row of rows) inHand.add(row);
  return rows;
}

function answer(session: Session, request: ClaimRequest, rows: ClaimedRow[], room: RetryRoom): PackedClaim {
  const queues = request.queues.map(({ queue }) => queue);
  return {
    jobs: packRows(rows),
    now: session.now,
    worker: request.worker,
    leaseEndsAt: session.now + request.leaseMs,
    nextDueAt: rows.length < request.limit ? nextDue(session, queues) : null,
    suspectsWait: queues.some(
      (queue) => room.left(queue, 'suspect') > 0 && findDue(session, queue, 'suspect', 1).length > 0,
    ),
    ...legend(session, rows),
  };
}

function nextDue(session: Session, queues: readonly string[]): number | null {
  let earliest: number | null = null;
  for (const stream of queues.flatMap((queue) => session.streams.ofQueue(queue))) {
    for (const lane of lanes) {
      for (const priority of priorities(session, stream, lane)) {
        const row = session.sql(NEXT_DUE).get(stream.id, LANE[lane], priority, session.now);
        const dueAt = (row as { due_at: number } | undefined)?.due_at;
        if (dueAt !== undefined && (earliest === null || dueAt < earliest)) earliest = dueAt;
      }
    }
  }
  return earliest;
}

/** How many more retries of each capped queue may start, over all workers. */
class RetryRoom {
  readonly #left: Map<string, number> = new Map();

  constructor(session: Session, request: ClaimRequest) {
    for (const { queue, maxRetriesInFlight } of request.queues) {
      if (maxRetriesInFlight === null) continue;
      const running = (session.sql(RETRIES_RUNNING).get(queue) as { n: number }).n;
      this.#left.set(queue, Math.max(0, maxRetriesInFlight - running));
    }
  }

  left(queue: string, lane: Lane): number {
    return isRetry(lane) ? (this.#left.get(queue) ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
  }

  use(queue: string, lane: Lane, count: number): void {
    const left = this.#left.get(queue);
    if (left !== undefined && isRetry(lane)) this.#left.set(queue, left - count);
  }
}
