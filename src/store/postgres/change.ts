import { StoreBusyError } from '../../errors.ts';
import type { JobState } from '../../job.ts';
import {
  type ChangeAnswer,
  type ChangeRequest,
  type Operation,
  runningSince,
  type SkipReason,
  sizeOfPart,
  stateAfterStop,
  statesToChange,
} from '../change.ts';
import { STATE } from '../codes.ts';
import type { RunNowInside } from '../store.ts';
import { elements, plain } from './connection/arrays.ts';
import { addOwn, Conditions, hasMessage, stateCondition } from './select.ts';
import type { Session } from './session.ts';
import { isUuid } from './uuid.ts';

/*
 * One part of a bulk action: find the operation, read the next jobs that it concerns, and change them with the operation in
 * one transaction (sql/change.ts). The operation looks at its jobs in the order of an index, and its cursor is the job that
 * it looked at last: no part looks again at what an earlier one has seen.
 *
 *   ids given         the list itself; the cursor is a position in it
 *   tag               job_tags: (tag, job)
 *   redrive, discard  finished_by_age or finished_fingerprint: (finished_at, seq)
 *   runNow            the running ones, by id: any that stops running meanwhile is found among those that wait. Then
 *                     live_partition or live_fingerprint: (partition, due_at, seq)
 *   cancel            the same index, and again until it finds none: a job may have moved behind the cursor meanwhile
 */

/** With `message`, one part looks at so many jobs at most. */
const LOOKED_AT = 10_000;
/** Another process that works on the same operation may be quicker so often. */
const MOST_TRIES = 20;
/** Of a job that runs: it was told to stop. */
const CANCELLING = 'cancelling';

const COLUMNS = `
  id, action, by, selection, state, started_at, updated_at, ended_at, changed, skipped, canary, note, cursor,
  next_due_at, options`;
const BEGIN = `SELECT ${COLUMNS} FROM @.begin_operation($1, $2, $3, $4, $5, $6)`;
const STOP = `SELECT ${COLUMNS} FROM @.stop_operation($1, $2)`;
const CHANGE = 'SELECT * FROM @.change($1, $2, $3, $4, $5, $6::uuid[], $7, $8, $9, $10, $11)';

type OperationRow = [
  id: string,
  action: Operation['action'],
  by: string,
  selection: string,
  state: Operation['state'],
  startedAt: number,
  updatedAt: number,
  endedAt: number | null,
  changed: number,
  skipped: number,
  canary: string,
  note: string | null,
  cursor: string | null,
  nextDueAt: string,
  options: string | null,
];

type Cursor = readonly (number | string)[];

/** The next jobs, and where the operation is when they were looked at; null when it is over then. */
interface Part {
  readonly ids: readonly string[];
  readonly next: Cursor | null;
}

export async function change(session: Session, request: ChangeRequest): Promise<ChangeAnswer> {
  const { id, action, order, by, selection, stop } = request;
  const options = optionsText(request);
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const row = only(
      await session.db.query<OperationRow>(BEGIN, [id, action, order, by, JSON.stringify(selection), options]),
    );
    const operation = toOperation(row);
    const none = { operation, ids: [], skipped: [], cancelling: 0 };
    if (stop !== undefined) {
      return {
        ...none,
        operation: toOperation(only(await session.db.query<OperationRow>(STOP, [operation.id, stop]))),
      };
    }
    const most = operation.endedAt === null ? sizeOfPart(operation, request.part) : 0;
    if (most === 0) return none;
    const cursor = row[12];
    const part = await partOf(session, operation, cursor === null ? null : JSON.parse(cursor), most);
    const changed = await apply(session, request, operation, cursor, part, most);
    if (changed === null) continue;
    const after = only(await session.db.query<OperationRow>(BEGIN, [operation.id, action, order, by, '', null]));
    return { ...changed, operation: toOperation(after) };
  }
  throw new StoreBusyError(
    `expected to continue the operation, but others did ${MOST_TRIES} times; nothing was changed here. Try again.`,
  );
}

async function apply(
  session: Session,
  request: ChangeRequest,
  operation: Operation,
  cursor: string | null,
  { ids, next }: Part,
  most: number,
): Promise<Omit<ChangeAnswer, 'operation'> | null> {
  // Reached with this part, whatever became of each job: skipped ones count too.
  const { limit = Number.POSITIVE_INFINITY } = operation.selection;
  const isEnd = next === null || (ids.length === most && operation.changed + operation.skipped + most >= limit);
  const rows = await session.db.query<[id: string | null, why: SkipReason | typeof CANCELLING | null]>(CHANGE, [
    operation.id,
    request.action,
    cursor,
    next === null ? null : JSON.stringify(next),
    isEnd,
    plain(ids),
    request.intervalMs,
    !request.keepAttempts,
    request.canary,
    request.payload ?? null,
    optionsText(request),
  ]);
  if (rows[0]?.[0] === null) return null;
  session.candidates.forget();
  return {
    ids: rows.flatMap(([id, why]) => (why === null || why === CANCELLING ? [id as string] : [])),
    skipped: rows.flatMap(([id, why]) => (why === null || why === CANCELLING ? [] : [{ id: id as string, why }])),
    cancelling: rows.filter(([, why]) => why === CANCELLING).length,
  };
}

function optionsText({ options }: ChangeRequest): string | null {
  return options === undefined ? null : JSON.stringify(options);
}

function only(rows: readonly OperationRow[]): OperationRow {
  return rows[0] as OperationRow;
}

/** The queue itself, and those under which its jobs wait aside or behind limits. */
const QUEUES_OF = `SELECT ?::text UNION ALL SELECT a.aside FROM @.asides a WHERE a.queue = ?
  UNION ALL SELECT q.under FROM @.limited_queues q WHERE q.queue = ?`;

async function partOf(session: Session, operation: Operation, cursor: Cursor | null, most: number): Promise<Part> {
  const { action, selection, startedAt } = operation;
  const { ids, tag, queue, message } = selection;
  const ofDead = action === 'redrive' || action === 'discard';
  const states = statesToChange(action, selection);
  if (states.length === 0) return { ids: [], next: null };
  const where = new Conditions();
  if (ofDead) where.add(`state = ${STATE.dead}`).add('finished_at <= ?', startedAt);
  else
    where
      .add('NOT cancel_requested')
      .add('enqueued_at <= ?', startedAt)
      .add(`(${liveConditions(states, action === 'cancel' ? startedAt : null).join(' OR ')})`);
  if (action === 'runNow') where.add('(claimed_at IS NULL OR claimed_at <= ?)', startedAt);
  if (queue !== undefined && ofDead) where.add('queue = ?', queue);
  if (queue !== undefined && !ofDead)
    where.add(
      `partition IN (SELECT p.id FROM @.partitions p WHERE p.queue = ANY (ARRAY (${QUEUES_OF})))`,
      queue,
      queue,
      queue,
    );
  if (!ofDead && selection.reason !== undefined) return { ids: [], next: null };
  addOwn(where, selection, ofDead ? 'finished_at' : 'enqueued_at');
  const reader: Reader = {
    session,
    table: ofDead ? 'finished' : 'live',
    where,
    message,
    limit: message === undefined ? most : LOOKED_AT,
  };
  if (ids !== undefined) return byIds(reader, ids, tag, cursor, most);
  if (tag !== undefined) return byTag(reader, tag, cursor, most);
  if (ofDead) return byEnd(reader, cursor, most);
  if (action === 'runNow' && states.includes('running') && typeof cursor?.[0] !== 'number') {
    const running = await byRunning(reader, cursor, most);
    if (running.next !== null || states.length === 1) return running;
    const left = most - running.ids.length;
    if (left === 0) return { ids: running.ids, next: [0] };
    const waiting = await partOf(session, operation, [0], left);
    return { ids: [...running.ids, ...waiting.ids], next: waiting.next };
  }
  if (action === 'runNow') where.add('worker IS NULL');
  return byWaiting(reader, cursor, most, action === 'cancel');
}

/** Of rows of `live`, where a job runs when it has a worker. `then`: the time at which it had the state; null for now. */
function liveConditions(states: readonly JobState[], then: number | null): string[] {
  const { wasReady, wasLater } = runningSince(states);
  const since =
    then === null
      ? []
      : [
          `claimed_at <= ${then}`,
          ...(wasReady ? [`due_at <= ${then}`] : []),
          ...(wasLater ? [`due_at > ${then}`] : []),
        ];
  const running = `(worker IS NOT NULL${since.length === 0 ? '' : ` AND (${since.join(' OR ')})`})`;
  return states.map((state) =>
    state === 'running'
      ? running
      : `(worker IS NULL AND ${stateCondition(state, then === null ? undefined : String(then))})`,
  );
}

interface Reader {
  readonly session: Session;
  readonly table: 'live' | 'finished';
  readonly where: Conditions;
  readonly message: string | undefined;
  readonly limit: number;
}

type Read = { readonly id: string; readonly matches: boolean; readonly at: readonly (number | string)[] };

async function read(
  { session, table, where, message, limit }: Reader,
  columns: string,
  order: string,
): Promise<Read[]> {
  const matches = message === undefined ? 'true' : hasMessage(where.bind(message));
  const sql = `SELECT id, ${matches}, ${columns} FROM @.${table} ${where.sql} ORDER BY ${order} LIMIT ${where.bind(limit)}`;
  const rows = await session.db.read<[id: string, matches: boolean, ...at: number[]]>(sql, where.values);
  return rows.map(([id, matched, ...at]) => ({ id, matches: matched, at }));
}

/** As many of them as a part may change, and where the part ends then. */
function taken(
  rows: readonly Read[],
  most: number,
  limit: number,
): { ids: string[]; last: Read | undefined; isAll: boolean } {
  const ids: string[] = [];
  for (const row of rows) {
    if (row.matches) ids.push(row.id);
    if (ids.length === most) return { ids, last: row, isAll: rows.length < limit && row === rows.at(-1) };
  }
  return { ids, last: rows.at(-1), isAll: rows.length < limit };
}

async function byIds(
  reader: Reader,
  ids: readonly string[],
  tag: string | undefined,
  cursor: Cursor | null,
  most: number,
): Promise<Part> {
  const from = (cursor?.[0] as number | undefined) ?? 0;
  const slice = ids.slice(from, from + most);
  reader.where.add('id = ANY (?::uuid[])', plain(slice.filter(isUuid)));
  if (tag !== undefined) reader.where.add('id IN (SELECT job FROM @.job_tags WHERE tag = ?)', tag);
  const found = await read(reader, 'seq', 'seq');
  const until = from + slice.length;
  return { ids: found.filter(({ matches }) => matches).map(({ id }) => id), next: until < ids.length ? [until] : null };
}

async function byTag(reader: Reader, tag: string, cursor: Cursor | null, most: number): Promise<Part> {
  reader.where.add('id IN (SELECT t.job FROM @.job_tags t WHERE t.tag = ?)', tag);
  if (cursor !== null) reader.where.add('id > ?::uuid', cursor[0]);
  const { ids, last, isAll } = taken(await read(reader, 'seq', 'id'), most, reader.limit);
  return { ids, next: isAll || last === undefined ? null : [last.id] };
}

async function byEnd(reader: Reader, cursor: Cursor | null, most: number): Promise<Part> {
  if (cursor !== null) reader.where.add('(finished_at, seq) > (?::bigint, ?::bigint)', cursor[0], cursor[1]);
  const rows = await read(reader, 'finished_at, seq', 'finished_at, seq');
  const { ids, last, isAll } = taken(rows, most, reader.limit);
  return { ids, next: isAll || last === undefined ? null : last.at };
}

/** The cursor: the id. Those that wait follow, with a cursor that is a number. */
async function byRunning(reader: Reader, cursor: Cursor | null, most: number): Promise<Part> {
  const { where, limit } = reader;
  where.add('worker IS NOT NULL').add('id IN (SELECT unnest(h.jobs) FROM @.leases h)');
  if (cursor !== null) where.add('id > ?::uuid', cursor[0]);
  const { ids, last, isAll } = taken(await read(reader, 'seq', 'id'), most, limit);
  return { ids, next: isAll || last === undefined ? null : [last.id] };
}

/** The cursor: whether this round has found a job (1) or not (0), and the position in it. */
async function byWaiting(reader: Reader, cursor: Cursor | null, most: number, inRounds: boolean): Promise<Part> {
  const [hasFound = 0, ...at] = cursor ?? [];
  if (at.length > 0) reader.where.add('(partition, due_at, seq) > (?::bigint, ?::bigint, ?::bigint)', ...at);
  const rows = await read(reader, 'partition, due_at, seq', 'partition, due_at, seq');
  const { ids, last, isAll } = taken(rows, most, reader.limit);
  const found = hasFound === 1 || ids.length > 0 ? 1 : 0;
  if (!isAll && last !== undefined) return { ids, next: [found, ...last.at] };
  return { ids, next: inRounds && found === 1 ? [0] : null };
}

export const RUN_NOW_INSIDE = 'SELECT * FROM @.run_now_inside($1, $2, $3, $4, $5, $6, $7::uuid[], $8, $9)';
/** Partitions may be parked again between the two calls. */
const MOST_ADMISSIONS = 10;

/**
 * `runNow` as part of a caller's transaction, through which `query` sends the values. The transaction does not write to partitions,
 * which are admitted outside of it.
 */
export async function runNowInside(
  session: Session,
  { id, order, by, ids }: RunNowInside,
  notice: string | null,
  query: (values: unknown[]) => Promise<readonly Readonly<Record<string, unknown>>[]>,
): Promise<ChangeAnswer> {
  const selection = { ids };
  const options = { canary: 0, keepAttempts: false, rate: null, continuedBy: null };
  const given = [session.identity, id, order, by, JSON.stringify(selection), JSON.stringify(options)];
  for (let tries = 0; tries < MOST_ADMISSIONS; tries++) {
    const [first, ...jobs] = await query([...given, plain(ids.filter(isUuid)), tries > 0, notice]);
    if (first === undefined) break;
    if (first.parked !== null) {
      await session.db.query('SELECT @.admit_for_caller($1::bigint[])', [first.parked]);
      continue;
    }
    const at = Number(first.at);
    const changed = jobs.map(({ job }) => String(job));
    const operation: Operation = {
      ...{ id, action: 'runNow', by, selection, options, state: 'done', startedAt: at, updatedAt: at, endedAt: at },
      ...{ changed: changed.length, skipped: 0, canary: [], note: null, nextDueAt: 0 },
    };
    return { operation, ids: changed, skipped: [], cancelling: 0 };
  }
  throw new StoreBusyError(
    'expected the partitions of these jobs to be admitted, but they were parked again; nothing was changed. Try again.',
  );
}

export async function operations(session: Session, limit: number): Promise<Operation[]> {
  const sql = `SELECT ${COLUMNS} FROM @.operations ORDER BY seq DESC LIMIT $1`;
  return (await session.db.read<OperationRow>(sql, [limit])).map(toOperation);
}

function toOperation(row: OperationRow): Operation {
  const [
    id,
    action,
    by,
    selection,
    state,
    startedAt,
    updatedAt,
    endedAt,
    changed,
    skipped,
    canary,
    note,
    ,
    nextDueAt,
    options,
  ] = row;
  const first = canary === '{}' ? [] : elements(canary);
  return {
    id,
    action,
    by,
    selection: JSON.parse(selection),
    // The function of the schema knows one way to stop.
    state: state === 'stopped' ? stateAfterStop(action) : state,
    startedAt,
    updatedAt,
    endedAt,
    changed,
    skipped,
    canary: first,
    note,
    // The driver gives a double precision as its text.
    nextDueAt: Number(nextDueAt),
    options: options === null ? null : JSON.parse(options),
  };
}
