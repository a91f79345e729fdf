import { states } from '../../job.ts';
import type { DeadReason } from '../../retry/decision.ts';
import type { StoredError } from '../../retry/outcome.ts';
import { STATE } from '../codes.ts';
import { JobPage } from '../page.ts';
import type { EndedJob } from '../store.ts';
import type { Session } from './session.ts';

const END = `
  SELECT state, finished_at, result, dead_reason, (SELECT error FROM errors WHERE errors.id = last_error) AS error
  FROM jobs WHERE id = ?`;
const CANCEL_REQUESTED = `SELECT 1 FROM jobs WHERE id = ? AND state = ${STATE.running} AND cancel_requested = 1`;

interface EndRow {
  readonly state: number;
  readonly finished_at: number | null;
  readonly result: string | null;
  readonly dead_reason: string | null;
  readonly error: string | null;
}

/** Other processes see the commit that ends a job, so there is nothing to watch. */
export function ended(session: Session, ids: readonly string[]): EndedJob[] {
  const page = new JobPage();
  return ids.flatMap((id): EndedJob[] => {
    const row = session.sql(END).get(id) as EndRow | undefined;
    if (row === undefined) return [{ id, state: 'not-found', result: null, deadReason: null, error: null }];
    if (row.finished_at === null || (row.result !== null && !page.takes(row.result))) return [];
    return [
      {
        id,
        state: states[row.state] as EndedJob['state'],
        result: row.result,
        deadReason: row.dead_reason as DeadReason | null,
        error: row.error === null ? null : (JSON.parse(row.error) as StoredError),
      },
    ];
  });
}

export function cancelRequested(session: Session, ids: readonly string[]): string[] {
  return ids.filter((id) => session.sql(CANCEL_REQUESTED).get(id) !== undefined);
}
