import { type JobState, states } from '../job.ts';
import type { StatsRow, StoreStats, Totals } from '../store/store.ts';
import { emptyTotals, type MutableTotals } from '../store/totals.ts';

/** Totals since the store was made; they survive pruning and restarts. */
export interface RetryStats {
  /** Counted runs that were not their job's first attempt. */
  readonly totalRetries: number;
  /** Those of them that completed their job. */
  readonly successfulRetries: number;
  /** successfulRetries / totalRetries, from 0 to 1; 0 when nothing was retried. */
  readonly retrySuccessRate: number;
  /** How many jobs are in each state now. */
  readonly states: Readonly<Record<JobState, number>>;
  readonly totals: Totals;
}

export interface Stats extends RetryStats {
  readonly queues: Readonly<Record<string, RetryStats>>;
  readonly names: Readonly<Record<string, RetryStats>>;
}

export function summarise({ rows }: StoreStats): Stats {
  return { ...sum(rows), queues: groupBy(rows, 'queue'), names: groupBy(rows, 'name') };
}

function groupBy(rows: readonly StatsRow[], field: 'queue' | 'name'): Record<string, RetryStats> {
  const groups = Map.groupBy(rows, (row) => row[field]);
  // fromEntries defines own properties, so that even a queue called __proto__ is just a key.
  return Object.fromEntries([...groups].sort().map(([key, members]) => [key, sum(members)]));
}

function sum(rows: readonly StatsRow[]): RetryStats {
  const totals = emptyTotals();
  const inState = Object.fromEntries(states.map((state) => [state, 0])) as Record<JobState, number>;
  for (const row of rows) {
    for (const state of states) inState[state] += row.states[state];
    addTotals(totals, row.totals);
  }
  const { retries, successfulRetries } = totals;
  return {
    totalRetries: retries,
    successfulRetries,
    retrySuccessRate: retries === 0 ? 0 : successfulRetries / retries,
    states: inState,
    totals,
  };
}

function addTotals(sum: MutableTotals, more: Totals): void {
  sum.enqueued += more.enqueued;
  sum.retries += more.retries;
  sum.successfulRetries += more.successfulRetries;
  for (const outcome of Object.keys(sum.runs) as (keyof Totals['runs'])[]) sum.runs[outcome] += more.runs[outcome];
  for (const reason of Object.keys(sum.dead) as (keyof Totals['dead'])[]) sum.dead[reason] += more.dead[reason];
}
