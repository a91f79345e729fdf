import type { JobState } from '../../job.ts';
import {
  type ChangeAnswer,
  type ChangeRequest,
  runningSince,
  type SkipReason,
  sizeOfPart,
  stateAfterStop,
  statesToChange,
} from '../change.ts';
import { LANE, STATE } from '../codes.ts';
import { REDRIVEN } from '../error-groups.ts';
import type { JobSelection } from '../selection.ts';
import { holderOf, KEY_AFTER_REDRIVE, type Keyed, wantsKeyAgain } from './keys.ts';
import { cancelOne, moveError, remove, type StoredRow } from './operate.ts';
import {
  beginOperation,
  endOperation,
  moveOperation,
  readOperation,
  type StoredOperation,
  toOperation,
} from './operations.ts';
import { type Conditions, conditionsOf, HAS_MESSAGE, HAS_TAG } from './select.ts';
import type { Session } from './session.ts';

/*
 * One part of a bulk action, in one transaction with the operation's row. The operation looks at its jobs in the order of
 * an index, and its cursor is the job that it looked at last: no part looks again at what an earlier one has seen.
 *
 *   ids given        the list itself; the cursor is a position in it
 *   tag              tags (tag, seq)
 *   redrive, discard jobs_finished, jobs_dead_error or jobs_dead_name: (finished_at, seq)
 *   error            of jobs that have not ended: jobs_error (fingerprint, seq)
 *   runNow           the running ones, by seq: any that stops running meanwhile is found among those that wait. Then
 *                    jobs_waiting: (partition, due_at, seq)
 *   cancel           jobs_waiting; then the running ones; then all again until none is found, because a job may have moved
 *                    behind the cursor meanwhile
 */

/** With `message`, one part looks at so many jobs at most. */
const LOOKED_AT = 10_000;

const REDRIVE = `
  UPDATE jobs SET state = ?5, lane = ${LANE.redrive}, queue = home_queue, partition = ?4,
    due_at = ?2, available_at = ?2, dead_reason = NULL, finished_at = NULL, held_key = ${KEY_AFTER_REDRIVE},
    attempts = CASE WHEN ?3 THEN 0 ELSE attempts END, crashes = CASE WHEN ?3 THEN 0 ELSE crashes END,
    given_back = 0, deferred_since = NULL, snoozes = 0, first_started_at = NULL,
    previous_delay_ms = CASE WHEN ?3 THEN NULL ELSE previous_delay_ms END,
    spent_at = CASE WHEN ?3 THEN NULL ELSE spent_at END, spent_count = CASE WHEN ?3 THEN NULL ELSE spent_count END,
    payload = coalesce(?6, payload)
  WHERE seq = ?1`;
const RUN_AGAIN = `
  UPDATE jobs SET run_now_at = CASE WHEN run_now_at >= claimed_at THEN min(run_now_at, ?2) ELSE ?2 END WHERE seq = ?1`;
const RUN_NOW = 'UPDATE jobs SET due_at = ?2, available_at = min(available_at, ?2) WHERE seq = ?1';

const COLUMNS = `
  seq, id, state, name, home_queue, queue, lane, priority, resource, policy, attempts, crashes, key, key_life, finished_at,
  due_at, partition, fingerprint, limits`;

interface Row extends StoredRow, Keyed {
  readonly id: string;
  readonly state: number;
  readonly name: number;
  readonly queue: number;
  readonly lane: number;
  readonly priority: number;
  readonly resource: number;
  readonly policy: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly limits: string | null;
  readonly finished_at: number | null;
  readonly due_at: number;
  readonly partition: number;
  readonly matches: number;
}

/** Jobs to look at, and where the operation is after each of them. */
interface Part {
  readonly rows: readonly Row[];
  readonly cursorAfter: (row: Row) => readonly number[];
  /** Where it goes on when all of them were looked at; null when the operation is over then. */
  readonly next: (changed: number) => readonly number[] | null;
}

const NONE = { ids: [], skipped: [], cancelling: 0 };

export function change(session: Session, request: ChangeRequest): ChangeAnswer {
  const operation = beginOperation(session, request);
  if (request.stop !== undefined && operation.state !== 'stopped') {
    endOperation(session, operation.id, stateAfterStop(request.action), request.stop);
    return { operation: toOperation(readOperation(session, operation.id)), ...NONE };
  }
  const most = operation.endedAt === null ? sizeOfPart(operation, request.part) : 0;
  if (most === 0) return { operation: toOperation(operation), ...NONE };
  const { rows, cursorAfter, next } = partOf(session, operation, most);
  const ids: string[] = [];
  const skipped: { id: string; why: SkipReason }[] = [];
  const spread = new Spread(operation.nextDueAt, request.intervalMs, session.now);
  let cursor = operation.cursor;
  let looked = 0;
  let cancelling = 0;
  for (const row of rows) {
    if (ids.length + skipped.length === most) break;
    looked++;
    cursor = cursorAfter(row);
    if (row.matches === 0) continue;
    const why = apply(session, row, request, spread);
    if (why === null) ids.push(row.id);
    else skipped.push({ id: row.id, why });
    if (request.action === 'cancel' && row.state === STATE.running) cancelling++;
  }
  const isThrough = looked === rows.length;
  const after = isThrough ? next(operation.changed + ids.length) : cursor;
  const moved = moveOperation(session, operation, request, {
    cursor: after,
    ids,
    skipped: skipped.length,
    nextDueAt: spread.nextDueAt,
    isEnd: isThrough && after === null,
  });
  return { operation: moved, ids, skipped, cancelling };
}

/** The next jobs that the operation concerns: they match now, and were there when it began. */
function partOf(session: Session, operation: StoredOperation, most: number): Part {
  const { action, selection, startedAt, cursor } = operation;
  const applicable = statesToChange(action, selection);
  const narrowed: JobSelection = { ...selection, state: applicable };
  const where = conditionsOf(withoutDriver(narrowed), action === 'cancel' ? startedAt : session.now);
  where.add('cancel_requested = 0');
  if (action === 'cancel') {
    const { wasReady, wasLater } = runningSince(applicable);
    const waited = [...(wasReady ? [`due_at <= ${startedAt}`] : []), ...(wasLater ? [`due_at > ${startedAt}`] : [])];
    where.add(`(${[`state <> ${STATE.running}`, `claimed_at <= ${startedAt}`, ...waited].join(' OR ')})`);
  }
  where.add(action === 'redrive' || action === 'discard' ? 'finished_at <= ?' : 'enqueued_at <= ?', startedAt);
  if (action === 'runNow') where.add('(claimed_at IS NULL OR claimed_at <= ?)', startedAt);
  const read = new Reader(session, selection.message, most);
  if (selection.ids !== undefined) return byIds(read, where, selection.ids, cursor, most);
  if (selection.tag !== undefined) return byTag(read, where, selection.tag, cursor);
  if (action === 'redrive' || action === 'discard') return byEnd(read, where, cursor);
  if (selection.error !== undefined) return byError(read, where, cursor);
  const part = byWaiting(read, where, cursor, roundsOf(action, applicable));
  const following = action === 'runNow' && part.rows.length < read.limit ? part.next(operation.changed) : null;
  return following === null ? part : joined(part, partOf(session, { ...operation, cursor: following }, most));
}

/** The last of the running jobs, and the first of those that wait. */
function joined(running: Part, waiting: Part): Part {
  return {
    rows: [...running.rows, ...waiting.rows],
    cursorAfter: (row) => (row.state === STATE.running ? running : waiting).cursorAfter(row),
    next: waiting.next,
  };
}

/** The conditions that `partOf` itself looks jobs up by. */
function withoutDriver({ ids: _ids, tag, ...rest }: JobSelection): JobSelection {
  return _ids !== undefined && tag !== undefined ? { ...rest, tag } : rest;
}

class Reader {
  readonly #session: Session;
  readonly #message: string | undefined;
  readonly limit: number;

  constructor(session: Session, message: string | undefined, most: number) {
    this.#session = session;
    this.#message = message;
    this.limit = message === undefined ? most : LOOKED_AT;
  }

  rows(where: Conditions, order: string, from = 'jobs', fromValues: readonly (string | number)[] = []): Row[] {
    const matches = this.#message === undefined ? '1' : HAS_MESSAGE;
    const asked = [...(this.#message === undefined ? [] : [this.#message]), ...fromValues];
    const sql = `SELECT ${COLUMNS}, ${matches} AS matches FROM ${from} ${where.sql} ORDER BY ${order} LIMIT ?`;
    return this.#session.db.prepare(sql).all(...asked, ...where.values, this.limit) as unknown as Row[];
  }
}

function byIds(
  read: Reader,
  where: Conditions,
  ids: readonly string[],
  cursor: readonly number[] | null,
  most: number,
): Part {
  const from = cursor?.[0] ?? 0;
  const slice = ids.slice(from, from + most);
  where.add('id IN (SELECT value FROM json_each(?))', JSON.stringify(slice));
  const until = from + slice.length;
  // All of the slice is looked at in this part, so a position within it is never kept.
  return {
    rows: read.rows(where, 'seq'),
    cursorAfter: () => [until],
    next: () => (until < ids.length ? [until] : null),
  };
}

function byTag(read: Reader, where: Conditions, tag: string, cursor: readonly number[] | null): Part {
  where.add(HAS_TAG, tag);
  // Joined in this order: as a condition, the tag would have SQLite list all of its jobs for each part.
  const tagged = '(SELECT seq AS tagged FROM tags WHERE tag = ? AND seq > ?) CROSS JOIN jobs ON jobs.seq = tagged';
  const rows = read.rows(where, 'tagged', tagged, [tag, cursor?.[0] ?? -1]);
  return { rows, cursorAfter: (row) => [row.seq], next: () => nextOf(read, rows, (row) => [row.seq]) };
}

function byEnd(read: Reader, where: Conditions, cursor: readonly number[] | null): Part {
  if (cursor) where.add('(finished_at, seq) > (?, ?)', ...(cursor as [number, number]));
  const cursorAfter = (row: Row): number[] => [row.finished_at as number, row.seq];
  const rows = read.rows(where, 'finished_at, seq');
  return { rows, cursorAfter, next: () => nextOf(read, rows, cursorAfter) };
}

/** By acceptance, which no run changes. */
function byError(read: Reader, where: Conditions, cursor: readonly number[] | null): Part {
  where.add('finished_at IS NULL').add('seq > ?', cursor?.[0] ?? -1);
  const rows = read.rows(where, 'seq', 'jobs INDEXED BY jobs_error');
  const cursorAfter = (row: Row): number[] => [row.seq];
  return { rows, cursorAfter, next: () => nextOf(read, rows, cursorAfter) };
}

const WAITING = 0;
const RUNNING = 1;

/** Which jobs come first, which then, and whether all of that is done again until none is found. */
interface Rounds {
  readonly phases: readonly number[];
  readonly again: boolean;
}

function roundsOf(action: ChangeRequest['action'], states: readonly JobState[]): Rounds {
  const waiting = states.some((state) => state !== 'running') ? [WAITING] : [];
  const running = states.includes('running') ? [RUNNING] : [];
  return action === 'cancel'
    ? { phases: [WAITING, ...running], again: running.length > 0 }
    : { phases: [...running, ...waiting], again: false };
}

/** The cursor: waiting or running, how many jobs were changed before this round, and the position. */
function byWaiting(read: Reader, where: Conditions, cursor: readonly number[] | null, { phases, again }: Rounds): Part {
  const [first = WAITING] = phases;
  const [phase = first, base = 0, ...at] = cursor ?? [];
  const following = phases[phases.indexOf(phase) + 1];
  const afterwards = (changed: number): number[] | null => {
    if (following !== undefined) return [following, base];
    return again && changed > base ? [first, changed] : null;
  };
  if (phase === RUNNING) {
    where.add(`state = ${STATE.running}`).add('+seq > ?', at[0] ?? -1);
    // The plus keeps SQLite from reading the whole table for its order: few jobs run at a time.
    const rows = read.rows(where, '+seq');
    const cursorAfter = (row: Row): number[] => [RUNNING, base, row.seq];
    return { rows, cursorAfter, next: (changed) => nextOf(read, rows, cursorAfter) ?? afterwards(changed) };
  }
  where.add('partition IS NOT NULL');
  if (at.length > 0) where.add('(partition, due_at, seq) > (?, ?, ?)', ...at);
  const cursorAfter = (row: Row): number[] => [WAITING, base, row.partition, row.due_at, row.seq];
  const rows = read.rows(where, 'partition, due_at, seq');
  return { rows, cursorAfter, next: (changed) => nextOf(read, rows, cursorAfter) ?? afterwards(changed) };
}

/** Null when there is nothing behind these rows. */
function nextOf(
  { limit }: Reader,
  rows: readonly Row[],
  cursorAfter: (row: Row) => readonly number[],
): readonly number[] | null {
  const last = rows.at(-1);
  return last === undefined || rows.length < limit ? null : cursorAfter(last);
}

/** Gives each job its due time. */
class Spread {
  nextDueAt: number;
  readonly #intervalMs: number;
  readonly #now: number;

  constructor(nextDueAt: number, intervalMs: number, now: number) {
    this.nextDueAt = nextDueAt;
    this.#intervalMs = intervalMs;
    this.#now = now;
  }

  take(): number {
    if (this.#intervalMs === 0) return this.#now;
    const dueAt = Math.max(this.#now, this.nextDueAt);
    this.nextDueAt = dueAt + this.#intervalMs;
    return Math.floor(dueAt);
  }
}

function apply(session: Session, row: Row, request: ChangeRequest, spread: Spread): SkipReason | null {
  switch (request.action) {
    case 'cancel':
      cancelOne(session, row.id);
      return null;
    case 'pause':
    case 'resume':
    case 'limit':
    case 'schedule':
    case 'gate':
    case 'reveal':
    case 'retention':
      // They select no jobs.
      return null;
    case 'discard':
      remove(session, row, 'dead');
      return null;
    case 'runNow':
      return runNow(session, row, spread.take());
    case 'redrive': {
      const why = refusal(session, row, request);
      if (why === null) redrive(session, row, request, spread.take());
      return why;
    }
  }
}

function runNow(session: Session, row: Row, dueAt: number): SkipReason | null {
  if (row.state === STATE.running) {
    session.sql(RUN_AGAIN).run(row.seq, dueAt);
    return null;
  }
  if (dueAt >= row.due_at) return 'due-sooner';
  session.sql(RUN_NOW).run(row.seq, dueAt);
  session.partitions.fallsDue(row.partition, dueAt);
  session.madeWork = true;
  return null;
}

function refusal(session: Session, row: Row, { keepAttempts }: ChangeRequest): SkipReason | null {
  const { maxAttempts, maxCrashes } = session.policy(row.policy).policy;
  if (keepAttempts && (row.attempts >= maxAttempts || row.crashes >= maxCrashes)) return 'nothing-left';
  if (!wantsKeyAgain(row)) return null;
  const holder = holderOf(session, row.name, row.key);
  return holder === null || holder === row.id ? null : 'key-taken';
}

function redrive(session: Session, row: Row, { keepAttempts, payload }: ChangeRequest, dueAt: number): void {
  const { seq, home_queue: queue, priority, resource, name, limits } = row;
  const key = { queue, lane: LANE.redrive, priority, resource, name, limits };
  const partition = session.partitions.enter(key, dueAt);
  const state = dueAt > session.now ? STATE.scheduled : STATE.ready;
  session.sql(REDRIVE).run(seq, dueAt, keepAttempts ? 0 : 1, partition, state, payload ?? null);
  session.count(queue, name, 'state:dead', -1);
  moveError(session, row, REDRIVEN);
  session.madeWork = true;
}
