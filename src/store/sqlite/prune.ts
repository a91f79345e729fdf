import { OPERATIONS_KEPT_MS } from '../change.ts';
import { STATE } from '../codes.ts';
import { LOOKED_AT, type PruneStep, pruneSteps } from '../retention.ts';
import type { PruneAnswer } from '../store.ts';
import { leaveAside } from './aside.ts';
import { forgetGates } from './forget-gates.ts';
import { forgetLimits } from './forget-limits.ts';
import { forgetNames } from './forget-names.ts';
import { forgetWindows } from './keys.ts';
import { remove, type StoredRow } from './operate.ts';
import { retention } from './retention.ts';
import { type FinishedPlace, OLDEST_FINISHED } from './retention-tables.ts';
import type { Session } from './session.ts';

/* What is deleted because its time is over: finished jobs, and what was kept of gates, names, limits, keys and orders. */

const FINISHED = `
  SELECT seq, home_queue, name, fingerprint, finished_at FROM jobs
  WHERE state = ?1 AND finished_at >= ?2 AND (finished_at > ?2 OR seq > ?3) AND finished_at <= ?4
  ORDER BY finished_at, seq LIMIT ?5`;

const OLD_OPERATIONS = 'DELETE FROM operations WHERE updated_at <= ?';
const ENDED_HOLDS = 'DELETE FROM holds WHERE until <= ?';

interface FinishedRow extends StoredRow {
  readonly finished_at: number;
}

export function prune(session: Session, limit: number, asideMs: number | null): PruneAnswer {
  const { pruned, hasMore: hasMoreJobs } = pruneJobs(session, limit);
  session.sql(ENDED_HOLDS).run(session.now);
  session.sql(OLD_OPERATIONS).run(session.now - OPERATIONS_KEPT_MS);
  session.errorCounts.prune();
  const hasMoreGates = forgetGates(session);
  const hasMoreNames = forgetNames(session);
  const hasMoreAside = leaveAside(session, asideMs, limit);
  const hasMoreLimits = forgetLimits(session);
  const hasMoreWindows = forgetWindows(session, limit);
  const hasMore = hasMoreJobs || hasMoreGates || hasMoreNames || hasMoreAside || hasMoreLimits || hasMoreWindows;
  return { jobs: pruned, isDone: !hasMore };
}

/** Deletes up to `limit` finished jobs that outlived their retention. */
export function pruneJobs(session: Session, limit: number): { readonly pruned: number; readonly hasMore: boolean } {
  const steps = pruneSteps(retention(session));
  session.pruneCursors.keep(steps);
  let pruned = 0;
  let hasMore = false;
  for (const step of steps) {
    const answer = pruneStep(session, step, limit - pruned);
    pruned += answer.pruned;
    hasMore ||= answer.hasMore;
  }
  return { pruned, hasMore: hasMore || pruned >= limit };
}

function pruneStep(
  session: Session,
  step: PruneStep,
  limit: number,
): { readonly pruned: number; readonly hasMore: boolean } {
  const { now, pruneCursors: cursors, strings } = session;
  // Deleted rows leave nothing behind, so only those that are skipped are worth a cursor.
  const after = step.skips ? cursors.place(step, now) : OLDEST_FINISHED;
  const atOnce = step.skips ? LOOKED_AT : limit;
  const found = session.sql(FINISHED).all(STATE[step.state], ...after, now - step.keptMs, atOnce);
  const names = new Set(step.names);
  let pruned = 0;
  let place: FinishedPlace = after;
  for (const row of found as unknown as FinishedRow[]) {
    if (pruned === limit) break;
    place = [row.finished_at, row.seq];
    if (names.has(strings.text(row.name)) === step.isOthers) continue;
    remove(session, row, step.state);
    pruned++;
  }
  const hasMore = found.length === atOnce || pruned === limit;
  if (step.skips) cursors.reached(step, place, hasMore, now);
  return { pruned, hasMore };
}
