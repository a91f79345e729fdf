import type { Duration } from '../duration.ts';
import type { History, HistoryFigures, HistoryOptions } from '../observe/history.ts';
import { grouped, percent } from './figures.ts';
import { readDuration } from './flags.ts';
import type { Output } from './output.ts';
import { plotBars } from './plot.ts';
import { factLines, tableLines } from './table.ts';
import { iso, span } from './time.ts';

const PLOT_WIDTH = 40;
/** Rows of a table that a person reads at once, and the steps that give them. */
const MOST_ROWS = 31;
const STEPS: readonly number[] = [1, 5, 10, 30, 60, 180, 360, 720, 1_440, 4_320].map((minutes) => minutes * 60_000);

export interface HistoryFlags {
  readonly last?: string;
  readonly step?: string;
  readonly name?: string;
}

/** Programs get the steps that charts have, people those that fit a screen. */
export function historyOptions(
  { last, step, name }: HistoryFlags & { readonly last: string },
  isJson: boolean,
): HistoryOptions {
  const lastMs = readDuration(last, '--last');
  const fitting = isJson ? undefined : STEPS.find((stepMs) => lastMs / stepMs <= MOST_ROWS);
  const stepMs = step === undefined ? fitting : readDuration(step, '--step');
  return {
    from: `${lastMs}ms` as Exclude<Duration, number>,
    ...(stepMs === undefined ? {} : { step: stepMs }),
    ...(name === undefined ? {} : { name }),
  };
}

export function historyLines(history: History, output: Output): string[] {
  const { total, from, upTo, now } = history;
  const facts = factLines(
    [
      ['since', minute(from)],
      ['counted until', `${span(Math.max(0, now - upTo))} ago`],
      [
        'runs',
        `${grouped(total.runs)} (${grouped(total.completed)} completed, ${grouped(total.failed)} failed, crashed or deferred)`,
      ],
      [
        'retries',
        `${grouped(total.retries)}${total.runs === 0 ? '' : `, ${percent(total.retries / total.runs)} of all runs`}`,
      ],
      ['dead', grouped(total.dead)],
      ['run time', `${time(total.p50Ms)} for half of the runs, ${time(total.p95Ms)} for 95 of 100`],
    ],
    output,
  );
  return [...facts, ...pointLines(history, output), ...nameLines(history, output)];
}

function pointLines({ points }: History, output: Output): string[] {
  const bars = plotBars(
    points.map(({ runs }) => ({ minMs: runs, maxMs: runs, sampleMs: runs })),
    PLOT_WIDTH,
  );
  const columns = [{ title: 'from' }, ...numbers('runs', 'failed', 'retries', 'dead', 'p95'), { title: '' }];
  const rows = points.map((point, row) => [
    minute(point.at),
    grouped(point.runs),
    grouped(point.failed),
    grouped(point.retries),
    grouped(point.dead),
    time(point.p95Ms),
    bars[row] ?? '',
  ]);
  return ['', ...tableLines(columns, rows, output)];
}

function nameLines({ names, others }: History, output: Output): string[] {
  if (names.length === 0) return [];
  const columns = [
    { title: 'name', gives: 'shortened', max: 40 } as const,
    ...numbers('runs', 'failed', 'retries', 'dead', 'run time', 'p50', 'p95'),
  ];
  const rowOf = (name: string, own: HistoryFigures): string[] => [
    name,
    grouped(own.runs),
    grouped(own.failed),
    grouped(own.retries),
    grouped(own.dead),
    span(own.runMs),
    time(own.p50Ms),
    time(own.p95Ms),
  ];
  const rows = names.map((own) => rowOf(own.name, own));
  if (others !== null) rows.push(rowOf('(other names)', others));
  return ['', ...tableLines(columns, rows, output)];
}

function numbers(...titles: readonly string[]): { title: string; align: 'right' }[] {
  return titles.map((title) => ({ title, align: 'right' }));
}

function minute(at: number): string {
  return iso(at).replace(/:\d\d\.\d{3}Z$/, 'Z');
}

function time(ms: number | null): string {
  return ms === null ? '-' : span(ms);
}
