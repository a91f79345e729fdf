import type { Job } from '../../job.ts';
import { shorten } from '../../printable.ts';
import { stateStyles } from '../ledger.ts';
import type { Output } from '../output.ts';
import { describeRun, isWorthShowing } from './describe-run.ts';
import { jobTypes } from './jobs.ts';
import { Screen, stopwatch } from './screen.ts';
import type { Snapshot } from './watch.ts';

/** How the demo shows its progress. */
export interface View {
  show(snapshot: Snapshot): void;
  /** Something that happened outside the ledger. */
  event(what: string): void;
  end(): void;
}

const NARROWEST = 72;
const LATEST = 6;
const NAME_WIDTH = 15;
const DOES_WIDTH = 36;

export function makeView(output: Output): View {
  const needed = jobTypes.length + LATEST + 6;
  const fits = output.isTerminal && output.columns >= NARROWEST && output.rows >= needed;
  return fits ? new LiveView(output) : new PlainView(output);
}

/** One line per event. */
class PlainView implements View {
  readonly #output: Output;
  readonly #clock = stopwatch();

  constructor(output: Output) {
    this.#output = output;
    output.lines(['Jobs that succeed at once are not listed.', '']);
  }

  show({ ended }: Snapshot): void {
    for (const { job, record } of ended) if (isWorthShowing(record)) this.event(describeRun(job, record));
  }

  event(what: string): void {
    this.#output.lines([`${this.#clock()}  ${what}`]);
  }

  end(): void {}
}

const glyphs: Readonly<Record<Job['state'], string>> = {
  scheduled: '·',
  ready: '·',
  running: '▸',
  retrying: '↻',
  completed: '✔',
  dead: '✖',
  cancelled: '-',
};

/** A sign per job, redrawn in place, and the latest events below. */
class LiveView implements View {
  readonly #output: Output;
  readonly #clock = stopwatch();
  readonly #latest: string[] = [];
  readonly #screen: Screen;
  #jobs: readonly Job[] = [];

  constructor(output: Output) {
    this.#output = output;
    this.#screen = new Screen(output);
  }

  show({ jobs, ended }: Snapshot): void {
    this.#jobs = jobs;
    for (const { job, record } of ended) if (isWorthShowing(record)) this.#remember(describeRun(job, record));
    this.#draw();
  }

  event(what: string): void {
    this.#remember(what);
    this.#draw();
  }

  end(): void {
    this.#draw();
    this.#screen.end();
  }

  #remember(what: string): void {
    this.#latest.push(`${this.#clock()}  ${what}`);
    if (this.#latest.length > LATEST) this.#latest.shift();
  }

  #draw(): void {
    this.#screen.draw([
      ...jobTypes.map(({ definition, does }) => this.#jobTypeLine(definition.name, does)),
      '',
      this.#legend(),
      '',
      ...Array.from({ length: LATEST }, (_, index) => this.#eventLine(this.#latest[index] ?? '')),
    ]);
  }

  #jobTypeLine(name: string, does: string): string {
    const signs = this.#jobs.filter((job) => job.name === name).map(({ state }) => this.#sign(state));
    return `  ${this.#output.paint('bold', name.padEnd(NAME_WIDTH))} ${does.padEnd(DOES_WIDTH)} ${signs.join('')}`;
  }

  #legend(): string {
    const words = {
      ready: 'waiting',
      running: 'running',
      retrying: 'waits to retry',
      completed: 'completed',
      dead: 'dead',
    };
    const parts = Object.entries(words).map(([state, word]) => `${this.#sign(state as Job['state'])} ${word}`);
    return `  ${parts.join('   ')}`;
  }

  #eventLine(text: string): string {
    return this.#output.paint('dim', `  ${shorten(text, this.#output.columns - 3)}`);
  }

  #sign(state: Job['state']): string {
    return this.#output.paint(stateStyles[state], glyphs[state]);
  }
}
