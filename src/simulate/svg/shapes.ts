/* Pieces of an SVG. Colours are classes, so that one style sheet has them for light and for dark pages. */

export const WIDTH = 860;
export const LEFT = 64;
export const RIGHT: number = WIDTH - 16;

export type Point = readonly [x: number, y: number];

export function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${round(x)}" y="${round(y)}"${attributes === '' ? '' : ` ${attributes}`}>${escaped(content)}</text>`;
}

export function line(kind: string, from: Point, to: Point): string {
  const [x1, y1, x2, y2] = [...from, ...to].map(round);
  return `<line class="${kind}" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`;
}

export function rect(kind: string, [x, y]: Point, width: number, height: number): string {
  return `<rect class="${kind}" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"/>`;
}

export function polyline(kind: string, points: readonly Point[]): string {
  return `<polyline class="${kind}" points="${placesOf(points)}"/>`;
}

export function polygon(kind: string, points: readonly Point[]): string {
  return `<polygon class="${kind}" points="${placesOf(points)}"/>`;
}

/** Without the inner points of flat parts: a third of the size. */
function placesOf(points: readonly Point[]): string {
  const places = points.map(([x, y]): Point => [round(x), round(y)]);
  return places
    .filter(([, y], index) => y !== places[index - 1]?.[1] || y !== places[index + 1]?.[1])
    .map((place) => place.join(','))
    .join(' ');
}

/** About as wide as a browser draws it at 12 px. */
export function textWidth(content: string): number {
  return content.length * 7.4;
}

export function frame(title: string, height: number, parts: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${round(height)}" width="${WIDTH}" height="${round(height)}" role="img" aria-label="${escaped(title)}">
<style>${STYLE}</style>
<rect class="page" width="100%" height="100%"/>
${parts.join('\n')}
</svg>
`;
}

/** Policies differ by colour and by dashes; the colours are told apart also by people who do not see red and green alike. */
const STYLE = `
  .page { fill: #ffffff; }
  text { font: 12px system-ui, sans-serif; fill: #24292f; }
  .title { font-size: 16px; font-weight: 600; } .panel { font-weight: 600; } .faint { fill: #57606a; }
  .grid { stroke: #d8dee4; } .axis { stroke: #8c959f; }
  .outage { fill: #cf222e; opacity: 0.09; } .burst { stroke: #cf222e; stroke-dasharray: 2 3; }
  .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
  .p0 { stroke: #0969da; } .p1 { stroke: #1a7f37; stroke-dasharray: 7 3; } .p2 { stroke: #cf222e; }
  .p3 { stroke: #8250df; stroke-dasharray: 7 3; } .p4 { stroke: #9a6700; } .p5 { stroke: #57606a; stroke-dasharray: 2 3; }
  .fresh { fill: #54aeff; } .retry { fill: #e16f24; } .redrive { fill: #8250df; } .suspect { fill: #a40e26; }
  .closed { fill: #4ac26b; } .open { fill: #cf222e; } .ramp { fill: #d4a72c; } .held { fill: #8250df; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; }
    text { fill: #e6edf3; } .faint { fill: #9198a1; }
    .grid { stroke: #30363d; } .axis { stroke: #6e7681; }
    .outage { fill: #ff7b72; opacity: 0.14; } .burst { stroke: #ff7b72; }
    .p0 { stroke: #58a6ff; } .p1 { stroke: #3fb950; } .p2 { stroke: #ff7b72; }
    .p3 { stroke: #bc8cff; } .p4 { stroke: #e3b341; } .p5 { stroke: #9198a1; }
    .fresh { fill: #388bfd; } .retry { fill: #db6d28; } .redrive { fill: #a371f7; } .suspect { fill: #f85149; }
    .closed { fill: #2ea043; } .open { fill: #f85149; } .ramp { fill: #d29922; } .held { fill: #a371f7; }
  }
`;

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(content: string): string {
  return content
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('"', '&quot;')
    .replace(/[\p{Cc}\p{Cs}]/gu, ' ');
}
