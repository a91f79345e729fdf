import {
  ALL_NAMES,
  bucketOf,
  byRunTime,
  HISTORY_NAME_LENGTH,
  type HistoryRequest,
  type StoreHistory,
} from '../history.ts';
import { fromColumns } from '../history-columns.ts';
import type { RolledUp } from '../store.ts';
import { numbersOrNull } from './connection/arrays.ts';
import type { Session } from './session.ts';

export async function rollUp({ db }: Session): Promise<RolledUp> {
  const [row] = await db.query<[isDone: boolean]>('SELECT @.roll_up()');
  return { isDone: (row as [boolean])[0] };
}

/** Read before the buckets: what is counted meanwhile is no lie then. */
export async function historyState({ db }: Session): Promise<Pick<StoreHistory, 'now' | 'upTo'>> {
  const [state] = await db.read<[now: number, upTo: number]>('SELECT * FROM @.history_state()');
  const [now, upTo] = state as [number, number];
  return { now, upTo };
}

export async function history(session: Session, request: HistoryRequest): Promise<StoreHistory> {
  const { db } = session;
  const { from, to, stepMs, name } = request;
  const range = [bucketOf(stepMs), from, to];
  const state = await historyState(session);
  const [points, names] = await Promise.all([
    db.read<[at: number, counts: string]>('SELECT at, counts::text FROM @.history_points($1, $2, $3, $4, $5)', [
      ...range,
      stepMs,
      (name ?? ALL_NAMES).slice(0, HISTORY_NAME_LENGTH),
    ]),
    name === undefined
      ? db.read<[name: string, counts: string]>('SELECT name, counts::text FROM @.history_by_name($1, $2, $3)', range)
      : [],
  ]);
  const countsOf = (literal: string) => fromColumns(numbersOrNull(literal) as number[]);
  return {
    ...state,
    points: points.map(([at, counts]) => ({ at, ...countsOf(counts) })),
    names: names.map(([of, counts]) => ({ name: of, ...countsOf(counts) })).sort(byRunTime),
  };
}
