import { isTerminal, type JobState, states } from '../../job.ts';
import { LANE, STATE } from '../codes.ts';
import { storedKey } from './limit-keys.ts';
import { leaveSlot, SLOT, settleSlots } from './limit-slots.ts';
import type { PartitionKey } from './partitions.ts';
import type { Session } from './session.ts';

/** So many rows are looked at in one transaction. */
const LOOKED_AT = 1_000;
const EMPTY_QUEUES =
  'DELETE FROM limited_queues WHERE NOT EXISTS (SELECT 1 FROM partitions WHERE partitions.queue = limited_queues.limited)';
const NOT_WAITED_FOR = `
  DELETE FROM limit_freed WHERE waits_for IN (
    SELECT waits_for FROM limit_freed f
    WHERE NOT EXISTS (SELECT 1 FROM partitions p WHERE p.waits_for = f.waits_for) LIMIT ${LOOKED_AT})`;
const LISTS = `
  SELECT name, key, limits, EXISTS (SELECT 1 FROM partitions p WHERE p.limits = l.limits) AS isUsed FROM limit_lists l
  WHERE (name, key, limits) > (?, ?, ?) ORDER BY name, key, limits LIMIT ${LOOKED_AT}`;
const FORGET_LIST = 'DELETE FROM limit_lists WHERE name = ? AND key = ? AND limits = ?';
const RATES = `
  SELECT name, key, next_start_at AS at FROM limit_rates WHERE (name, key) > (?, ?) ORDER BY name, key LIMIT ${LOOKED_AT}`;
const FORGET_RATE = 'DELETE FROM limit_rates WHERE name = ? AND key = ?';
const SLOTS = `
  SELECT s.name AS slotName, s.key, s.seq, s.state AS slot, j.state, j.limits, j.lane, j.partition, j.due_at AS dueAt,
    j.queue, j.priority, j.resource, j.name, p.limits AS partitionLimits
  FROM limit_slots s LEFT JOIN jobs j ON j.seq = s.seq LEFT JOIN partitions p ON p.id = j.partition
  WHERE (s.name, s.key, s.seq) > (?, ?, ?) ORDER BY s.name, s.key, s.seq LIMIT ${LOOKED_AT}`;
const MOVE = 'UPDATE jobs SET partition = ?2 WHERE seq = ?1';

/** All of the job are null when it was deleted. */
interface SlotRow extends PartitionKey {
  readonly slotName: string;
  readonly key: string;
  readonly seq: number;
  readonly slot: number;
  readonly state: number | null;
  readonly limits: string | null;
  readonly partition: number | null;
  readonly dueAt: number;
  readonly partitionLimits: string | null;
}

/** Deletes what says nothing any more, some of it at each call. True when there may be more of it. */
export function forgetLimits(session: Session): boolean {
  session.sql(EMPTY_QUEUES).run();
  const notWaitedFor = session.sql(NOT_WAITED_FOR).run().changes;
  correctSlots(session);
  const hasMoreLists = forgetLists(session);
  return forgetRates(session) || hasMoreLists || notWaitedFor === LOOKED_AT;
}

/** A partition of such limits that is made later lists them again. */
function forgetLists(session: Session): boolean {
  type Row = { readonly name: string; readonly key: string; readonly limits: string; readonly isUsed: number };
  const rows = session.sql(LISTS).all(...session.lastListLookedAt) as unknown as Row[];
  const last = rows.length < LOOKED_AT ? undefined : rows.at(-1);
  session.lastListLookedAt = last === undefined ? ['', '', ''] : [last.name, last.key, last.limits];
  const unused = rows.filter(({ isUsed }) => isUsed === 0);
  for (const { name, key, limits } of unused) session.sql(FORGET_LIST).run(name, key, limits);
  return last !== undefined && unused.length > 0;
}

function forgetRates(session: Session): boolean {
  type Row = { readonly name: string; readonly key: string; readonly at: number };
  const rows = session.sql(RATES).all(...session.lastRateLookedAt) as unknown as Row[];
  const last = rows.length < LOOKED_AT ? undefined : rows.at(-1);
  session.lastRateLookedAt = last === undefined ? ['', ''] : [last.name, last.key];
  const passed = rows.filter(({ at }) => at <= session.now);
  for (const { name, key } of passed) session.sql(FORGET_RATE).run(name, key);
  return last !== undefined && passed.length > 0;
}

/** A version without limits may have ended, cancelled or deleted a job, or have let it wait among jobs without limits. */
function correctSlots(session: Session): void {
  const rows = session.sql(SLOTS).all(...session.lastSlotLookedAt) as unknown as SlotRow[];
  const last = rows.length < LOOKED_AT ? undefined : rows.at(-1);
  session.lastSlotLookedAt = last === undefined ? ['', '', 0] : [last.slotName, last.key, last.seq];
  for (const row of rows) correct(session, row);
}

function correct(session: Session, row: SlotRow): void {
  const { seq, slot, state, limits, lane, partition } = row;
  if (state === null || limits === null || isTerminal(states[state] as JobState)) {
    leaveSlot(session, storedKey({ limit: row.slotName, key: row.key }), seq);
    return;
  }
  if (state === STATE.running || slot !== SLOT.running) return;
  settleSlots(session, { seq, limits, lane }, { ran: true, dueAt: row.dueAt });
  if (lane === LANE.suspect || row.partitionLimits !== null || partition === null) return;
  session.sql(MOVE).run(seq, session.partitions.enter(row, row.dueAt));
  session.partitions.leave(partition);
}
