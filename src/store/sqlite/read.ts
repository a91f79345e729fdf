import type { Job, JobState, RunRecord } from '../../job.ts';
import { states } from '../../job.ts';
import { STATE } from '../codes.ts';
import type { ClaimedJob, JobFilter, QueueInfo, StatsRow, StoreStats } from '../store.ts';
import { emptyTotals, type MutableTotals } from '../totals.ts';
import { CLAIMED_COLUMNS, type ClaimedRow, claimedJob, type JobRow, job, type RunRow, runRecord } from './rows.ts';
import type { Session } from './session.ts';

const JOB_COLUMNS = `${CLAIMED_COLUMNS}, state, finished_at, dead_reason, key, progress`;
const GET = `SELECT ${JOB_COLUMNS} FROM jobs WHERE id = ?`;
const SEQ = 'SELECT seq FROM jobs WHERE id = ?';
const RUNS = `
  SELECT run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision,
    (SELECT e.error FROM errors e WHERE e.id = r.error) AS error
  FROM runs r WHERE job = (SELECT seq FROM jobs WHERE id = ?) ORDER BY run`;
const MEMOS = 'SELECT key, value FROM memos WHERE job = (SELECT seq FROM jobs WHERE id = ?)';
const EXPIRED = `
  SELECT ${CLAIMED_COLUMNS} FROM jobs WHERE state = ${STATE.running} AND lease_ends_at <= ?
  ORDER BY lease_ends_at, seq LIMIT ?`;
const WAITING = `
  SELECT home_stream, name, CASE WHEN due_at <= ? THEN ${STATE.ready} ELSE state END AS state, count(*) AS n
  FROM jobs WHERE state < 3 GROUP BY 1, 2, 3`;
const RUNNING = `
  SELECT home_stream, name, state, count(*) AS n FROM jobs WHERE state = ${STATE.running} GROUP BY 1, 2`;
const TALLIES = 'SELECT stream, name, what, amount FROM tallies';
const PAUSED = 'SELECT queue FROM paused_queues';

export function get(session: Session, ids: readonly string[]): Job[] {
  return ids.flatMap((id) => {
    const row = session.sql(GET).get(id) as JobRow | undefined;
    return row ? [job(session, row)] : [];
  });
}

export function list(session: Session, filter: JobFilter): Job[] {
  const conditions: string[] = [];
  const values: (string | number)[] = [];
  const where = (condition: string, ...bound: (string | number)[]): void => {
    conditions.push(condition);
    values.push(...bound);
  };
  if (filter.state !== undefined) where(...stateCondition(filter.state, session.now));
  if (filter.queue !== undefined) where('stream IN (SELECT id FROM streams WHERE queue = ?)', filter.queue);
  if (filter.name !== undefined) where('name = (SELECT id FROM words WHERE text = ?)', filter.name);
  if (filter.key !== undefined) where('key = ?', filter.key);
  if (filter.after !== undefined) {
    const last = session.sql(SEQ).get(filter.after) as { seq: number } | undefined;
    if (!last) return [];
    where('seq < ?', last.seq);
  }
  const sql = `SELECT ${JOB_COLUMNS} FROM jobs ${conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''}
    ORDER BY seq DESC LIMIT ?`;
  const rows = session.sql(sql).all(...values, filter.limit) as unknown as JobRow[];
  return rows.map((row) => job(session, row));
}

/** Each repeats the condition of the partial index that serves it: SQLite only then sees that it may use it. */
function stateCondition(state: JobState, now: number): [string, ...number[]] {
  switch (state) {
    case 'ready':
      return ['state < 3 AND due_at <= ?', now];
    case 'scheduled':
    case 'retrying':
      return ['state < 3 AND state = ? AND due_at > ?', STATE[state], now];
    case 'running':
      return [`state = ${STATE.running}`];
    default:
      return ['state > 3 AND state = ?', STATE[state]];
  }
}

export function runs(session: Session, jobId: string): RunRecord[] {
  const rows = session.sql(RUNS).all(jobId) as unknown as RunRow[];
  return rows.map((row) => runRecord(session, jobId, row));
}

export function recall(session: Session, jobId: string): ReadonlyMap<string, string> {
  const rows = session.sql(MEMOS).all(jobId) as unknown as { key: string; value: string }[];
  return new Map(rows.map((row) => [row.key, row.value]));
}

export function expired(session: Session, limit: number): ClaimedJob[] {
  const rows = session.sql(EXPIRED).all(session.now, limit) as unknown as ClaimedRow[];
  return rows.map((row) => claimedJob(session, row));
}

export function queues(session: Session): QueueInfo[] {
  session.streams.refresh();
  const paused = new Set((session.sql(PAUSED).all() as { queue: string }[]).map((row) => row.queue));
  const names = new Set([...session.streams.queues(), ...paused]);
  return [...names].sort().map((queue) => ({ queue, paused: paused.has(queue) }));
}

export function stats(session: Session): StoreStats {
  const rows = new Map<string, StatsRow & { states: Record<JobState, number>; totals: MutableTotals }>();
  const rowOf = (streamId: number, nameId: number): NonNullable<ReturnType<typeof rows.get>> => {
    const { queue } = session.streams.get(streamId);
    const name = session.words.text(nameId);
    const key = JSON.stringify([queue, name]);
    let row = rows.get(key);
    if (!row) {
      const none = Object.fromEntries(states.map((state) => [state, 0])) as Record<JobState, number>;
      row = { queue, name, states: none, totals: emptyTotals() };
      rows.set(key, row);
    }
    return row;
  };
  const live = [...session.sql(WAITING).all(session.now), ...session.sql(RUNNING).all()];
  for (const { home_stream, name, state, n } of live as Record<string, number>[]) {
    rowOf(home_stream as number, name as number).states[stateOf(state as number)] += n as number;
  }
  type TallyRow = { stream: number; name: number; what: string; amount: number };
  for (const tally of session.sql(TALLIES).all() as unknown as TallyRow[]) {
    addTally(rowOf(tally.stream, tally.name), tally.what, tally.amount);
  }
  return { now: session.now, rows: [...rows.values()] };
}

function stateOf(code: number): JobState {
  return Object.keys(STATE).find((state) => STATE[state as JobState] === code) as JobState;
}

function addTally(row: { states: Record<JobState, number>; totals: MutableTotals }, what: string, n: number): void {
  const [group, member] = what.split(':') as [string, string | undefined];
  if (group === 'state') row.states[member as JobState] += n;
  else if (group === 'runs') row.totals.runs[member as keyof MutableTotals['runs']] += n;
  else if (group === 'dead') row.totals.dead[member as keyof MutableTotals['dead']] += n;
  else row.totals[group as 'enqueued' | 'retries' | 'successfulRetries'] += n;
}
