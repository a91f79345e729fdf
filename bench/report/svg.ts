import type { Peer } from '../harness/peer.ts';

/** What the panels of a chart share. */
export const WIDTH = 820;

/** A piece of a chart, and where it ends. */
export interface Panel {
  readonly svg: string;
  readonly bottom: number;
}

export function frame(title: string, height: number, content: string): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(title)}">
<style>
  text { font: 12px system-ui, sans-serif; fill: #24292f; }
  .title { font-weight: 600; }
  .own { color: #2f6f4f; } .limit { color: #9aa3ad; } .other { color: #6f8fb8; }
  rect, circle { fill: currentColor; }
  .line { fill: none; stroke: currentColor; stroke-width: 2; }
  .spread { stroke: #24292f; }
  .grid { stroke: #d0d7de; }
  .value { paint-order: stroke; stroke: #ffffff; stroke-width: 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #d0d7de; }
    .own { color: #4fae7f; } .limit { color: #6e7781; }
    .spread { stroke: #d0d7de; }
    .grid { stroke: #3d444d; }
    .value { stroke: #0d1117; }
  }
</style>
${content}
</svg>
`;
}

export function label(x: number, y: number, text: string, more = ''): string {
  return `<text x="${round(x)}" y="${round(y)}"${more}>${escaped(text)}</text>`;
}

export function stroke(
  kind: 'spread' | 'grid',
  from: readonly [number, number],
  to: readonly [number, number],
): string {
  const [x1, y1, x2, y2] = [...from, ...to].map(round);
  return `<line class="${kind}" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`;
}

export function colour({ id }: Peer): 'own' | 'limit' | 'other' {
  return id.startsWith('mulligan') ? 'own' : id.startsWith('raw') ? 'limit' : 'other';
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
