import type { Engine, Peer } from '../harness/peer.ts';
import { type Figure, show, type WorkloadResult } from '../harness/runner.ts';
import type { Workload } from '../harness/workload.ts';
import { colour, label, type Panel, round, stroke, WIDTH } from './svg.ts';

const AXIS = 58;
const PLOT = 210;
const HEIGHT = 150;
const COLUMN = 274;
/** Between the axis and the first point, and after the last. */
const INSET = 26;

const names: Readonly<Record<Engine, string>> = {
  memory: 'memory',
  sqlite: 'SQLite',
  redis: 'Redis',
  postgres: 'PostgreSQL',
};
const legend = { own: 'Mulligan', limit: 'raw SQL', other: 'others' } as const;

interface Curve {
  readonly peer: Peer;
  readonly points: readonly { readonly at: number; readonly figure: Figure }[];
}

/** One plot per engine, side by side, each with its own scale from 0: what counts is how a curve bends. */
export function curves(workload: Workload, result: WorkloadResult, peers: readonly Peer[], top: number): Panel | null {
  const { curve, metrics } = workload;
  const all = peers.flatMap((peer): Curve[] => {
    const points = metrics.flatMap(({ key, at }) => {
      const figure = result.peers[peer.id]?.figures[key];
      return figure === undefined || at === undefined ? [] : [{ at, figure }];
    });
    return points.length === 0 ? [] : [{ peer, points }];
  });
  const [first] = metrics;
  if (curve === undefined || first === undefined || all.length === 0) return null;
  const direction = first.better === 'higher' ? 'more is better' : 'less is better';
  const parts = [label(0, top, `${curve.y} against ${curve.x} (${direction}; line: min to max)`, ' class="title"')];
  const kinds = [...new Set(all.map(({ peer }) => colour(peer)))];
  for (const [index, kind] of (kinds.length > 1 ? kinds : []).entries()) {
    const x = WIDTH - (kinds.length - index) * 90;
    parts.push(
      `<rect class="${kind}" x="${x}" y="${top - 10}" width="10" height="10"/>`,
      label(x + 15, top, legend[kind]),
    );
  }
  const engines = [...new Set(all.map(({ peer }) => peer.engine))];
  for (const [index, engine] of engines.entries()) {
    const own = all.filter(({ peer }) => peer.engine === engine);
    parts.push(plot({ name: names[engine], x: curve.x, unit: first.unit }, own, index * COLUMN + AXIS, top + 38));
  }
  return { svg: parts.join('\n'), bottom: top + 38 + HEIGHT + 36 };
}

function plot(axes: { name: string; x: string; unit: string }, curves: readonly Curve[], left: number, top: number) {
  const bottom = top + HEIGHT;
  const places = curves.flatMap(({ points }) => points.map(({ at }) => at));
  const [least, most] = [Math.min(...places), Math.max(...places)];
  const highest = nice(Math.max(0.01, ...curves.flatMap(({ points }) => points.map(({ figure }) => figure.max))));
  const across = (at: number): number =>
    left + INSET + (most === least ? 0.5 : Math.log(at / least) / Math.log(most / least)) * (PLOT - 2 * INSET);
  const up = (value: number): number => bottom - (Math.max(value, 0) / highest) * HEIGHT;
  const parts = [label(left, top - 16, axes.name)];
  // Drawn last, so that no line goes through a number.
  const values: string[] = [];
  for (const value of [0, highest / 2, highest]) {
    parts.push(stroke('grid', [left, up(value)], [left + PLOT, up(value)]));
    parts.push(label(left - 6, up(value) + 4, show(value, axes.unit), ' text-anchor="end"'));
  }
  const centred = ' text-anchor="middle"';
  for (const at of new Set(places)) parts.push(label(across(at), bottom + 16, short(at), centred));
  parts.push(label(left + PLOT / 2, bottom + 32, axes.x, centred));
  for (const { peer, points } of curves) {
    const way = points.map(({ at, figure }) => `${round(across(at))},${round(up(figure.median))}`).join(' ');
    parts.push(`<polyline class="line ${colour(peer)}" points="${way}"/>`);
    for (const { at, figure } of points) {
      const [x, y] = [across(at), up(figure.median)];
      if (figure.max > figure.min) parts.push(stroke('spread', [x, up(figure.min)], [x, up(figure.max)]));
      parts.push(`<circle class="${colour(peer)}" cx="${round(x)}" cy="${round(y)}" r="3"/>`);
      const beaten = curves.some((other) =>
        other.points.some((point) => point.at === at && point.figure.median > figure.median),
      );
      // The highest has its value above it, the others below, so that none is in the way of another.
      const beside = beaten ? Math.min(up(figure.min) + 15, bottom - 4) : up(figure.max) - 6;
      values.push(label(x, beside, show(figure.median, ''), `${centred} class="value"`));
    }
  }
  return [...parts, ...values].join('\n');
}

/** The next number of the kind 1, 2, 4, 6, 8, 10 times a power of ten: a half of it is round as well. */
function nice(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 6, 8, 10].find((step) => step * power >= value) ?? 10) * power;
}

function short(value: number): string {
  return value.toLocaleString('en', { notation: 'compact' });
}
