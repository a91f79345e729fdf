import { isTerminal, type JobState, states } from '../../job.ts';
import { STATE } from '../codes.ts';
import type { Counts } from '../error-groups.ts';
import { cancelRow, holdRow } from '../orders.ts';
import type { CancelAnswer, HoldTarget, Order } from '../store.ts';
import { rollUpJob } from './history.ts';
import { KEY_AFTER_END } from './keys.ts';
import { leaveSlots } from './limit-slots.ts';
import { recordOrder } from './operations.ts';
import { NEVER } from './restrictions.ts';
import type { Session } from './session.ts';

const FIND = 'SELECT seq, state, name, home_queue, partition, fingerprint, limits FROM jobs WHERE id = ?';
const CANCEL_WAITING = `
  UPDATE jobs SET state = ${STATE.cancelled}, partition = NULL, finished_at = ?2, cancel_requested = 0, held_key = ${KEY_AFTER_END}
  WHERE seq = ?1`;
const CANCEL_RUNNING = 'UPDATE jobs SET cancel_requested = 1 WHERE seq = ?';
const DELETE_RUNS = 'DELETE FROM runs WHERE job = ? RETURNING error';
const DELETE_MEMOS = 'DELETE FROM memos WHERE job = ?';
const DELETE_JOB = 'DELETE FROM jobs WHERE seq = ? RETURNING tags';
const DELETE_TAGS = 'DELETE FROM tags WHERE seq = ? AND tag IN (SELECT value FROM json_each(?))';

export interface StoredRow {
  readonly seq: number;
  readonly name: number;
  readonly home_queue: number;
  readonly fingerprint: string | null;
}

interface WaitingRow extends StoredRow {
  readonly state: number;
  readonly partition: number;
  readonly limits: string | null;
}

/** A job changes its state without a run: what that makes of its error group. */
export function moveError(session: Session, row: StoredRow, counts: Partial<Counts>): void {
  session.errorCounts.move({ homeQueue: row.home_queue, name: row.name }, row.fingerprint, counts);
}

export function cancel(session: Session, ids: readonly string[], order?: Order): CancelAnswer[] {
  const answers = ids.map((id) => ({ id, result: cancelOne(session, id) }));
  if (order) recordOrder(session, cancelRow(order, answers));
  return answers;
}

export function cancelOne(session: Session, id: string): CancelAnswer['result'] {
  const row = session.sql(FIND).get(id) as WaitingRow | undefined;
  if (!row) return 'not-found';
  if (isTerminal(states[row.state] as JobState)) return 'already-ended';
  if (row.state === STATE.running) {
    session.sql(CANCEL_RUNNING).run(row.seq);
    return 'cancelling';
  }
  session.sql(CANCEL_WAITING).run(row.seq, session.now);
  session.partitions.leave(row.partition);
  if (row.limits !== null) leaveSlots(session, row.seq, row.limits);
  session.count(row.home_queue, row.name, 'state:cancelled');
  moveError(session, row, { failing: -1 });
  return 'cancelled';
}

/** With its ledger and memos; its logs go by a trigger (log-tables.ts). Its number may be given to another job afterwards. */
export function remove(session: Session, row: StoredRow, state: JobState): void {
  rollUpJob(session, row.seq);
  const runs = session.sql(DELETE_RUNS).all(row.seq) as { error: number | null }[];
  for (const { error } of runs) if (error !== null) session.errors.release(error);
  session.sql(DELETE_MEMOS).run(row.seq);
  const { tags } = session.sql(DELETE_JOB).get(row.seq) as { tags: string | null };
  if (tags !== null) session.sql(DELETE_TAGS).run(row.seq, tags);
  session.count(row.home_queue, row.name, `state:${state}`, -1);
  if (state === 'dead') moveError(session, row, { dead: -1 });
}

export function hold(session: Session, target: HoldTarget, until: number | null, order?: Order): void {
  session.partitions.hold(target, until ?? NEVER);
  if (order) recordOrder(session, holdRow(order, 'pause', target));
}

export function release(session: Session, target: HoldTarget, order?: Order): void {
  session.partitions.hold(target, null);
  if (order) recordOrder(session, holdRow(order, 'resume', target));
}
