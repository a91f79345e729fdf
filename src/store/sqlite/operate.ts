import { ConfigError } from '../../errors.ts';
import type { JobState } from '../../job.ts';
import { KEY_LIFE, LANE, STATE } from '../codes.ts';
import type { CancelAnswer, DeadSelection, HoldTarget, Redriven, RedriveRefusal, RedriveRequest, Retention } from '../store.ts';
import type { Session } from './session.ts';

const FIND = 'SELECT seq, state, name, home_stream, key_life FROM jobs WHERE id = ?';
const CANCEL_WAITING = `
  UPDATE jobs SET state = ${STATE.cancelled}, finished_at = ?2, cancel_requested = 0,
    held_key = CASE key_life WHEN ${KEY_LIFE.pruned} THEN held_key END
  WHERE seq = ?1`;
const CANCEL_RUNNING = 'UPDATE jobs SET cancel_requested = 1 WHERE seq = ?';
const HOLDER = 'SELECT 1 FROM jobs WHERE name = ? AND held_key = ? AND seq <> ?';
const REDRIVE = `
  UPDATE jobs SET state = ${STATE.ready}, lane = ${LANE.redrive}, stream = home_stream,
    due_at = ?2, available_at = ?2, dead_reason = NULL, finished_at = NULL,
    held_key = CASE WHEN key_life = ${KEY_LIFE.started} THEN NULL ELSE key END,
    attempts = CASE WHEN ?3 THEN 0 ELSE attempts END, crashes = CASE WHEN ?3 THEN 0 ELSE crashes END,
    first_started_at = NULL,
    previous_delay_ms = CASE WHEN ?3 THEN NULL ELSE previous_delay_ms END
  WHERE seq = ?1`;
const DELETE_RUNS = 'DELETE FROM runs WHERE job = ? RETURNING error';
const DELETE_MEMOS = 'DELETE FROM memos WHERE job = ?';
const DELETE_JOB = 'DELETE FROM jobs WHERE seq = ?';
const FINISHED_BEFORE = `
  SELECT seq, home_stream, name FROM jobs WHERE state > 3 AND state = ? AND finished_at <= ?
  ORDER BY finished_at LIMIT ?`;
const PAUSE = 'INSERT INTO paused_queues (queue) VALUES (?) ON CONFLICT DO NOTHING';
const RESUME = 'DELETE FROM paused_queues WHERE queue = ?';

export function cancel(session: Session, ids: readonly string[]): CancelAnswer[] {
  return ids.map((id) => ({ id, result: cancelOne(session, id) }));
}

function cancelOne(session: Session, id: string): CancelAnswer['result'] {
  type Row = { seq: number; state: number; name: number; home_stream: number };
  const row = session.sql(FIND).get(id) as Row | undefined;
  if (!row) return 'not-found';
  if (row.state > STATE.running) return 'already-ended';
  if (row.state === STATE.running) {
    session.sql(CANCEL_RUNNING).run(row.seq);
    return 'cancelling';
  }
  session.sql(CANCEL_WAITING).run(row.seq, session.now);
  session.count(row.home_stream, row.name, 'state:cancelled');
  return 'cancelled';
}

interface DeadRow {
  readonly seq: number;
  readonly id: string;
  readonly name: number;
  readonly home_stream: number;
  readonly policy: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly key: string | null;
  readonly key_life: number;
}

function selectDead(session: Session, selection: DeadSelection): DeadRow[] {
  const { ids, name, queue, reason, limit } = selection;
  if (ids === undefined && name === undefined && queue === undefined && reason === undefined) {
    throw new ConfigError('expected at least one of ids, name, queue or reason to select dead jobs by, got none');
  }
  const sql = `
    SELECT seq, id, name, home_stream, policy, attempts, crashes, key, key_life FROM jobs
    WHERE state > 3 AND state = ${STATE.dead}
      ${ids === undefined ? '' : 'AND id IN (SELECT value FROM json_each(:ids))'}
      ${name === undefined ? '' : 'AND name = (SELECT id FROM words WHERE text = :name)'}
      ${queue === undefined ? '' : 'AND stream IN (SELECT id FROM streams WHERE queue = :queue)'}
      ${reason === undefined ? '' : 'AND dead_reason = :reason'}
    ORDER BY finished_at, seq LIMIT :limit`;
  const bound = {
    ...(ids && { ids: JSON.stringify(ids) }),
    ...(name !== undefined && { name }),
    ...(queue !== undefined && { queue }),
    ...(reason !== undefined && { reason }),
    limit: limit ?? -1,
  };
  return session.sql(sql).all(bound) as unknown as DeadRow[];
}

export function redrive(session: Session, request: RedriveRequest): Redriven {
  const ids: string[] = [];
  const skipped: Redriven['skipped'] = [];
  const promised = new Set<string>();
  for (const row of selectDead(session, request)) {
    const why = refusal(session, row, request, promised);
    if (why) {
      skipped.push({ id: row.id, why });
      continue;
    }
    ids.push(row.id);
    if (wantsKey(row)) promised.add(keyOf(row));
    if (request.dryRun) continue;
    session.sql(REDRIVE).run(row.seq, session.now, request.attempts === 'reset' ? 1 : 0);
    session.count(row.home_stream, row.name, 'state:dead', -1);
    session.madeWork = true;
  }
  return { ids, skipped };
}

/** `promised`: keys already given to an earlier job of this redrive; a dry run has not written them down. */
function refusal(
  session: Session,
  row: DeadRow,
  request: RedriveRequest,
  promised: ReadonlySet<string>,
): RedriveRefusal | null {
  const { maxAttempts, maxCrashes } = session.policy(row.policy);
  if (request.attempts === 'keep' && (row.attempts >= maxAttempts || row.crashes >= maxCrashes)) return 'nothing-left';
  if (!wantsKey(row)) return null;
  const taken = promised.has(keyOf(row)) || session.sql(HOLDER).get(row.name, row.key, row.seq);
  return taken ? 'key-taken' : null;
}

/** A key that lasts until the first start was given up at that start; a redrive does not ask for it again. */
function wantsKey(row: DeadRow): row is DeadRow & { key: string } {
  return row.key !== null && row.key_life !== KEY_LIFE.started;
}

function keyOf(row: DeadRow): string {
  return `${row.name} ${row.key}`;
}

export function discard(session: Session, selection: DeadSelection): string[] {
  return selectDead(session, selection).map((row) => {
    remove(session, row, 'dead');
    return row.id;
  });
}

/** With its ledger and memos: a number may be given out again after it. */
function remove(session: Session, row: { seq: number; home_stream: number; name: number }, state: JobState): void {
  const runs = session.sql(DELETE_RUNS).all(row.seq) as { error: number | null }[];
  for (const { error } of runs) if (error !== null) session.errors.release(error);
  session.sql(DELETE_MEMOS).run(row.seq);
  session.sql(DELETE_JOB).run(row.seq);
  session.count(row.home_stream, row.name, `state:${state}`, -1);
}

export function prune(session: Session, retention: Retention, limit: number): number {
  let pruned = 0;
  const keptFor = [
    ['completed', retention.completedMs],
    ['dead', retention.deadMs],
    ['cancelled', retention.cancelledMs],
  ] as const;
  for (const [state, ms] of keptFor) {
    if (ms === null) continue;
    const rows = session.sql(FINISHED_BEFORE).all(STATE[state], session.now - ms, limit - pruned);
    for (const row of rows as { seq: number; home_stream: number; name: number }[]) {
      remove(session, row, state);
    }
    pruned += rows.length;
  }
  return pruned;
}

export function hold(session: Session, target: HoldTarget): void {
  const queue = 'queue' in target ? target.queue : '';
  session.sql(PAUSE).run(queue);
}

export function release(session: Session, target: HoldTarget): void {
  const queue = 'queue' in target ? target.queue : '';
  session.sql(RESUME).run(queue);
  session.madeWork = true;
}
