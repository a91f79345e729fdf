import type { Peer } from '../harness/peer.ts';
import { show, type WorkloadResult } from '../harness/runner.ts';
import type { Metric, Workload } from '../harness/workload.ts';

const WIDTH = 820;
const LABELS = 310;
const VALUES = 90;
const BAR = 16;
const GAP = 6;
const HEAD = 30;
const PLOT = WIDTH - LABELS - VALUES;

/** Bars with whiskers from the smallest to the largest round; times on a logarithmic scale, because they span decades. */
export function chart(workload: Workload, result: WorkloadResult, peers: readonly Peer[]): string | null {
  const panels: string[] = [];
  let y = HEAD;
  for (const metric of workload.metrics.filter(({ better }) => better !== 'neither')) {
    const panel = bars(metric, result, peers, y);
    if (panel === null) continue;
    panels.push(panel.svg);
    y = panel.y + HEAD;
  }
  if (panels.length === 0) return null;
  const title = `${workload.id} ${workload.title}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img" aria-label="${escaped(title)}">
<style>
  text { font: 12px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; }
  .own { fill: #2f6f4f; } .limit { fill: #b0b7bf; } .other { fill: #6f8fb8; }
  .spread { stroke: #24292f; stroke-width: 1; }
  @media (prefers-color-scheme: dark) {
    text { fill: #d0d7de; } .spread { stroke: #d0d7de; } .own { fill: #4fae7f; } .limit { fill: #5a626b; }
  }
</style>
${panels.join('\n')}
</svg>
`;
}

function bars(
  metric: Metric,
  result: WorkloadResult,
  peers: readonly Peer[],
  top: number,
): { svg: string; y: number } | null {
  const rows = peers.flatMap((peer) => {
    const figure = result.peers[peer.id]?.figures[metric.key];
    return figure === undefined ? [] : [{ peer, figure }];
  });
  const highest = Math.max(...rows.map(({ figure }) => figure.max));
  if (rows.length === 0 || highest <= 0) return null;
  const time = metric.unit === 'ms' || metric.unit === 's';
  const scale = time ? logarithmic(highest) : linear(highest);
  const direction = `${metric.better === 'higher' ? 'more' : 'less'} is better${time ? ', logarithmic' : ''}`;
  const lines = [`<text class="title" x="0" y="${top}">${escaped(`${metric.title} (${direction})`)}</text>`];
  let y = top + 10;
  for (const { peer, figure } of rows) {
    const middle = y + BAR / 2;
    const [length, from, to] = [scale(figure.median), scale(figure.min), scale(figure.max)];
    lines.push(
      `<text x="${LABELS - 8}" y="${middle + 4}" text-anchor="end">${escaped(peer.title)}</text>`,
      `<rect class="${colour(peer)}" x="${LABELS}" y="${y}" width="${length}" height="${BAR}"/>`,
    );
    if (to > from) {
      lines.push(`<line class="spread" x1="${LABELS + from}" x2="${LABELS + to}" y1="${middle}" y2="${middle}"/>`);
    }
    lines.push(
      `<text x="${LABELS + Math.max(length, to) + 6}" y="${middle + 4}">${escaped(show(figure.median, metric.unit))}</text>`,
    );
    y += BAR + GAP;
  }
  return { svg: lines.join('\n'), y };
}

function linear(highest: number): (value: number) => number {
  return (value) => round((value / highest) * PLOT);
}

function logarithmic(highest: number): (value: number) => number {
  const least = 0.1;
  const decades = Math.log10(Math.max(highest, 1) / least);
  return (value) => round((Math.log10(Math.max(value, least) / least) / decades) * PLOT);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function colour({ id }: Peer): string {
  return id.startsWith('mulligan') ? 'own' : id.startsWith('raw') ? 'limit' : 'other';
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
