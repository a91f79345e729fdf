import { shorten } from '../../../printable.ts';
import type { Output, Style } from '../../output.ts';
import { span } from '../../time.ts';
import { Screen } from '../screen.ts';
import { attemptsOf, gateText, heldOf, inState, lastSecond, number, rateText, waitingOf } from './figures.ts';
import type { SideFigures, SideName } from './side.ts';

/** Both sides at one moment. */
export interface Picture {
  readonly elapsedMs: number;
  /** When the service is switched off after the start, and for how long. */
  readonly offSinceMs: number;
  readonly offForMs: number;
  readonly isOn: boolean;
  readonly ungated: SideFigures;
  readonly gated: SideFigures;
}

export interface OutageView {
  show(picture: Picture): void;
  /** What a side logs. */
  event(side: SideName, text: string): void;
  end(): void;
}

const NARROWEST = 76;
const EVENTS = 5;
const ROWS_NEEDED = 24;

export function makeOutageView(output: Output): OutageView {
  const fits = output.isTerminal && output.columns >= NARROWEST && output.rows >= ROWS_NEEDED;
  return fits ? new LiveView(output) : new PlainView(output);
}

const titles: Readonly<Record<SideName, string>> = { ungated: 'left', gated: 'right' };

function serviceText({ elapsedMs, offSinceMs, offForMs, isOn }: Picture): string {
  if (!isOn) return 'down';
  return elapsedMs < offSinceMs + offForMs ? 'up' : 'up again';
}

/** A line every two seconds, and one per event. */
class PlainView implements OutageView {
  readonly #output: Output;
  #elapsedMs = 0;
  #nextMs = 0;

  constructor(output: Output) {
    this.#output = output;
    const group = (text: string, width: number): string => `| ${text} ${'-'.repeat(width - text.length - 1)}`;
    output.lines([
      `${' '.repeat(17)}${group('resource: false', 41)} ${group("resource: 'service'", 59)}`,
      `${' time  service'.padEnd(17)}${titleColumns} ${titleColumns}  ${'held'.padStart(5)}  gate    rate`,
    ]);
  }

  show(picture: Picture): void {
    this.#elapsedMs = picture.elapsedMs;
    if (picture.elapsedMs < this.#nextMs) return;
    this.#nextMs += PLAIN_EVERY_MS;
    const { ungated, gated } = picture;
    const gate = `${number(heldOf(gated)).padStart(5)}  ${gateText(gated).padEnd(6)}  ${rateText(gated)}`;
    this.#output.lines([
      `${this.#time()}  ${serviceText(picture).padEnd(9)} ${columns(ungated)} ${columns(gated)}  ${gate}`,
    ]);
  }

  event(side: SideName, text: string): void {
    this.#output.lines([`${this.#time()}  ${titles[side]}: ${text}`]);
  }

  end(): void {}

  #time(): string {
    return `${(this.#elapsedMs / 1_000).toFixed(0).padStart(4)}s`;
  }
}

const PLAIN_EVERY_MS = 2_000;
const titleColumns = '| calls/s  waiting  completed   dead  tries';

function columns(figures: SideFigures): string {
  const cells: [number, number][] = [
    [lastSecond(figures), 7],
    [waitingOf(figures), 7],
    [inState(figures, 'completed'), 9],
    [inState(figures, 'dead'), 5],
    [attemptsOf(figures), 5],
  ];
  return `| ${cells.map(([value, width]) => number(value).padStart(width)).join('  ')}`;
}

const NAME_WIDTH = 26;
const SIDE_WIDTH = 24;
const bars = [...' ▁▂▃▄▅▆▇█'];

/** Both sides as columns and as curves, redrawn in place, and the latest events below. */
class LiveView implements OutageView {
  readonly #output: Output;
  readonly #screen: Screen;
  readonly #events: string[] = [];
  #picture: Picture | null = null;

  constructor(output: Output) {
    this.#output = output;
    this.#screen = new Screen(output);
  }

  show(picture: Picture): void {
    this.#picture = picture;
    this.#draw();
  }

  event(side: SideName, text: string): void {
    const seconds = ((this.#picture?.elapsedMs ?? 0) / 1_000).toFixed(0);
    this.#events.push(`${seconds.padStart(3)}s  ${titles[side]}: ${text}`);
    if (this.#events.length > EVENTS) this.#events.shift();
    this.#draw();
  }

  end(): void {
    this.#draw();
    this.#screen.end();
  }

  #draw(): void {
    const picture = this.#picture;
    if (picture === null) return;
    const latest = Array.from({ length: EVENTS }, (_, index) => this.#events[index] ?? '');
    this.#screen.draw([
      this.#headline(picture),
      '',
      ...this.#table(picture),
      '',
      ...this.#curves(picture),
      '',
      ...latest.map((text) => this.#output.paint('dim', `  ${shorten(text, this.#output.columns - 3)}`)),
    ]);
  }

  #headline(picture: Picture): string {
    const { elapsedMs, offSinceMs, offForMs, isOn } = picture;
    const backMs = offSinceMs + offForMs;
    const seconds = `${(elapsedMs / 1_000).toFixed(0).padStart(3)}s`;
    if (!isOn) {
      const left = `back in ${span(Math.max(0, backMs - elapsedMs))}`;
      return `  ${seconds}  ${this.#output.paint(['bold', 'red'], 'the service is DOWN')}, ${left}`;
    }
    const next = elapsedMs < backMs ? `down in ${span(Math.max(0, offSinceMs - elapsedMs))}` : 'it was down';
    return `  ${seconds}  ${this.#output.paint(['bold', 'green'], 'the service is up')}, ${next}`;
  }

  #table({ ungated, gated }: Picture): string[] {
    const row = (name: string, text: (side: SideFigures) => string, style?: Style): string => {
      const cells = [ungated, gated].map((side) => text(side).padStart(SIDE_WIDTH));
      const painted = cells.map((cell) => (style && !/^ *0$/.test(cell) ? this.#output.paint(style, cell) : cell));
      return `  ${name.padEnd(NAME_WIDTH)}${painted.join('')}`;
    };
    return [
      row('', ({ gate }) => (gate === null ? 'resource: false' : "resource: 'service'"), 'bold'),
      row('calls in the last second', (side) => number(lastSecond(side))),
      row('calls to the dead service', ({ callsWhileOff }) => number(callsWhileOff), 'red'),
      row('waiting', (side) => number(waitingOf(side))),
      row('held by the gate', (side) => (side.gate === null ? '-' : number(heldOf(side)))),
      row('completed', (side) => number(inState(side, 'completed')), 'green'),
      row('dead', (side) => number(inState(side, 'dead')), 'red'),
      row('attempts spent', (side) => number(attemptsOf(side))),
      row('gate', gateText),
      row('admission rate', rateText),
    ];
  }

  /** One column per second; both curves have one scale. */
  #curves({ ungated, gated, offSinceMs, offForMs }: Picture): string[] {
    const all = [ungated, gated].map(({ callsPerSecond }) => callsPerSecond.slice(0, -1));
    const width = this.#output.columns - NAME_WIDTH - 3;
    const from = Math.max(0, (all[0]?.length ?? 0) - width);
    const highest = Math.max(1, ...all.flat());
    const curve = (calls: readonly number[]): string =>
      calls
        .slice(from)
        .map((count) => bars[Math.ceil((count / highest) * (bars.length - 1))])
        .join('');
    const isDown = (second: number): boolean => second * 1_000 >= offSinceMs && second * 1_000 < offSinceMs + offForMs;
    const service = (all[0] ?? [])
      .map((_, second) => (isDown(second) ? '×' : '·'))
      .slice(from)
      .join('');
    return [
      `  ${'calls/s, resource: false'.padEnd(NAME_WIDTH)}${this.#output.paint('yellow', curve(all[0] ?? []))}`,
      `  ${"calls/s, 'service'".padEnd(NAME_WIDTH)}${this.#output.paint('cyan', curve(all[1] ?? []))}`,
      `  ${'service (× is down)'.padEnd(NAME_WIDTH)}${service}`,
    ];
  }
}
