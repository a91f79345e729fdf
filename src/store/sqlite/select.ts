import { isTerminal, type JobState } from '../../job.ts';
import { STATE } from '../codes.ts';
import { JobPage, stopped } from '../page.ts';
import {
  isListedByEnd,
  type JobCount,
  type JobFilter,
  type JobList,
  type JobSelection,
  MOST_COUNTED,
  SCAN_ROWS,
  statesOf,
} from '../selection.ts';
import { JOB_COLUMNS, type JobRow, job } from './rows.ts';
import type { Session } from './session.ts';

/* A selection as SQL. What `isSelected` says is true here, but for upper and lower case beyond ASCII in `message`. */

type Value = string | number;

/** Conditions of a WHERE, and the values of their parameters, in order. */
export class Conditions {
  readonly #texts: string[] = [];
  readonly values: Value[] = [];

  add(text: string, ...values: Value[]): this {
    this.#texts.push(text);
    this.values.push(...values);
    return this;
  }

  get sql(): string {
    return this.#texts.length === 0 ? '' : `WHERE ${this.#texts.join(' AND ')}`;
  }
}

/** All conditions but `message` and `limit`. */
export function conditionsOf(selection: JobSelection, now: number): Conditions {
  const { ids, name, queue, reason, error, tag, key, since, until, attempts } = selection;
  const where = new Conditions();
  const wanted = statesOf(selection);
  addStates(where, selection, now);
  if (ids !== undefined) where.add('id IN (SELECT value FROM json_each(?))', JSON.stringify(ids));
  // Not by the index of names, where an error is given: a name may have many more dead jobs than its error has.
  const byName = error === undefined ? 'name' : '+name';
  if (name !== undefined) where.add(`${byName} = (SELECT id FROM strings WHERE text = ?)`, name);
  if (queue !== undefined) where.add('queue = (SELECT id FROM strings WHERE text = ?)', queue);
  if (reason !== undefined) where.add('dead_reason = ?', reason);
  if (error !== undefined) where.add('fingerprint = ?', error);
  if (tag !== undefined) where.add('seq IN (SELECT seq FROM tags WHERE tag = ?)', tag).add(HAS_TAG, tag);
  if (key !== undefined) where.add('key = ?', key);
  const time = timeColumn(wanted);
  if (since !== undefined) where.add(`${time} >= ?`, since);
  if (until !== undefined) where.add(`${time} < ?`, until);
  if (attempts !== undefined) where.add('attempts BETWEEN ? AND ?', attempts.min, attempts.max);
  return where;
}

export const HAS_TAG = 'EXISTS (SELECT 1 FROM json_each(jobs.tags) WHERE value = ?)';

function timeColumn(wanted: readonly JobState[]): string {
  if (wanted.every(isTerminal)) return 'finished_at';
  return wanted.some(isTerminal) ? 'coalesce(finished_at, enqueued_at)' : 'enqueued_at';
}

function addStates(where: Conditions, selection: JobSelection, now: number): void {
  if (selection.state === undefined && selection.reason === undefined) return;
  const wanted = statesOf(selection);
  if (wanted.length === 0) where.add('false');
  else where.add(`(${wanted.map((state) => stateCondition(state, now)).join(' OR ')})`);
}

/** Each repeats the condition of the partial index that serves it; so no value is a parameter. */
function stateCondition(state: JobState, now: number): string {
  switch (state) {
    case 'ready':
      return `(partition IS NOT NULL AND due_at <= ${now})`;
    case 'scheduled':
    case 'retrying':
      return `(partition IS NOT NULL AND state = ${STATE[state]} AND due_at > ${now})`;
    case 'running':
      return `(state = ${STATE.running})`;
    default:
      return `(finished_at IS NOT NULL AND state = ${STATE[state]})`;
  }
}

/** Whether the message of the last error contains the parameter. */
export const HAS_MESSAGE = `
  coalesce(instr(lower(json_extract((SELECT error FROM errors WHERE errors.id = last_error), '$.message')), lower(?)), 0) > 0`;

const POSITION = 'SELECT seq, finished_at FROM jobs WHERE id = ?';

export function list(session: Session, filter: JobFilter): JobList {
  const { after, idPrefix, message, limit } = filter;
  const byEnd = isListedByEnd(filter);
  const where = conditionsOf(filter, session.now);
  if (idPrefix !== undefined) where.add('id >= ?', idPrefix).add('id < ?', `${idPrefix}\u{10ffff}`);
  if (after !== undefined) {
    const last = session.sql(POSITION).get(after) as { seq: number; finished_at: number | null } | undefined;
    if (!last || (byEnd && last.finished_at === null)) return [];
    if (byEnd) where.add('(finished_at, seq) < (?, ?)', last.finished_at as number, last.seq);
    else where.add('seq < ?', last.seq);
  }
  // Running jobs are few: those of their index are sorted, instead of reading all jobs in their order.
  const [state, ...others] = statesOf(filter);
  const isRunning = state === 'running' && others.length === 0;
  const order = byEnd ? 'finished_at DESC, seq DESC' : isRunning ? '+seq DESC' : 'seq DESC';
  const from = `FROM jobs ${where.sql} ORDER BY ${order} LIMIT ?`;
  if (message !== undefined) return search(session, filter, message, `SELECT seq, id ${from}`, where.values);
  const page = new JobPage();
  const found: JobList = [];
  for (const one of session.db.prepare(`SELECT ${JOB_COLUMNS} ${from}`).iterate(...where.values, limit)) {
    const row = one as unknown as JobRow;
    if (!page.takes(row.payload, row.progress, row.result)) return stopped(found);
    found.push(job(session, row));
  }
  return found;
}

/** Looks at SCAN_ROWS jobs, one after the other, until the page is full. */
function search(
  session: Session,
  { limit }: JobFilter,
  message: string,
  sql: string,
  values: readonly Value[],
): JobList {
  const found: JobList = [];
  const matches = session.sql(`SELECT ${HAS_MESSAGE} AS matches FROM jobs WHERE seq = ?`);
  const read = session.sql(`SELECT ${JOB_COLUMNS} FROM jobs WHERE seq = ?`);
  const page = new JobPage();
  let seen = 0;
  for (const row of session.db.prepare(sql).iterate(...values, SCAN_ROWS)) {
    const { seq, id } = row as { seq: number; id: string };
    seen++;
    if ((matches.get(message, seq) as { matches: number }).matches === 1) {
      const match = read.get(seq) as unknown as JobRow;
      if (!page.takes(match.payload, match.progress, match.result)) return stopped(found);
      found.push(job(session, match));
    }
    if (found.length === limit) return found;
    if (seen === SCAN_ROWS) found.stoppedAfter = id;
  }
  return found;
}

export function count(session: Session, selection: JobSelection): JobCount {
  const { message, limit = MOST_COUNTED } = selection;
  const where = conditionsOf(selection, session.now);
  if (message === undefined) {
    const most = Math.min(limit, MOST_COUNTED);
    const sql = `SELECT count(*) AS n FROM (SELECT 1 FROM jobs ${where.sql} LIMIT ?)`;
    const { n } = session.db.prepare(sql).get(...where.values, most) as { n: number };
    return { count: n, isExact: n < MOST_COUNTED };
  }
  const sql = `
    SELECT count(*) AS seen, coalesce(sum(${HAS_MESSAGE}), 0) AS n
    FROM (SELECT last_error FROM jobs ${where.sql} ORDER BY seq DESC LIMIT ?)`;
  const row = session.db.prepare(sql).get(message, ...where.values, SCAN_ROWS) as { seen: number; n: number };
  return { count: Math.min(row.n, limit), isExact: row.seen < SCAN_ROWS };
}
