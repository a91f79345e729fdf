import { niceTop, type Scale, shortNumber, type TimeAxis } from './axes.ts';
import { LEFT, line, type Point, polygon, polyline, RIGHT, rect, text, textWidth } from './shapes.ts';

/** What all panels of a picture share. */
export interface Frame {
  readonly axis: TimeAxis;
  readonly untilMs: number;
  readonly stepMs: number;
  readonly outages: readonly { readonly fromMs: number; readonly untilMs: number }[];
  /** When many jobs came at once. */
  readonly burstMs: number | null;
}

/** A piece of a picture, and where it ends. */
export interface Piece {
  readonly svg: string;
  readonly bottom: number;
}

export interface Curve {
  /** Its class. */
  readonly kind: string;
  /** One per step. */
  readonly values: readonly number[];
}

const TITLE_HEIGHT = 24;
const HEIGHT = 90;
const TICKS_HEIGHT = 18;
const GAP = 22;
const LEGEND_BOX = 10;

/** `stacked`: areas, each on top of the one before. */
export interface PanelContent {
  readonly title: string;
  readonly curves: readonly Curve[];
  readonly stacked?: boolean;
  readonly legend?: readonly { readonly kind: string; readonly name: string }[];
}

export function panel(frame: Frame, { title, curves, stacked = false, legend = [] }: PanelContent, top: number): Piece {
  const plotTop = top + TITLE_HEIGHT;
  const bottom = plotTop + HEIGHT;
  const layers = stacked ? stack(curves) : curves;
  const highest = niceTop(layers.reduce((most, { values }) => values.reduce((a, b) => Math.max(a, b), most), 0));
  const scale: Scale = { x: across(frame), y: (value) => bottom - (value / highest) * HEIGHT };
  const parts = [text(LEFT, top + 12, title, 'class="panel"'), boxes(legend, top + 12), shade(frame, plotTop, bottom)];
  for (const value of [0, highest / 2, highest]) {
    parts.push(line(value === 0 ? 'axis' : 'grid', [LEFT, scale.y(value)], [RIGHT, scale.y(value)]));
    parts.push(text(LEFT - 8, scale.y(value) + 4, shortNumber(value), 'text-anchor="end"'));
  }
  const drawn = layers.map((curve) => (stacked ? area(frame, scale, curve) : stroke(frame, scale, curve)));
  // Of areas that stand on each other the highest is drawn first, so that each covers what is below it.
  parts.push(...(stacked ? drawn.toReversed() : drawn), ticks(frame, bottom));
  return { svg: parts.filter((part) => part !== '').join('\n'), bottom: bottom + TICKS_HEIGHT + GAP };
}

const ROW_HEIGHT = 20;

export interface Band {
  readonly name: string;
  /** One class per step. */
  readonly phases: readonly string[];
}

/** A row per policy, coloured by the phase of its gate. */
export function bands(
  frame: Frame,
  title: string,
  rows: readonly Band[],
  legend: PanelContent['legend'],
  top: number,
): Piece {
  const plotTop = top + TITLE_HEIGHT;
  const x = across(frame);
  const parts = [text(LEFT, top + 12, title, 'class="panel"'), boxes(legend ?? [], top + 12)];
  for (const [index, { name, phases }] of rows.entries()) {
    const y = plotTop + index * (ROW_HEIGHT + 14);
    parts.push(text(LEFT, y + 10, name, 'class="faint"'));
    for (const { phase, from, until } of stretches(phases)) {
      parts.push(
        rect(phase, [x(from * frame.stepMs), y + 15], x(until * frame.stepMs) - x(from * frame.stepMs), ROW_HEIGHT - 8),
      );
    }
  }
  const bottom = plotTop + rows.length * (ROW_HEIGHT + 14);
  parts.push(line('axis', [LEFT, bottom], [RIGHT, bottom]), ticks(frame, bottom));
  return { svg: parts.filter((part) => part !== '').join('\n'), bottom: bottom + TICKS_HEIGHT + GAP };
}

/** On the right, in the order given. */
function boxes(legend: readonly { readonly kind: string; readonly name: string }[], baseline: number): string {
  const parts: string[] = [];
  let x = RIGHT;
  for (const { kind, name } of legend.toReversed()) {
    x -= textWidth(name);
    parts.push(text(x, baseline, name), rect(kind, [x - LEGEND_BOX - 5, baseline - 9], LEGEND_BOX, LEGEND_BOX));
    x -= LEGEND_BOX + 22;
  }
  return parts.join('\n');
}

function across({ untilMs }: Frame): (ms: number) => number {
  return (ms) => LEFT + (Math.min(ms, untilMs) / untilMs) * (RIGHT - LEFT);
}

function shade(frame: Frame, top: number, bottom: number): string {
  const x = across(frame);
  const outages = frame.outages.map(({ fromMs, untilMs }) =>
    rect('outage', [x(fromMs), top], x(untilMs) - x(fromMs), bottom - top),
  );
  const burst = frame.burstMs === null ? [] : [line('burst', [x(frame.burstMs), top], [x(frame.burstMs), bottom])];
  return [...outages, ...burst].join('\n');
}

function ticks({ axis, ...frame }: Frame, bottom: number): string {
  const x = across({ axis, ...frame });
  return axis.ticksMs
    .map(
      (ms) =>
        `${line('axis', [x(ms), bottom], [x(ms), bottom + 4])}${text(x(ms), bottom + 16, axis.label(ms), 'text-anchor="middle" class="faint"')}`,
    )
    .join('\n');
}

function stroke({ stepMs }: Frame, { x, y }: Scale, { kind, values }: Curve): string {
  return polyline(
    `curve ${kind}`,
    values.map((value, step): Point => [x((step + 0.5) * stepMs), y(value)]),
  );
}

function area({ stepMs }: Frame, { x, y }: Scale, { kind, values }: Curve): string {
  const edge = values.map((value, step): Point => [x((step + 0.5) * stepMs), y(value)]);
  return polygon(kind, [[x(0), y(0)], ...edge, [x(values.length * stepMs), y(0)]]);
}

function stack(curves: readonly Curve[]): Curve[] {
  const below: number[] = [];
  return curves.map(({ kind, values }) => {
    for (const [step, value] of values.entries()) below[step] = (below[step] ?? 0) + value;
    return { kind, values: [...below] };
  });
}

function stretches(phases: readonly string[]): { phase: string; from: number; until: number }[] {
  const found: { phase: string; from: number; until: number }[] = [];
  for (const [step, phase] of phases.entries()) {
    const last = found.at(-1);
    if (last?.phase === phase) last.until = step + 1;
    else found.push({ phase, from: step, until: step + 1 });
  }
  return found;
}
