import { isList, isPlainObject, unexpected } from '../../config.ts';
import { lanes } from '../../lane.ts';
import type { Series } from '../recorder.ts';
import type { PolicyRun, SimulationResult } from '../simulate.ts';
import { timeAxis } from './axes.ts';
import { bands, type Curve, type Frame, type PanelContent, type Piece, panel } from './panel.ts';
import { frame, LEFT, line, RIGHT, text, textWidth } from './shapes.ts';

/** As many as have a colour of their own. */
const MOST_POLICIES = 6;
const phases = ['closed', 'open', 'ramp', 'held'] as const;
const LINE_HEIGHT = 17;
const CHARACTERS_PER_LINE = 120;

/**
 * The simulation as an SVG, for light and dark pages: calls, successes, retries, backlog, attempts burnt and dead jobs over
 * time, and the state of the gates.
 * @example await writeFile('outage.svg', drawSimulation(result))
 */
export function drawSimulation(result: SimulationResult): string {
  checkResult(result);
  const { scenario, seed, stepMs, runs } = result;
  const shown = runs.slice(0, MOST_POLICIES);
  const untilMs = Math.max(...shown.map(({ series }) => series.calls.length)) * stepMs;
  const { dependency, arrivals } = scenario;
  const shared: Frame = {
    axis: timeAxis(untilMs),
    untilMs,
    stepMs,
    outages: dependency.outages,
    burstMs: arrivals.kind === 'burst' ? arrivals.atMs : null,
  };
  const title = `${scenario.name}: ${shown.map(({ policy }) => policy.name).join(', ')}`;
  const head = heading(title, `${scenario.description} Seed ${seed}.`, shown, shared);
  const parts = [head.svg];
  let top = head.bottom;
  const add = (piece: Piece): void => {
    parts.push(piece.svg);
    top = piece.bottom;
  };
  for (const content of contents(shown, stepMs)) add(panel(shared, content, top));
  const gated = shown.filter(({ series }) => series.gate.length > 0);
  if (gated.length > 0) {
    const seen = phases.filter((phase) => gated.some(({ series }) => series.gate.includes(phase)));
    const legend = seen.map((phase) => ({ kind: phase, name: phase }));
    add(
      bands(
        shared,
        'Gate',
        gated.map(({ policy, series }) => ({ name: policy.name, phases: series.gate })),
        legend,
        top,
      ),
    );
  }
  parts.push(text((LEFT + RIGHT) / 2, top - 4, `${shared.axis.unit} since the start`, 'text-anchor="middle"'));
  return frame(title, top + 14, parts);
}

/** It may come from a file: what is checked tells a result of `simulate` from anything else. */
function checkResult(result: unknown): void {
  const isResult =
    isPlainObject(result) &&
    isPlainObject(result.scenario) &&
    isList(result.runs) &&
    result.runs.length > 0 &&
    result.runs.every((run) => isPlainObject(run) && isPlainObject(run.policy) && isPlainObject(run.series));
  if (!isResult) throw unexpected('drawSimulation', 'a result of simulate, with scenario and runs', result);
}

function contents(runs: readonly PolicyRun[], stepMs: number): PanelContent[] {
  const perSecond = (values: readonly number[]): number[] => values.map((value) => (value * 1_000) / stepMs);
  const curves = (read: (series: Series) => readonly number[]): Curve[] =>
    runs.map(({ series }, index) => ({ kind: `p${index}`, values: read(series) }));
  return [
    { title: 'Calls to the dependency, per second', curves: curves(({ calls }) => perSecond(calls)) },
    { title: 'Successes, per second', curves: curves(({ successes }) => perSecond(successes)) },
    { title: 'Retries, per second', curves: curves(({ retries }) => perSecond(retries)) },
    ...(runs.length === 1
      ? [byLane((runs[0] as PolicyRun).series)]
      : [
          { title: 'Waiting jobs, lane fresh', curves: curves(({ backlog }) => backlog.fresh) },
          { title: 'Waiting jobs, other lanes', curves: curves(waitingAgain) },
        ]),
    { title: 'Attempts burnt, in all', curves: curves(({ attemptsBurnt }) => cumulated(attemptsBurnt)) },
    { title: 'Dead jobs, in all', curves: curves(({ dead }) => cumulated(dead)) },
  ];
}

function byLane({ backlog }: Series): PanelContent {
  const seen = lanes.filter((lane) => lane === 'fresh' || lane === 'retry' || backlog[lane].some((count) => count > 0));
  return {
    title: 'Waiting jobs, by lane',
    curves: seen.map((lane) => ({ kind: lane, values: backlog[lane] })),
    stacked: true,
    legend: seen.map((lane) => ({ kind: lane, name: lane })),
  };
}

function waitingAgain({ backlog, calls }: Series): number[] {
  const others = lanes.filter((lane) => lane !== 'fresh');
  return calls.map((_, step) => others.reduce((sum, lane) => sum + (backlog[lane][step] ?? 0), 0));
}

function cumulated(values: readonly number[]): number[] {
  let sum = 0;
  return values.map((value) => {
    sum += value;
    return sum;
  });
}

/** What it is, and which line is which policy. */
function heading(title: string, description: string, runs: readonly PolicyRun[], { outages, burstMs }: Frame): Piece {
  const parts = [text(16, 28, title, 'class="title"')];
  let y = 48;
  for (const words of wrapped(description)) {
    parts.push(text(16, y, words, 'class="faint"'));
    y += LINE_HEIGHT;
  }
  let x = 16;
  const entry = (sample: string, name: string): void => {
    parts.push(sample, text(x + 34, y + 8, name));
    x += 34 + textWidth(name) + 22;
  };
  for (const [index, { policy }] of runs.entries())
    entry(line(`curve p${index}`, [x, y + 4], [x + 28, y + 4]), policy.name);
  if (outages.length > 0) entry(`<rect class="outage" x="${x}" y="${y - 2}" width="28" height="12"/>`, 'outage');
  if (burstMs !== null) entry(line('burst', [x + 14, y - 3], [x + 14, y + 11]), 'burst');
  return { svg: parts.join('\n'), bottom: y + 34 };
}

function wrapped(words: string): string[] {
  const lines: string[] = [];
  let current = '';
  for (const word of words.trim().split(/\s+/)) {
    if (current.length + word.length >= CHARACTERS_PER_LINE) {
      lines.push(current);
      current = word;
    } else current = current === '' ? word : `${current} ${word}`;
  }
  return [...lines, current];
}
