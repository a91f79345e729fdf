import type { Peer } from '../harness/peer.ts';
import { show, type WorkloadResult } from '../harness/runner.ts';
import type { Metric } from '../harness/workload.ts';
import { colour, label, type Panel, round, stroke, WIDTH } from './svg.ts';

const LABELS = 310;
const VALUES = 90;
const BAR = 16;
const GAP = 6;
const PLOT = WIDTH - LABELS - VALUES;

/** Bars with whiskers from the smallest to the largest round; times on a logarithmic scale, because they span decades. */
export function bars(metric: Metric, result: WorkloadResult, peers: readonly Peer[], top: number): Panel | null {
  const rows = peers.flatMap((peer) => {
    const figure = result.peers[peer.id]?.figures[metric.key];
    return figure === undefined ? [] : [{ peer, figure }];
  });
  const highest = Math.max(...rows.map(({ figure }) => figure.max));
  if (rows.length === 0 || highest <= 0) return null;
  const time = metric.unit === 'ms' || metric.unit === 's';
  const scale = time ? logarithmic(highest) : linear(highest);
  const direction = `${metric.better === 'higher' ? 'more' : 'less'} is better${time ? ', logarithmic' : ''}`;
  const parts = [label(0, top, `${metric.title} (${direction})`, ' class="title"')];
  let y = top + 10;
  for (const { peer, figure } of rows) {
    const middle = y + BAR / 2;
    const [length, from, to] = [scale(figure.median), scale(figure.min), scale(figure.max)];
    parts.push(
      label(LABELS - 8, middle + 4, peer.title, ' text-anchor="end"'),
      `<rect class="${colour(peer)}" x="${LABELS}" y="${y}" width="${round(length)}" height="${BAR}"/>`,
    );
    if (to > from) parts.push(stroke('spread', [LABELS + from, middle], [LABELS + to, middle]));
    parts.push(label(LABELS + Math.max(length, to) + 6, middle + 4, show(figure.median, metric.unit)));
    y += BAR + GAP;
  }
  return { svg: parts.join('\n'), bottom: y };
}

function linear(highest: number): (value: number) => number {
  return (value) => (Math.max(value, 0) / highest) * PLOT;
}

function logarithmic(highest: number): (value: number) => number {
  const least = 0.1;
  const decades = Math.log10(Math.max(highest, 1) / least);
  return (value) => (Math.log10(Math.max(value, least) / least) / decades) * PLOT;
}
