import { isTerminal, type JobState } from '../../job.ts';
import { DEAD_REASON, STATE, WAITING } from '../codes.ts';
import { PAGE_BYTES, stopped } from '../page.ts';
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
import { plain } from './connection/arrays.ts';
import { BYTES, FINISHED_JOBS, get, type JobRow, jobsOf, LIVE_JOBS, toJobs } from './read.ts';
import type { Session } from './session.ts';
import { isUuid } from './uuid.ts';

/* A selection as SQL. What `isSelected` says is true here. */

/** Conditions of a WHERE, and the values of their parameters. `?` stands for the parameter. */
export class Conditions {
  readonly values: unknown[];
  readonly #texts: string[] = [];

  constructor(values: readonly unknown[] = []) {
    this.values = [...values];
  }

  add(text: string, ...values: unknown[]): this {
    this.#texts.push(values.reduce<string>((sql, value) => sql.replace('?', this.bind(value)), text));
    return this;
  }

  /** The name of a parameter with this value. */
  bind(value: unknown): string {
    return `$${this.values.push(value)}`;
  }

  get sql(): string {
    return this.#texts.length === 0 ? '' : `WHERE ${this.#texts.join(' AND ')}`;
  }
}

/** All conditions but `message` and `limit`, for rows as `jobsOf` reads them. */
export function addSelection(where: Conditions, selection: JobSelection): Conditions {
  const { ids, queue, tag } = selection;
  addStates(where, selection);
  if (ids !== undefined) where.add('id = ANY (?::uuid[])', plain(ids.filter(isUuid)));
  if (queue !== undefined) where.add('queue = ?', queue);
  if (tag !== undefined) where.add('id IN (SELECT job FROM @.job_tags WHERE tag = ?)', tag);
  return addOwn(where, selection, timeColumn(statesOf(selection)));
}

/** Those that live and finished rows have in columns of the same name. */
export function addOwn(where: Conditions, selection: JobSelection, time: string): Conditions {
  const { name, reason, error, key, since, until, attempts } = selection;
  if (name !== undefined) where.add('job_type IN (SELECT id FROM @.job_types WHERE name = ?)', name);
  if (reason !== undefined) where.add('dead_reason = ?', DEAD_REASON[reason]);
  if (error !== undefined) where.add('fingerprint = ?', error);
  if (key !== undefined) where.add('key = ?', key);
  if (since !== undefined) where.add(`${time} >= ?`, since);
  if (until !== undefined) where.add(`${time} < ?`, until);
  if (attempts !== undefined) where.add('attempts BETWEEN ? AND ?', attempts.min, attempts.max);
  return where;
}

function timeColumn(wanted: readonly JobState[]): string {
  if (wanted.every(isTerminal)) return 'finished_at';
  return wanted.some(isTerminal) ? 'coalesce(finished_at, enqueued_at)' : 'enqueued_at';
}

function addStates(where: Conditions, selection: JobSelection): void {
  if (selection.state === undefined && selection.reason === undefined) return;
  const wanted = statesOf(selection);
  if (wanted.length === 0) {
    where.add('false');
    return;
  }
  // Running jobs are few, and their leases name them: all others need not be read.
  if (wanted.every((state) => state === 'running')) where.add('id = ANY (ARRAY(SELECT unnest(jobs) FROM @.leases))');
  where.add(`(${wanted.map((state) => stateCondition(state)).join(' OR ')})`);
}

export function stateCondition(state: JobState, now = '@.now_ms()'): string {
  switch (state) {
    case 'ready':
      return `(state IN (${WAITING}) AND due_at <= ${now})`;
    case 'scheduled':
    case 'retrying':
      return `(state = ${STATE[state]} AND due_at > ${now})`;
    default:
      return `(state = ${STATE[state]})`;
  }
}

/** The tables that have jobs of these states: a list of the dead does not read through all that waits. */
function tablesOf(selection: JobSelection): string[] {
  const wanted = statesOf(selection);
  const tables = wanted.some((state) => !isTerminal(state)) ? [LIVE_JOBS] : [];
  if (wanted.some(isTerminal)) tables.push(FINISHED_JOBS);
  return tables.length === 0 ? [FINISHED_JOBS] : tables;
}

/** Each table is read by itself, as far as `rest` says: over both, PostgreSQL would read and sort all their rows. */
function fromEach(tables: readonly string[], columns: string, rest: string): string {
  return tables.map((table) => `(SELECT ${columns} FROM (${table}) j ${rest})`).join(' UNION ALL ');
}

/** Jobs with tags, which are looked up one by one in the order of their ids, wherever they are. `rest` says which tag. */
function tagged(tables: readonly string[], rest: string): string {
  return `SELECT j.* FROM @.job_tags t CROSS JOIN LATERAL (${fromEach(tables, '*', 'WHERE j.id = t.job')}) j ${rest}`;
}

/** Whether the message of the last error contains the parameter. */
export function hasMessage(parameter: string): string {
  const message = "(SELECT e.error::json ->> 'message' FROM @.errors e WHERE e.id = last_error)";
  return `coalesce(strpos(lower(${message}), lower(${parameter})) > 0, false)`;
}

/** By end, or by id, which begins with the time it was made: both tables have an index for that. */
export async function list(session: Session, filter: JobFilter): Promise<JobList> {
  const { after, idPrefix, message, limit } = filter;
  const byEnd = isListedByEnd(filter);
  const { tag, ...untagged } = filter;
  const isByTag = tag !== undefined && !byEnd;
  const where = addSelection(new Conditions(), isByTag ? untagged : filter);
  if (isByTag) where.add('t.tag = ?', tag);
  if (idPrefix !== undefined) {
    const [first, last] = rangeOf(idPrefix);
    if (first === null || last === null) return [];
    where.add('id BETWEEN ?::uuid AND ?::uuid', first, last);
  }
  if (after !== undefined) {
    if (!isUuid(after)) return [];
    if (byEnd)
      where.add('(finished_at, seq) < (SELECT f.finished_at, f.seq FROM @.finished f WHERE f.id = ?::uuid)', after);
    else where.add('id < ?::uuid', after);
  }
  const order = byEnd ? 'finished_at DESC, seq DESC' : 'id DESC';
  const tables = tablesOf(filter);
  const rowsUpTo = (most: string, columns = '*'): string => {
    if (isByTag) return tagged(tables, `${where.sql} ORDER BY t.job DESC LIMIT ${most}`);
    const each = fromEach(tables, columns, `${where.sql} ORDER BY ${order} LIMIT ${most}`);
    return `SELECT * FROM (${each}) a ORDER BY ${order} LIMIT ${most}`;
  };
  if (message === undefined) {
    const sql = `${jobsOf(inOnePage(rowsUpTo(where.bind(limit)), order), ', found')} ORDER BY ${order}`;
    const rows = await session.db.read<[...JobRow, found: number]>(sql, where.values);
    const jobs = await toJobs(
      session,
      rows.map((row) => row.slice(0, -1) as JobRow),
    );
    return rows.length < (rows[0]?.at(-1) as number) ? stopped(jobs) : jobs;
  }
  // Of the rows that are looked at, only what the search needs: whole rows would be sorted on disk.
  const looked = rowsUpTo(String(SCAN_ROWS), 'id, last_error, finished_at, seq');
  const edge = `SELECT id FROM (${looked}) e OFFSET ${SCAN_ROWS - 1}`;
  const before = [...where.values];
  const sql = `SELECT id FROM (${looked}) s WHERE ${hasMessage(where.bind(message))} ORDER BY ${order} LIMIT ${where.bind(limit)}`;
  const ids = await session.db.read<[id: string]>(sql, where.values);
  const found: JobList = await get(
    session,
    ids.map(([id]) => id),
  );
  if (ids.length === limit || found.stoppedAfter !== undefined) return found;
  const [last] = await session.db.read<[id: string]>(edge, before);
  if (last !== undefined) found.stoppedAfter = last[0];
  return found;
}

/** As many of these rows as one answer may carry by their bytes, and at least one. `found`: how many there are. */
function inOnePage(rows: string, order: string): string {
  const sums = `count(*) OVER () AS found, row_number() OVER w AS place, sum(${BYTES}) OVER w AS bytes`;
  return `SELECT * FROM (SELECT r.*, ${sums} FROM (${rows}) r WINDOW w AS (ORDER BY ${order})) p WHERE place = 1 OR bytes <= ${PAGE_BYTES}`;
}

/** The first and the last id that begin like this; null when none can. */
function rangeOf(prefix: string): [string | null, string | null] {
  const digits = prefix.replaceAll('-', '');
  if (!/^[0-9a-f]{0,32}$/.test(digits)) return [null, null];
  const padded = (filler: string): string =>
    digits.padEnd(32, filler).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return [padded('0'), padded('f')];
}

export async function count(session: Session, selection: JobSelection): Promise<JobCount> {
  const { message, limit = MOST_COUNTED } = selection;
  const { tag, ...untagged } = selection;
  const isByTag = tag !== undefined && message === undefined;
  const where = addSelection(new Conditions(), isByTag ? untagged : selection);
  if (isByTag) where.add('t.tag = ?', tag);
  const tables = tablesOf(selection);
  if (message === undefined) {
    const most = where.bind(Math.min(limit, MOST_COUNTED));
    const upToMost = `${where.sql} LIMIT ${most}`;
    const rows = isByTag
      ? tagged(tables, upToMost)
      : `SELECT 1 FROM (${fromEach(tables, '1', upToMost)}) b LIMIT ${most}`;
    const sql = `SELECT count(*) FROM (${rows}) c`;
    const [row] = await session.db.read<[n: number]>(sql, where.values);
    const [n] = row as [number];
    return { count: n, isExact: n < MOST_COUNTED };
  }
  const newest = fromEach(tables, 'id, last_error', `${where.sql} ORDER BY id DESC LIMIT ${SCAN_ROWS}`);
  const sql = `
    SELECT count(*), count(*) FILTER (WHERE ${hasMessage(where.bind(message))})
    FROM (SELECT last_error FROM (${newest}) b ORDER BY id DESC LIMIT ${SCAN_ROWS}) c`;
  const [row] = await session.db.read<[seen: number, n: number]>(sql, where.values);
  const [seen, n] = row as [number, number];
  return { count: Math.min(n, limit), isExact: seen < SCAN_ROWS };
}
