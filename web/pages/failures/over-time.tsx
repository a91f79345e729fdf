import type { VNode } from 'preact';
import type { Operation } from '../../client/answers.ts';
import type { Operations } from '../../client/operations.ts';
import { Chart } from '../../components/chart.tsx';
import { count, moment, number, relative, span } from '../../components/format.ts';
import { Empty } from '../../components/notice.tsx';
import { Ranges } from '../../components/ranges.tsx';
import { Sparkline } from '../../components/sparkline.tsx';

export type ErrorHistory = Operations['getErrorHistory']['answer'];
type Series = ErrorHistory['series'][number];

const ranges = [
  ['1h', 'hour'],
  ['1d', 'day'],
  ['7d', '7 days'],
  ['30d', '30 days'],
] as const;
export type Range = (typeof ranges)[number][0];

export function readRange(query: URLSearchParams): Range {
  return ranges.find(([value]) => value === query.get('range'))?.[0] ?? '1d';
}

/** Failures of one row of the list, in small. */
export function Trend({ history, series }: { readonly history: ErrorHistory; readonly series?: Series }): VNode {
  const { from, to, stepMs, now } = history;
  const { failures, most } = sumOf(series === undefined ? [] : [series], (to - from) / stepMs);
  const sum = total(failures);
  if (sum === 0) return <span class="muted">none</span>;
  const peak = from + failures.indexOf(most) * stepMs;
  return (
    <Sparkline
      values={failures}
      label={`${count(sum, 'failed run')}; the most, ${number(most)} in ${span(stepMs)}, ${relative(peak, now)}`}
    />
  );
}

interface OverTimeProps {
  readonly history: ErrorHistory;
  readonly operations: readonly Operation[];
  readonly range: Range;
  readonly choose: (range: Range) => void;
}

/** When jobs failed with this error, and whether they still did after the last redrive. */
export function OverTime({ history, operations, range, choose }: OverTimeProps): VNode {
  const { from, to, stepMs, series } = history;
  const { failures, dead } = sumOf(series, (to - from) / stepMs);
  const [sum, died] = [total(failures), total(dead)];
  const redrives = operations.filter(({ action }) => action === 'redrive').map(({ startedAt }) => startedAt);
  const redriven = Math.max(Number.NEGATIVE_INFINITY, ...redrives);
  const isMarked = redriven >= from && redriven < to;
  const words = `${count(sum, 'failed run')}, with which ${count(died, 'job')} died`;
  return (
    <section class="card stack">
      <div class="card-head">
        <h2>Over time</h2>
        <Ranges ranges={ranges} chosen={range} choose={choose} />
      </div>
      {sum === 0 ? (
        <Empty title="No failure in this time">What ended less than a minute ago may not be counted yet.</Empty>
      ) : (
        <>
          <p class="muted">{words}</p>
          <Chart
            label={`Failures over time: ${words}${isMarked ? `; last redrive at ${moment(redriven)}` : ''}`}
            at={[...failures.map((_, step) => from + step * stepMs), to].map((at) => at / 1_000)}
            y={(value) => (Number.isInteger(value) ? number(value) : '')}
            kind="bars"
            {...(isMarked && { mark: { at: redriven / 1_000, title: 'Last redrive' } })}
            series={[
              { title: `Failed runs in ${span(stepMs)}`, colour: 2, values: [...failures, null] },
              { title: 'Jobs that died', colour: 4, values: [...dead, null] },
            ]}
          />
        </>
      )}
    </section>
  );
}

function sumOf(all: readonly Series[], steps: number): { failures: number[]; dead: number[]; most: number } {
  const sum = (pick: 'failures' | 'dead'): number[] =>
    Array.from({ length: steps }, (_, step) => total(all.map((series) => series[pick][step] ?? 0)));
  const failures = sum('failures');
  return { failures, dead: sum('dead'), most: Math.max(0, ...failures) };
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
