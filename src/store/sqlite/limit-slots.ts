import type { Settled } from '../../job.ts';
import type { LimitKey } from '../../limit/limit.ts';
import { afterHandedBack } from '../../limit/rate.ts';
import { LANE } from '../codes.ts';
import { free } from './limit-freed.ts';
import type { StoredKey } from './limit-keys.ts';
import { readNextStart, readSettings, writeNextStart } from './limit-rules.ts';
import type { Session } from './session.ts';

/*
 * Which jobs count in a key: one row for each limit of a job, written in the transaction that changes the job.
 *
 *   a claim takes it     the row is made, or of one that waited becomes a running one
 *   it is settled        the row goes, unless the job waits as a suspect, or as a retry that keeps its turn
 *   it is cancelled      while it waits: the row goes
 *
 * Each of the last two lists the key, so that the partitions which wait for it are brought back (limit-waits.ts).
 */

/** Those above 0 count in the total of the limit. */
export const SLOT = { keepsTurn: 0, suspect: 1, running: 2 } as const;

const TAKE = 'INSERT OR REPLACE INTO limit_slots (name, key, seq, state, keeps_turn) VALUES (?, ?, ?, ?, ?)';
const KEEP = 'UPDATE limit_slots SET state = ?4 WHERE name = ?1 AND key = ?2 AND seq = ?3';
const KEEP_TURN = `
  UPDATE limit_slots SET state = ${SLOT.keepsTurn} WHERE name = ?1 AND key = ?2 AND seq = ?3 AND keeps_turn = 1`;
const LEAVE = 'DELETE FROM limit_slots WHERE name = ? AND key = ? AND seq = ?';

/* It stays in the row when the job is settled. */
const CLAIMED_AT = 'SELECT claimed_at AS claimedAt FROM jobs WHERE seq = ?';

/** A job was claimed. */
export function takeSlot(session: Session, { limit, key }: LimitKey, seq: number, keepsTurn: boolean): void {
  session.sql(TAKE).run(limit, key, seq, SLOT.running, keepsTurn ? 1 : 0);
}

export interface LimitedRow {
  readonly seq: number;
  readonly limits: string;
  /** In which it waits from now on, if it waits. */
  readonly lane: number;
}

/** A job that ran was settled. */
export function settleSlots(session: Session, row: LimitedRow, settled: Pick<Settled, 'ran' | 'dueAt'>): void {
  for (const one of session.limitTexts.parse(row.limits)) {
    const ended = settled.dueAt === null;
    if (!settled.ran && !ended) giveStartBack(session, one, row.seq);
    if (ended || !keepSlot(session, one, row)) {
      session.sql(LEAVE).run(one.limit, one.key, row.seq);
    }
    free(session, one.text);
  }
  session.madeWork = true;
}

/** Whether a job that waits in this lane may hold a place. In another lane it has not run, or asked to come later: others of its key go first. */
export function mayHoldSlot(lane: number): boolean {
  return lane === LANE.suspect || lane === LANE.retry;
}

function keepSlot(session: Session, one: LimitKey, { seq, lane }: LimitedRow): boolean {
  if (!mayHoldSlot(lane)) return false;
  if (lane === LANE.suspect) return session.sql(KEEP).run(one.limit, one.key, seq, SLOT.suspect).changes > 0;
  return session.sql(KEEP_TURN).run(one.limit, one.key, seq).changes > 0;
}

function giveStartBack(session: Session, one: LimitKey, seq: number): void {
  const { rate } = readSettings(session, one);
  if (rate === null) return;
  const { claimedAt } = session.sql(CLAIMED_AT).get(seq) as { claimedAt: number };
  const nextStartAt = afterHandedBack(rate, readNextStart(session, one), session.now - claimedAt);
  writeNextStart(session, one, nextStartAt);
}

/** A job that waited was cancelled. */
export function leaveSlots(session: Session, seq: number, limits: string): void {
  for (const one of session.limitTexts.parse(limits)) leaveSlot(session, one, seq);
}

export function leaveSlot(session: Session, one: StoredKey, seq: number): void {
  if (session.sql(LEAVE).run(one.limit, one.key, seq).changes === 0) return;
  free(session, one.text);
  session.madeWork = true;
}
