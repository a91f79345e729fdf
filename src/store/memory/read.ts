import { isTerminal, type JobState, type RunRecord, stateAt } from '../../job.ts';
import { JobPage, stopped } from '../page.ts';
import {
  isListedByEnd,
  isSelected,
  type JobCount,
  type JobFilter,
  type JobList,
  type JobSelection,
} from '../selection.ts';
import type { EndedJob, QueueInfo, StoreStats } from '../store.ts';
import { type Row, toJob } from './row.ts';
import type { MemoryState } from './state.ts';
import type { Tally } from './totals.ts';

/** In the order asked for, each job once; an unknown id has no place in the answer. */
export function get(state: MemoryState, ids: readonly string[], now: number): JobList {
  return inOnePage(
    [...new Set(ids)].flatMap((id) => state.rows.get(id) ?? []),
    now,
  );
}

function inOnePage(rows: readonly Row[], now: number): JobList {
  const page = new JobPage();
  const jobs: JobList = [];
  for (const row of rows) {
    if (!page.takes(row.payload, row.progress, row.result)) return stopped(jobs);
    jobs.push(toJob(row, now));
  }
  return jobs;
}

export function ended(state: MemoryState, ids: readonly string[]): EndedJob[] {
  const page = new JobPage();
  return [...new Set(ids)].flatMap((id): EndedJob[] => {
    const row = state.rows.get(id);
    if (!row) return [{ id, state: 'not-found', result: null, deadReason: null, error: null }];
    if (!isTerminal(row.state) || (row.result !== null && !page.takes(row.result))) return [];
    const { result, deadReason, lastError } = row;
    return [{ id, state: row.state as EndedJob['state'], result, deadReason, error: lastError }];
  });
}

/**
 * A page after an unknown job is empty. Guessing where it stood could show jobs twice, and a caller
 * that pages until nothing comes would never end.
 */
export function list(state: MemoryState, filter: JobFilter, now: number): JobList {
  const { after, idPrefix = '', limit } = filter;
  const last = after === undefined ? null : state.rows.get(after);
  if (last === undefined) return [];
  const endOf = (row: Row): number => (isListedByEnd(filter) ? (row.finishedAt ?? 0) : 0);
  const newestFirst = (a: Row, b: Row): number => endOf(b) - endOf(a) || b.accepted - a.accepted;
  const found = [...state.rows.values()]
    .filter((row) => (last === null || newestFirst(last, row) < 0) && row.id.startsWith(idPrefix))
    .filter((row) => isSelected(row, filter, now))
    .sort(newestFirst)
    .slice(0, limit);
  return inOnePage(found, now);
}

/** The model reads what it has to: only databases stop early. */
export function count(state: MemoryState, selection: JobSelection, now: number): JobCount {
  const found = [...state.rows.values()].filter((row) => isSelected(row, selection, now)).length;
  return { count: Math.min(found, selection.limit ?? found), isExact: true };
}

export function runs(state: MemoryState, jobId: string): RunRecord[] {
  return [...(state.rows.get(jobId)?.ledger ?? [])];
}

export function stats(state: MemoryState, now: number): StoreStats {
  const states = new Map<Tally, Record<JobState, number>>();
  for (const row of state.rows.values()) {
    const tally = state.totals.of(row);
    const counts = states.get(tally) ?? noJobs();
    counts[stateAt(row.state, row.dueAt, now)]++;
    states.set(tally, counts);
  }
  return { now, rows: state.totals.rows((tally) => states.get(tally) ?? noJobs()) };
}

function noJobs(): Record<JobState, number> {
  return { scheduled: 0, ready: 0, running: 0, retrying: 0, completed: 0, dead: 0, cancelled: 0 };
}

/** Every queue that a stored job is in or came from, and every paused one, even while it is empty. */
export function queues(state: MemoryState): QueueInfo[] {
  const names = new Set(state.partitions.pausedQueues());
  for (const row of state.rows.values()) names.add(row.queue).add(row.homeQueue);
  return [...names].sort().map((queue) => ({ queue, paused: state.partitions.isPaused(queue) }));
}
