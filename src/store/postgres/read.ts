import { type Job, type JobState, type Lane, lanes, type RunRecord, stateAt, states } from '../../job.ts';
import { parseLimits } from '../../limit/limit.ts';
import { decodeResult } from '../../result.ts';
import type { Decision } from '../../retry/decision.ts';
import { deadReasons } from '../../retry/decision.ts';
import type { StoredError } from '../../retry/outcome.ts';
import { outcomeKinds } from '../../retry/outcome.ts';
import { parseRunLog, type RunLog } from '../../run-log.ts';
import { STATE } from '../codes.ts';
import { parseData } from '../json.ts';
import { JobPage, PAGE_BYTES, stopped } from '../page.ts';
import type { JobList } from '../selection.ts';
import type { QueueInfo, StatsRow, StoreStats } from '../store.ts';
import { emptyTotals, type MutableTotals } from '../totals.ts';
import { plain } from './connection/arrays.ts';
import { countColumns, deadColumn } from './counts.ts';
import type { JobType } from './job-types.ts';
import type { Session } from './session.ts';
import { FOR_GOOD, queueOf } from './sql/shared.ts';
import { isUuid } from './uuid.ts';

export const LIVE_JOBS: string = `
  SELECT l.id, job_type, ${queueOf('p.queue')} AS queue, p.lane, p.priority, p.resource,
    CASE WHEN worker IS NULL THEN state ELSE ${STATE.running} END AS state, runs, attempts,
    crashes, enqueued_at, due_at, first_started_at, NULL::bigint AS finished_at, lease_ends_at, worker,
    NULL::smallint AS dead_reason, cancel_requested, key, payload, last_error, progress, tags, fingerprint, seq, NULL AS result, limits, trace
  FROM @.live l JOIN @.partitions p ON p.id = l.partition`;
export const FINISHED_JOBS = `
  SELECT id, job_type, queue, lane, priority, resource, state, runs, attempts, crashes, enqueued_at, due_at,
    first_started_at, finished_at, NULL::bigint AS lease_ends_at, NULL::int AS worker, dead_reason,
    false AS cancel_requested, key, payload, last_error, progress, tags, fingerprint, seq, result, limits, trace
  FROM @.finished`;
const ALL_JOBS = `${LIVE_JOBS} UNION ALL ${FINISHED_JOBS}`;

/** Live and finished rows in one shape. A job is in exactly one of the two tables. */
export const jobsOf = (tables: string, more = ''): string => `
  SELECT id, job_type, queue, lane, priority, resource, state, runs, attempts, crashes, enqueued_at, due_at,
    first_started_at, finished_at, lease_ends_at, worker, dead_reason, cancel_requested, key, payload,
    (SELECT error FROM @.errors e WHERE e.id = last_error), progress, @.now_ms(), to_json(tags)::text, result, limits, trace${more}
  FROM (${tables}) s`;
/** What a job adds to an answer. PostgreSQL knows it without reading the texts. */
export const BYTES = 'octet_length(payload) + coalesce(octet_length(progress), 0) + coalesce(octet_length(result), 0)';
const SIZES = `SELECT id, ${BYTES} FROM (${ALL_JOBS}) s WHERE id = ANY ($1::uuid[])`;
const RUNS = `
  SELECT run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision,
    (SELECT e.error FROM @.errors e WHERE e.id = r.error)
  FROM (
    SELECT run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision, error
    FROM @.runs WHERE job = $1
    UNION ALL
    SELECT runs, attempt, outcome, counted, worker, started_at, ended_at, NULL, decision,
      CASE WHEN failed THEN last_error END
    FROM @.finished WHERE id = $1 AND outcome IS NOT NULL
  ) r
  ORDER BY run`;
const COUNTS = `
  SELECT job_type, ${countColumns.map((column) => `sum(${column})`).join(', ')}
  FROM @.counts GROUP BY job_type`;
const LIVE = `
  SELECT job_type,
    CASE WHEN worker IS NOT NULL THEN ${STATE.running} WHEN due_at <= n.ow THEN ${STATE.ready} ELSE state END, count(*)
  FROM @.live, (SELECT @.now_ms() AS ow) n GROUP BY 1, 2`;

export type JobRow = [
  id: string,
  jobType: number,
  queue: string,
  lane: number,
  priority: number,
  resource: string,
  state: number,
  runs: number,
  attempts: number,
  crashes: number,
  enqueuedAt: number,
  dueAt: number,
  firstStartedAt: number | null,
  finishedAt: number | null,
  leaseEndsAt: number | null,
  worker: number | null,
  deadReason: number | null,
  cancelRequested: boolean,
  key: string | null,
  payload: string,
  lastError: string | null,
  progress: string | null,
  now: number,
  tags: string | null,
  result: string | null,
  limits: string | null,
  trace: string | null,
];

export async function get(session: Session, ids: readonly string[]): Promise<JobList> {
  const known = ids.filter(isUuid);
  const fitting = known.length <= 1 ? known : await thatFit(session, known);
  const rows = await session.db.read<JobRow>(`${jobsOf(ALL_JOBS)} WHERE id = ANY ($1::uuid[])`, [plain(fitting)]);
  const byId = new Map(rows.map((row) => [row[0], row]));
  const jobs = await toJobs(
    session,
    fitting.map((id) => byId.get(id)).filter((row) => row !== undefined),
  );
  // Not the last of the jobs: those behind it may be gone.
  if (fitting.length < known.length) jobs.stoppedAfter ??= fitting.at(-1) as string;
  return jobs;
}

/** Of these jobs, as many as one answer may carry by their bytes. */
async function thatFit(session: Session, ids: readonly string[]): Promise<readonly string[]> {
  const sizes = new Map(await session.db.read<[id: string, bytes: number]>(SIZES, [plain(ids)]));
  let bytes = 0;
  const end = ids.findIndex((id, index) => {
    bytes += sizes.get(id) ?? 0;
    return index > 0 && bytes > PAGE_BYTES && bytes > (sizes.get(id) ?? 0);
  });
  return end === -1 ? ids : ids.slice(0, end);
}

/** As many of these rows as one answer may carry by their values. */
export async function toJobs({ jobTypes, workers }: Session, rows: readonly JobRow[]): Promise<JobList> {
  const typeOf = await jobTypes.load(rows.map((row) => row[1]));
  const nameOf = await workers.names(rows.flatMap((row) => row[15] ?? []));
  const page = new JobPage();
  const jobs: JobList = [];
  for (const row of rows) {
    const [payload, progress, result] = [row[19], row[21], row[24]];
    if (!page.takes(payload, progress, result)) return stopped(jobs);
    jobs.push(toJob(row, typeOf(row[1]), nameOf));
  }
  return jobs;
}

function toJob(row: JobRow, { name, policy, version }: JobType, workerName: (id: number) => string): Job {
  const [id, , queue, lane, priority, resource, state, runs, attempts, crashes, enqueuedAt, dueAt, firstStartedAt] =
    row;
  const [, , , , , , , , , , , , , finishedAt, leaseEndsAt, worker, deadReason, cancelRequested, key, payload] = row;
  const [, , , , , , , , , , , , , , , , , , , , lastError, progress, now, tags, result, limits, trace] = row;
  return {
    id,
    name,
    queue,
    state: stateAt(states[state] as JobState, dueAt, now),
    lane: lanes[lane] as Lane,
    priority,
    payload: parseData(payload),
    version,
    key,
    tags: parse<string[]>(tags) ?? [],
    trace,
    resource: resource || null,
    limits: parseLimits(limits ?? ''),
    policy,
    runs,
    attempts,
    crashes,
    enqueuedAt,
    dueAt,
    firstStartedAt,
    finishedAt,
    leaseEndsAt,
    worker: worker === null ? null : workerName(worker),
    deadReason: deadReason === null ? null : (deadReasons[deadReason] as Job['deadReason']),
    lastError: parse<StoredError>(lastError),
    progress: parseData(progress),
    ...decodeResult(result),
    cancelRequested,
  };
}

type RunRow = [
  run: number,
  attempt: number,
  outcome: number,
  counted: boolean,
  worker: number,
  startedAt: number,
  endedAt: number,
  nextDueAt: number | null,
  decision: string,
  error: string | null,
];

export async function runs(session: Session, jobId: string): Promise<RunRecord[]> {
  if (!isUuid(jobId)) return [];
  const rows = await session.db.read<RunRow>(RUNS, [jobId]);
  const nameOf = await session.workers.names(rows.map((row) => row[4]));
  return rows.map(
    ([run, attempt, outcome, counted, worker, startedAt, endedAt, nextDueAt, decision, error]): RunRecord => ({
      jobId,
      run,
      attempt,
      outcome: outcomeKinds[outcome] as RunRecord['outcome'],
      counted,
      worker: nameOf(worker),
      startedAt,
      endedAt,
      error: parse<StoredError>(error),
      decision: JSON.parse(decision) as Decision,
      nextDueAt,
    }),
  );
}

const LOGS = 'SELECT run, log FROM @.run_logs WHERE job = $1 ORDER BY run DESC LIMIT $2';

export async function logs(session: Session, jobId: string, limit: number): Promise<RunLog[]> {
  if (!isUuid(jobId)) return [];
  const rows = await session.db.read<[run: number, log: string]>(LOGS, [jobId, limit]);
  return rows.map(([run, log]) => parseRunLog(run, log));
}

export async function recall(session: Session, jobId: string): Promise<ReadonlyMap<string, string>> {
  if (!isUuid(jobId)) return new Map();
  return new Map(
    await session.db.read<[key: string, value: string]>('SELECT key, value FROM @.memos WHERE job = $1', [jobId]),
  );
}

export async function queues(session: Session): Promise<QueueInfo[]> {
  const rows = await session.db.read<[queue: string, paused: boolean]>(`
    SELECT queue, bool_or(paused) FROM (
      SELECT DISTINCT queue, false AS paused FROM @.job_types
      UNION ALL SELECT DISTINCT ${queueOf('queue')}, false FROM @.partitions
      UNION ALL SELECT name, true FROM @.holds WHERE scope = 'queue' AND until = ${FOR_GOOD}) q
    GROUP BY queue`);
  return rows.map(([queue, paused]) => ({ queue, paused })).sort((a, b) => (a.queue < b.queue ? -1 : 1));
}

type MutableRow = StatsRow & { readonly states: Record<JobState, number>; readonly totals: MutableTotals };

export async function stats(session: Session): Promise<StoreStats> {
  const [counts, live, time] = await Promise.all([
    session.db.read<[jobType: number, ...counts: number[]]>(COUNTS),
    session.db.read<[jobType: number, state: number, count: number]>(LIVE),
    session.db.read<[now: number]>('SELECT @.now_ms()'),
  ]);
  const typeOf = await session.jobTypes.load([...counts, ...live].map(([jobType]) => jobType));
  const rows = new Map<string, MutableRow>();
  const rowOf = (jobType: number): MutableRow => {
    const { name, queue } = typeOf(jobType);
    const key = JSON.stringify([queue, name]);
    const none = (): Record<JobState, number> =>
      Object.fromEntries(states.map((state) => [state, 0])) as Record<JobState, number>;
    const row = rows.get(key) ?? { queue, name, states: none(), totals: emptyTotals() };
    rows.set(key, row);
    return row;
  };
  for (const [jobType, state, count] of live) rowOf(jobType).states[states[state] as JobState] += count;
  for (const [jobType, ...amounts] of counts) addCounts(rowOf(jobType), amounts);
  return { now: (time[0] as [number])[0], rows: [...rows.values()] };
}

function addCounts({ states: inState, totals }: MutableRow, amounts: readonly number[]): void {
  const amountOf = (column: string): number => amounts[countColumns.indexOf(column)] as number;
  totals.enqueued += amountOf('enqueued');
  totals.retries += amountOf('retries');
  totals.successfulRetries += amountOf('successful_retries');
  for (const outcome of outcomeKinds) totals.runs[outcome] += amountOf(outcome);
  for (const reason of deadReasons) totals.dead[reason] += amountOf(deadColumn(reason));
  for (const state of ['completed', 'dead', 'cancelled'] as const) inState[state] += amountOf(`now_${state}`);
}

function parse<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T);
}
