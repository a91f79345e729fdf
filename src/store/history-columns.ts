import {
  type HistoryCounter,
  type HistoryCounts,
  historyCounters,
  type MutableCounts,
  noCounts,
  runTimeBounds,
} from './history.ts';

/* How counts lie in the table `history` of SQLite and PostgreSQL: a column each, so that SQL can add them up. */

const counterColumns: Readonly<Record<HistoryCounter, string>> = {
  runs: 'runs',
  completed: 'completed',
  failed: 'failed',
  retries: 'retries',
  dead: 'dead',
  runMs: 'run_ms',
};

export const runTimeColumns: readonly string[] = [...runTimeBounds, null].map((_, bin) => `took_${bin}`);

export const historyColumns: readonly string[] = [
  ...historyCounters.map((counter) => counterColumns[counter]),
  ...runTimeColumns,
];

/** For SELECT. */
export const HISTORY_SUMS: string = historyColumns.map((column) => `sum(${column})`).join(', ');
/** For ON CONFLICT. */
export const HISTORY_ADDED: string = historyColumns
  .map((column) => `${column} = history.${column} + excluded.${column}`)
  .join(', ');

/** In the order of the columns. */
export function toColumns(counts: HistoryCounts): number[] {
  return [...historyCounters.map((counter) => counts[counter]), ...counts.runTimes];
}

export function fromColumns(values: readonly number[]): MutableCounts {
  const counts = noCounts();
  for (const [index, counter] of historyCounters.entries()) counts[counter] = values[index] ?? 0;
  counts.runTimes = values.slice(historyCounters.length);
  return counts;
}
