import { STATE } from '../codes.ts';
import type { Session } from './session.ts';

/* How far the ledger is in the history, and where the next part of it ends. */

/** Runs are counted a little later than they are settled, in case the clock is set back a little. */
export const LAG_MS = 1_000;

const MARK = 'SELECT counted_to AS mark FROM history_mark';
export const COMPLETED: string = `FROM jobs WHERE state = ${STATE.completed} AND finished_at IS NOT NULL AND finished_at > ?1 AND finished_at <= ?2`;
export const OTHERS = 'FROM runs WHERE settled_at IS NOT NULL AND settled_at > ?1 AND settled_at <= ?2';
export const LAST_COMPLETED: string = `SELECT finished_at AS at ${COMPLETED} ORDER BY finished_at LIMIT 1 OFFSET ?3`;
export const LAST_OTHER: string = `SELECT settled_at AS at ${OTHERS} ORDER BY settled_at LIMIT 1 OFFSET ?3`;

/** Until when all runs are in the history. */
export function upToOf(session: Session): number {
  const mark = markOf(session);
  const horizon = session.now - LAG_MS;
  return endOfPage(session, mark, horizon, 0) === null ? Math.max(mark, horizon) : mark;
}

export function markOf(session: Session): number {
  return (session.sql(MARK).get() as { mark: number }).mark;
}

/** When the run was settled that comes after so many; null when there is none. */
export function endOfPage(session: Session, mark: number, horizon: number, rows: number): number | null {
  const ends = [LAST_COMPLETED, LAST_OTHER].flatMap((sql) => {
    const row = session.sql(sql).get(mark, horizon, rows) as { at: number } | undefined;
    return row === undefined ? [] : [row.at];
  });
  return ends.length === 0 ? null : Math.min(...ends);
}
