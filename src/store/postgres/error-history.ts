import {
  type ErrorHistoryRequest,
  errorHistorySteps,
  type StoreErrorHistory,
  toErrorSeries,
} from '../error-history.ts';
import { bucketOf } from '../history.ts';
import { historyState } from './history.ts';
import type { Session } from './session.ts';

type PointRow = [fingerprint: string, queue: string, name: string, at: number, failures: number, dead: number];

export async function errorHistory(session: Session, request: ErrorHistoryRequest): Promise<StoreErrorHistory> {
  const { from, to, stepMs, fingerprint = '', name = null, queue = null } = request;
  const state = await historyState(session);
  const rows = await session.db.read<PointRow>('SELECT * FROM @.error_history_points($1, $2, $3, $4, $5, $6, $7)', [
    bucketOf(stepMs, errorHistorySteps),
    from,
    to,
    stepMs,
    fingerprint,
    name,
    queue,
  ]);
  const points = rows.map(([of, ownQueue, ownName, at, failures, dead]) => ({
    fingerprint: of,
    queue: ownQueue,
    name: ownName,
    at,
    failures,
    dead,
  }));
  return { ...state, series: toErrorSeries(points) };
}
