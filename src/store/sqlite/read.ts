import type { JobState, RunRecord } from '../../job.ts';
import { states } from '../../job.ts';
import { parseQueue } from '../aside.ts';
import { STATE } from '../codes.ts';
import { JobPage, stopped } from '../page.ts';
import type { JobList } from '../selection.ts';
import type { QueueInfo, StatsRow, StoreStats } from '../store.ts';
import { emptyTotals, type MutableTotals } from '../totals.ts';
import { RUNS_OF_JOB } from './complete.ts';
import { NEVER } from './restrictions.ts';
import { JOB_COLUMNS, type JobRow, job, type RunRow, runRecord } from './rows.ts';
import type { Session } from './session.ts';

const GET = `SELECT ${JOB_COLUMNS} FROM jobs WHERE id = ?`;
const SEQ = 'SELECT seq FROM jobs WHERE id = ?';
const RUNS = `
  SELECT run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision,
    (SELECT e.error FROM errors e WHERE e.id = r.error) AS error
  FROM (${RUNS_OF_JOB}) r ORDER BY run`;
const WAITING_NOW = `
  SELECT home_queue, name, CASE WHEN due_at <= ? THEN ${STATE.ready} ELSE state END AS state, count(*) AS n
  FROM jobs WHERE partition IS NOT NULL GROUP BY 1, 2, 3`;
const RUNNING_NOW = `
  SELECT home_queue, name, state, count(*) AS n FROM jobs WHERE state = ${STATE.running} GROUP BY 1, 2`;
const TALLIES = 'SELECT queue, name, what, amount FROM tallies';
const QUEUES = `
  SELECT queue AS id FROM tallies UNION SELECT queue FROM partitions UNION SELECT queue FROM asides UNION SELECT name FROM holds WHERE scope = 'queue'`;
const PAUSED = "SELECT name AS id FROM holds WHERE scope = 'queue' AND until = ?";

export function get(session: Session, ids: readonly string[]): JobList {
  const page = new JobPage();
  const jobs: JobList = [];
  for (const id of ids) {
    const row = session.sql(GET).get(id) as JobRow | undefined;
    if (row === undefined) continue;
    if (!page.takes(row.payload, row.progress, row.result)) return stopped(jobs);
    jobs.push(job(session, row));
  }
  return jobs;
}

export function runs(session: Session, jobId: string): RunRecord[] {
  const found = session.sql(SEQ).get(jobId) as { seq: number } | undefined;
  if (found === undefined) return [];
  const rows = session.sql(RUNS).all(found.seq) as unknown as RunRow[];
  return rows.map((row) => runRecord(session, jobId, row));
}

export function queues(session: Session): QueueInfo[] {
  const paused = new Set((session.sql(PAUSED).all(NEVER) as { id: number }[]).map(({ id }) => id));
  const known = session.sql(QUEUES).all() as { id: number }[];
  const infos = known.flatMap(({ id }) => {
    const queue = session.strings.text(id);
    return parseQueue(queue).aside === null ? [{ queue, paused: paused.has(id) }] : [];
  });
  return infos.sort((a, b) => (a.queue < b.queue ? -1 : 1));
}

export function stats(session: Session): StoreStats {
  const rows = new Map<string, StatsRow & { states: Record<JobState, number>; totals: MutableTotals }>();
  const rowOf = (queueId: number, nameId: number): NonNullable<ReturnType<typeof rows.get>> => {
    const key = `${queueId} ${nameId}`;
    let row = rows.get(key);
    if (!row) {
      const none = Object.fromEntries(states.map((state) => [state, 0])) as Record<JobState, number>;
      const [queue, name] = [session.strings.text(queueId), session.strings.text(nameId)];
      row = { queue, name, states: none, totals: emptyTotals() };
      rows.set(key, row);
    }
    return row;
  };
  const live = [...session.sql(WAITING_NOW).all(session.now), ...session.sql(RUNNING_NOW).all()];
  for (const { home_queue, name, state, n } of live as Record<string, number>[]) {
    rowOf(home_queue as number, name as number).states[states[state as number] as JobState] += n as number;
  }
  type TallyRow = { queue: number; name: number; what: string; amount: number };
  for (const tally of session.sql(TALLIES).all() as unknown as TallyRow[]) {
    addTally(rowOf(tally.queue, tally.name), tally.what, tally.amount);
  }
  return { now: session.now, rows: [...rows.values()] };
}

function addTally(row: { states: Record<JobState, number>; totals: MutableTotals }, what: string, n: number): void {
  const [group, member] = what.split(':') as [string, string | undefined];
  if (group === 'state') row.states[member as JobState] += n;
  else if (group === 'runs') row.totals.runs[member as keyof MutableTotals['runs']] += n;
  else if (group === 'dead') row.totals.dead[member as keyof MutableTotals['dead']] += n;
  else row.totals[group as 'enqueued' | 'retries' | 'successfulRetries'] += n;
}
