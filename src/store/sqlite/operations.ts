import { type ChangeRequest, isExhausted, type Operation, RESUMED_WITHIN_MS } from '../change.ts';
import type { OrderRow } from '../orders.ts';
import type { Session } from './session.ts';

/* The rows of bulk actions: who ordered what, and how far it has come. */

const COLUMNS = `
  id, action, by, selection, state, started_at AS startedAt, updated_at AS updatedAt, ended_at AS endedAt, changed, skipped,
  canary, note, cursor, next_due_at AS nextDueAt, options`;
const BY_ID = `SELECT ${COLUMNS} FROM operations WHERE id = ?`;
const RUNNING = `SELECT ${COLUMNS} FROM operations WHERE action = ? AND request = ? AND ended_at IS NULL`;
const ADD = `
  INSERT INTO operations (id, action, request, by, selection, state, started_at, updated_at, changed, skipped, canary, next_due_at,
    options)
  VALUES (?1, ?2, ?3, ?4, ?5, 'running', ?6, ?6, 0, 0, '[]', 0, ?7) RETURNING ${COLUMNS}`;
const END = 'UPDATE operations SET state = ?2, note = ?3, ended_at = ?4, updated_at = ?4 WHERE id = ?1';
const MOVE = `
  UPDATE operations SET cursor = ?2, changed = changed + ?3, skipped = skipped + ?4, canary = ?5, next_due_at = ?6, updated_at = ?7,
    options = coalesce(?8, options)
  WHERE id = ?1`;
const RECORD = `
  INSERT INTO operations (id, action, request, by, selection, state, started_at, updated_at, ended_at, changed, skipped, canary, note,
    next_due_at)
  VALUES (?1, ?2, ?1, ?3, ?4, 'done', ?5, ?5, ?5, ?6, 0, '[]', ?7, 0) ON CONFLICT (id) DO NOTHING`;
const LIST = `SELECT ${COLUMNS} FROM operations ORDER BY seq DESC LIMIT ?`;

/** An operation as the next part of it needs it. */
export interface StoredOperation extends Operation {
  /** The job that was looked at last. */
  readonly cursor: readonly number[] | null;
}

interface Row extends Omit<StoredOperation, 'selection' | 'canary' | 'cursor' | 'options'> {
  readonly options: string | null;
  readonly selection: string;
  readonly canary: string;
  readonly cursor: string | null;
}

/** The unfinished operation of the same order, or a new one. */
export function beginOperation(session: Session, request: ChangeRequest): StoredOperation {
  const { id, action, order, by, selection } = request;
  const sent = session.sql(BY_ID).get(id) as Row | undefined;
  if (sent) return fromRow(sent);
  const running = session.sql(RUNNING).get(action, order) as Row | undefined;
  if (running && running.updatedAt > session.now - RESUMED_WITHIN_MS) return fromRow(running);
  if (running) endOperation(session, running.id, 'stopped', 'not continued for a day');
  return fromRow(
    session
      .sql(ADD)
      .get(id, action, order, by, JSON.stringify(selection), session.now, optionsText(request)) as unknown as Row,
  );
}

function optionsText({ options }: ChangeRequest): string | null {
  return options === undefined ? null : JSON.stringify(options);
}

export interface Progress {
  readonly cursor: readonly number[] | null;
  readonly ids: readonly string[];
  readonly skipped: number;
  readonly nextDueAt: number;
  /** Nothing is left after this part. */
  readonly isEnd: boolean;
}

export function moveOperation(
  session: Session,
  operation: StoredOperation,
  request: ChangeRequest,
  progress: Progress,
): Operation {
  const { cursor, ids, skipped, nextDueAt, isEnd } = progress;
  const room = Math.max(0, request.canary - operation.canary.length);
  const canary = JSON.stringify([...operation.canary, ...ids.slice(0, room)]);
  const { id } = operation;
  session
    .sql(MOVE)
    .run(
      id,
      cursor && JSON.stringify(cursor),
      ids.length,
      skipped,
      canary,
      nextDueAt,
      session.now,
      optionsText(request),
    );
  if (isEnd || isExhausted(readOperation(session, id))) endOperation(session, id, 'done', null);
  return toOperation(readOperation(session, id));
}

export function endOperation(session: Session, id: string, state: 'done' | 'stopped', note: string | null): void {
  session.sql(END).run(id, state, note, session.now);
}

/** An order that this transaction carries out. */
export function recordOrder(session: Session, { id, action, by, selection, note, changed }: OrderRow): void {
  session.sql(RECORD).run(id, action, by, JSON.stringify(selection), session.now, changed, note);
}

export function readOperation(session: Session, id: string): StoredOperation {
  return fromRow(session.sql(BY_ID).get(id) as unknown as Row);
}

export function operations(session: Session, limit: number): Operation[] {
  return (session.sql(LIST).all(limit) as unknown as Row[]).map((row) => toOperation(fromRow(row)));
}

function fromRow(row: Row): StoredOperation {
  return {
    ...row,
    selection: JSON.parse(row.selection),
    canary: JSON.parse(row.canary),
    options: row.options === null ? null : JSON.parse(row.options),
    cursor: row.cursor === null ? null : JSON.parse(row.cursor),
  };
}

export function toOperation({ cursor: _cursor, ...operation }: StoredOperation): Operation {
  return operation;
}
