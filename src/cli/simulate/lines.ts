import { lanes } from '../../lane.ts';
import { printable, wrap } from '../../printable.ts';
import type { Figures, PolicyRun, SimulationResult } from '../../simulate/index.ts';
import { number } from '../bulk-lines.ts';
import type { Output } from '../output.ts';
import { plotColumns } from '../plot.ts';
import { tableLines } from '../table.ts';
import { span } from '../time.ts';

/** Below the count of dead jobs: those of each reason that any of the policies has. */
function deadRows(runs: readonly PolicyRun[]): Row[] {
  const reasons = new Set(runs.flatMap(({ figures }) => Object.keys(figures.deadByReason)));
  return [...reasons].sort().map((reason) => [`  ${reason}`, ({ deadByReason }) => number(deadByReason[reason] ?? 0)]);
}

type Row = readonly [string, (figures: Figures) => string];

const rowsOf = (runs: readonly PolicyRun[]): readonly Row[] => [
  ['jobs arrived', ({ arrived }) => number(arrived)],
  ['completed', ({ completed }) => number(completed)],
  ['dead', ({ dead }) => number(dead)],
  ...deadRows(runs),
  ['left at the end', ({ left }) => number(left)],
  ['calls to the dependency', ({ calls }) => number(calls)],
  ['  of them failed', ({ failedCalls }) => number(failedCalls)],
  ['  during outages', ({ callsInOutage }) => number(callsInOutage)],
  ['  retries', ({ retries }) => number(retries)],
  ['attempts burnt', ({ attemptsBurnt }) => number(attemptsBurnt)],
  ['attempts spared', ({ attemptsSpared }) => number(attemptsSpared)],
  ['healthy rate', ({ healthyRate }) => `${healthyRate.toFixed(1)}/s`],
  ['peak (10 s)', ({ peakRate, peakOverHealthy }) => `${peakRate.toFixed(1)}/s, ${peakOverHealthy.toFixed(1)}x`],
  ['largest backlog', ({ largestBacklog }) => number(largestBacklog)],
  ['recovered after', ({ recoveredAfterMs }) => recoveryText(recoveredAfterMs)],
  ['arrival to completion, median', ({ medianMs }) => (medianMs === null ? '-' : span(medianMs))],
  ['arrival to completion, p99', ({ p99Ms }) => (p99Ms === null ? '-' : span(p99Ms))],
];

function recoveryText(ms: number | null): string {
  if (ms === null) return '-';
  return ms === 0 ? 'at once' : span(ms);
}

export function simulationLines(result: SimulationResult, output: Output): string[] {
  const { scenario, seed, runs, stepMs } = result;
  const width = Math.min(output.columns, 100);
  const perCell = stepsPerCell(runs, output);
  return [
    output.paint('bold', printable(`${scenario.name}, seed ${seed}`)),
    ...(scenario.description === '' ? [] : wrap(printable(scenario.description), width)),
    '',
    ...tableLines(
      [{ title: '' }, ...runs.map(({ policy }) => ({ title: policy.name, align: 'right' as const }))],
      rowsOf(runs).map(([what, show]) => [what, ...runs.map(({ figures }) => show(figures))]),
      output,
    ),
    ...runs.flatMap((run) => curveLines(run, stepMs, perCell, output)),
    '',
    `One column is ${span(perCell * stepMs)}. Gate: ${gateLegend.join(', ')}.`,
    'Attempts burnt failed, counted and were not given back; those spared failed in an outage.',
    'Recovered: as few jobs wait as before the trouble. See docs/simulate.md.',
  ];
}

const gateMarks = { closed: '·', open: 'O', ramp: '/', held: 'H' } as const;
const gateLegend = Object.entries(gateMarks).map(([phase, mark]) => `${mark} ${phase}`);
/** Beside the curve: what it is, and its highest value. */
const AROUND_A_CURVE = 30;
const CELLS = { least: 20, most: 60 } as const;

/** How many steps a column stands for: the same for all policies, so that columns can be compared. */
function stepsPerCell(runs: readonly PolicyRun[], output: Output): number {
  const cells = Math.max(CELLS.least, Math.min(CELLS.most, output.columns - AROUND_A_CURVE));
  return Math.ceil(Math.max(1, ...runs.map(({ series }) => series.calls.length)) / cells);
}

/** A column shows the highest value of its steps, so that a short peak is seen. */
function curveLines({ policy, series }: PolicyRun, stepMs: number, perCell: number, output: Output): string[] {
  const cells = Array.from({ length: Math.ceil(series.calls.length / perCell) }, (_, cell) => cell * perCell);
  const backlog = series.calls.map((_, step) =>
    lanes.reduce((sum, lane) => sum + (series.backlog[lane][step] ?? 0), 0),
  );
  const rate = series.calls.map((calls) => (calls * 1_000) / stepMs);
  const curve = (values: readonly number[]): string =>
    plotColumns(cells.map((from) => Math.max(...values.slice(from, from + perCell))));
  const most = (values: readonly number[]): number => Math.max(0, ...values);
  const gate = cells.map((from) => gateMarks[series.gate[from] ?? 'closed']).join('');
  return [
    '',
    output.paint('bold', printable(policy.name)),
    `  calls/s  ${curve(rate)}  up to ${number(Math.round(most(rate)))}`,
    `  waiting  ${curve(backlog)}  up to ${number(most(backlog))}`,
    ...(series.gate.length === 0 ? [] : [`  gate     ${gate}`]),
  ];
}
