import { styleText } from 'node:util';
import { systemClock } from '../clock.ts';
import { printableJson } from '../printable.ts';
import type { FailureReport } from './failure.ts';

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan' | 'magenta';

const WIDTH_OF_A_TERMINAL = 120;
/** Of lines in a log that say how far something is. */
const PROGRESS_EVERY_MS = 10_000;

/** Where a command writes: for people, or with `--json` for programs. */
export class Output {
  readonly isJson: boolean;
  readonly #stdout: NodeJS.WriteStream;
  readonly #stderr: NodeJS.WriteStream;
  readonly #monotonic: () => number;
  /** When the last line of progress was written, or what it tells of began; null while there is none. */
  #progressAt: number | null = null;

  constructor(
    isJson: boolean,
    stdout: NodeJS.WriteStream = process.stdout,
    stderr: NodeJS.WriteStream = process.stderr,
    monotonic: () => number = systemClock.monotonic,
  ) {
    this.isJson = isJson;
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.#monotonic = monotonic;
    // `mulligan jobs list | head`: a reader that has seen enough is no error, and must not kill a worker.
    for (const stream of [stdout, stderr]) stream.on('error', () => {});
  }

  get isTerminal(): boolean {
    return this.#stdout.isTTY === true && process.env.TERM !== 'dumb';
  }

  /** What COLUMNS says, or the terminal. A pipe has no end, so that nothing is cut off for the program that reads it. */
  get columns(): number {
    const asked = Number(process.env.COLUMNS);
    if (Number.isInteger(asked) && asked > 0) return asked;
    return this.isTerminal ? this.#stdout.columns || WIDTH_OF_A_TERMINAL : Number.POSITIVE_INFINITY;
  }

  get rows(): number {
    return this.isTerminal ? this.#stdout.rows || 0 : 0;
  }

  /** The answer of a command: `value` as JSON, or what `render` makes of it. */
  answer(value: unknown, render: () => readonly string[]): void {
    if (this.isJson) this.#stdout.write(`${printableJson(value)}\n`);
    else this.lines(render());
  }

  /** One of many answers, as a line of JSON. */
  line(value: unknown): void {
    this.#stdout.write(`${printableJson(value)}\n`);
  }

  /** Lines for people. They must be printable already. */
  lines(lines: readonly string[]): void {
    if (!this.isJson && lines.length > 0) this.#stdout.write(`${lines.join('\n')}\n`);
  }

  /** Text with cursor movements; for terminals only. */
  raw(text: string): void {
    if (!this.isJson && this.isTerminal) this.#stdout.write(text);
  }

  /** What is worth knowing beside the answer. */
  note(text: string): void {
    if (!this.isJson) this.#stderr.write(`${text}\n`);
  }

  /**
   * How far something is, on standard error. In a terminal the next text replaces it; anywhere else it is a line, at most
   * every 10 s. An empty text ends it.
   */
  progress(text: string): void {
    if (this.#stderr.isTTY === true && process.env.TERM !== 'dumb') this.#stderr.write(`\r\x1b[K${text}`);
    else if (text === '') this.#progressAt = null;
    else this.#progressLine(text);
  }

  #progressLine(text: string): void {
    const now = this.#monotonic();
    this.#progressAt ??= now;
    if (now - this.#progressAt < PROGRESS_EVERY_MS) return;
    this.#progressAt = now;
    this.log({ progress: text }, text);
  }

  /** A line of a log, on standard error. */
  log(value: unknown, text: string): void {
    this.#stderr.write(`${this.isJson ? printableJson(value) : text}\n`);
  }

  failure({ code, message }: FailureReport): void {
    const error = { error: { code, message } };
    this.#stderr.write(this.isJson ? `${printableJson(error)}\n` : `mulligan: ${message}\n`);
  }

  /** Coloured in a terminal that has colours (NO_COLOR and FORCE_COLOR are obeyed), plain anywhere else. */
  paint(style: Style | readonly Style[], text: string): string {
    return this.isJson ? text : styleText(style as Style, text, { stream: this.#stdout });
  }
}
