import { STATE } from '../codes.ts';
import { LOOKED_AT, type PruneStep, pruneSteps } from '../retention.ts';
import type { PruneAnswer } from '../store.ts';
import { texts } from './connection/arrays.ts';
import { pruneGates } from './gates.ts';
import { retention } from './retention.ts';
import type { FinishedPlace } from './scan/pruned.ts';
import type { Session } from './session.ts';

/* What is deleted because its time is over: finished jobs, and what was kept of gates, partitions, limits, keys and orders. */

/** So many partitions are looked at when jobs are pruned, unless it takes longer than this. */
const PARTITIONS_AT_ONCE = 10_000;
const LONGEST_LOOK_MS = 100;

/** `moved` have waited aside for too long. */
export async function prune(
  session: Session,
  limit: number,
  asideMs: number | null,
): Promise<{ readonly answer: PruneAnswer; readonly moved: number }> {
  await session.db.query('SELECT @.fold_counts()');
  await session.db.query('SELECT @.fold_error_counts()');
  const { pruned, hasMore: hasMoreJobs } = await pruneJobs(session, limit);
  await prunePartitions(session);
  const hasMoreGates = await pruneGates(session);
  await session.db.query('SELECT @.prune_limits($1)', [PARTITIONS_AT_ONCE]);
  await session.db.query('SELECT @.prune_waits()');
  await session.db.query('SELECT @.prune_operations()');
  const [keys] = await session.db.query<[pruned: number]>('SELECT @.prune_keys($1)', [limit]);
  const hasMoreKeys = (keys as [number])[0] === limit;
  const moved = await leaveAside(session, asideMs, limit);
  const hasMore = hasMoreJobs || hasMoreGates || hasMoreKeys || moved === limit;
  return { answer: { jobs: pruned, isDone: !hasMore }, moved };
}

interface PrunedJobs {
  readonly pruned: number;
  readonly hasMore: boolean;
}

/** Up to `limit` finished jobs that outlived their retention. */
async function pruneJobs(session: Session, limit: number): Promise<PrunedJobs> {
  const steps = pruneSteps(await retention(session));
  session.pruned.jobs.keep(steps);
  let pruned = 0;
  let hasMore = false;
  for (const step of steps) {
    const answer = await pruneStep(session, step, limit - pruned);
    pruned += answer.pruned;
    hasMore ||= answer.hasMore;
  }
  return { pruned, hasMore: hasMore || pruned >= limit };
}

async function pruneStep({ db, pruned: { jobs } }: Session, step: PruneStep, limit: number): Promise<PrunedJobs> {
  const { state, keptMs, names, isOthers } = step;
  const after = jobs.place(step, db.clock.monotonic());
  const [row] = await db.query<[pruned: number, ...FinishedPlace, hasMore: boolean]>(
    'SELECT * FROM @.prune($1::smallint, $2, $3, $4::uuid, $5::text[], $6, $7, $8)',
    [STATE[state], keptMs, ...after, texts(names), isOthers, LOOKED_AT, limit],
  );
  const [pruned, finishedAt, id, hasMore] = row as [number, ...FinishedPlace, boolean];
  jobs.reached(step, [finishedAt, id], hasMore, db.clock.monotonic());
  return { pruned, hasMore };
}

async function leaveAside({ db, cursors }: Session, asideMs: number | null, limit: number): Promise<number> {
  if (asideMs === null) return 0;
  const moved = await db.query<[number, number, number]>('SELECT * FROM @.leave_aside($1, $2)', [asideMs, limit]);
  // They keep their due times, which claims have passed.
  for (const [partition, dueAt, seq] of moved) cursors.rewind(partition, dueAt, seq);
  return moved.length;
}

/** See sql/partitions.ts. */
async function prunePartitions({ db, pruned }: Session): Promise<void> {
  const after = pruned.beginPartitions();
  if (after === null) return;
  const [row] = await db.query<[reached: number]>('SELECT @.prune_partitions($1, $2, $3)', [
    after,
    PARTITIONS_AT_ONCE,
    LONGEST_LOOK_MS,
  ]);
  pruned.endPartitions((row as [number])[0]);
}
