import { parseLimits } from '../../limit/limit.ts';
import type { StoredError } from '../../retry/outcome.ts';
import { suspendedUntil } from '../expiry.ts';
import { parseFrozen } from '../json.ts';
import type { ClaimedJob } from '../store.ts';
import { claimedJob } from './claimed.ts';
import type { Session } from './session.ts';

const OUTAGE = 'SELECT * FROM @.outage()';
const EXPIRED = `
  SELECT (job).id, (job).runs, (job).partition, (job).job_type, (job).due_at, (job).seq, (job).attempts, (job).crashes,
    (job).available_at, (job).first_started_at, (job).previous_delay_ms, (job).enqueued_at, (job).payload, error,
    (job).worker, (job).claimed_at, (job).lease_ends_at, (job).cancel_requested, (job).alone,
    (job).spent_at, (job).spent_count, (job).limits, (job).trace, (job).given_back, (job).deferred_since, (job).snoozes, store_now
  FROM @.now_ms() AS store_now LEFT JOIN LATERAL @.expired($1, $2, $3) ON true`;
/** A search that takes longer has waited: an absence of this length may have cost a lease (connection/absence.ts). */
const QUICK_MS = 1_000;

type ExpiredRow = [
  id: string,
  run: number,
  partition: number,
  jobType: number,
  dueAt: number,
  seq: number,
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
  alone: boolean,
  spentAt: number | null,
  spentCount: number,
  limits: string | null,
  trace: string | null,
  givenBack: number,
  deferredSince: number | null,
  snoozes: number,
  storeNow: number,
];
/** The only row when no lease has expired. */
type NoneRow = [id: null, ...unknown[], storeNow: number];

/**
 * One search at a time: the first one after an outage says that no lease counts as expired for now, and one beside it, which
 * knows nothing of the outage any more, could be quicker.
 */
export function expired(session: Session, limit: number): Promise<ClaimedJob[]> {
  const search = session.lastSearch.then(() => findExpired(session, limit));
  session.lastSearch = search.catch(() => {});
  return search;
}

async function findExpired(session: Session, limit: number): Promise<ClaimedJob[]> {
  const { db } = session;
  const awayMs = db.takeAwayMs();
  let answer: (ExpiredRow | NoneRow)[];
  const began = db.clock.monotonic();
  try {
    answer = await db.query(EXPIRED, [limit, await suspension(session, awayMs), session.lookedAt]);
  } catch (error) {
    db.giveBackAwayMs(awayMs);
    throw error;
  }
  if (db.clock.monotonic() - began >= QUICK_MS) {
    // It waited, for a lock or a connection, and no lease may have been renewed meanwhile. The next search reports that wait.
    db.giveBackAwayMs(awayMs);
    return [];
  }
  session.lookedAt = answer[0]?.at(-1) as number;
  const rows = answer.filter((row): row is ExpiredRow => row[0] !== null);
  if (rows.length === 0) return [];
  const typeOf = await session.jobTypes.load(rows.map((row) => row[3]));
  const partitionOf = await session.partitions.load(rows.map((row) => row[2]));
  const nameOf = await session.workers.names(rows.map((row) => row[14]));
  return rows.flatMap((row) => {
    const [id, run, partition, jobType, dueAt, seq, attempts, crashes, availableAt, firstStartedAt, previousDelayMs] =
      row;
    const [, , , , , , , , , , , enqueuedAt, payload, error, worker, claimedAt, leaseEndsAt, cancelRequested, alone] =
      row;
    const [spentAt, spentCount] = row.slice(19, 21) as [number | null, number];
    const spent = spentAt === null ? null : { at: spentAt, count: spentCount };
    const lastError = error === null ? null : parseFrozen<StoredError>(error);
    const times = { dueAt, seq, availableAt, firstStartedAt, previousDelayMs, enqueuedAt };
    const holding = { worker: nameOf(worker), claimedAt, leaseEndsAt, cancelRequested, alone };
    const home = partitionOf(partition);
    // Another process has settled it meanwhile.
    if (home === undefined) return [];
    const limits = parseLimits(row[21] ?? '');
    const held = { partition: home, jobType: typeOf(jobType), limits };
    session.leases.hold(id, run, held, null);
    const job = {
      id,
      run,
      partition,
      jobType,
      attempts,
      crashes,
      ...times,
      payload,
      lastError,
      spent,
      limits,
      trace: row[22],
      givenBack: row[23],
      deferredSince: row[24],
      snoozes: row[25],
    };
    return [claimedJob(job, home, held.jobType, holding)];
  });
}

/** Until when no lease counts as expired, because this process could not reach the server; null when it could. */
async function suspension({ db }: Session, awayMs: number): Promise<number | null> {
  if (awayMs === 0) return null;
  const [row] = await db.lookUp<[now: number, lastLookAt: number | null, longestLeaseMs: number]>(OUTAGE);
  const [now, lastLookAt, longestLeaseMs] = row as [number, number | null, number];
  return suspendedUntil({ now, awayMs, lastLookAt, longestLeaseMs });
}
