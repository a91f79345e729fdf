import type { Clock } from '../../clock.ts';
import type { Output } from '../output.ts';
import type { TopReader, TopSnapshot } from './snapshot.ts';
import { headingOf, topLines } from './view.ts';

/*
 * The live view. It draws on the terminal's alternate screen, so that what was there before comes back, whatever ends it:
 * `q`, Ctrl-C, SIGTERM or an error.
 *
 *   reading -> drawn -> (interval) -> reading ...      until q or a signal
 *   p: drawn <-> paused, where nothing is read
 *
 * Stores count the waiting jobs, so a reading takes longer the more there are. The pause after one is at least nine times as
 * long as it took: this never keeps the database busy for more than a tenth of the time.
 *
 * A reading that fails after the first is said in the heading, over the last one that succeeded: a database that is away is
 * when people look at this.
 */

const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
const TO_TOP = '\x1b[H';
const CLEAR_LINE = '\x1b[K';
const CLEAR_BELOW = '\x1b[J';

const PAUSE_FACTOR = 9;

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** In raw mode a terminal sends a character instead of SIGINT. */
const CTRL_C = '\x03';

/** The part of standard input that is used; not a terminal when keys cannot be read one by one. */
export type Keys = Pick<NodeJS.ReadStream, 'on' | 'off' | 'pause' | 'resume'> &
  Partial<Pick<NodeJS.ReadStream, 'isTTY' | 'setRawMode'>>;

export interface LoopParts {
  readonly reader: Pick<TopReader, 'read'>;
  readonly output: Output;
  readonly clock: Clock;
  readonly keys: Keys;
  readonly intervalMs: number;
  /** What may be printed of the database's address. */
  readonly database: string;
}

/** Resolves when the user ends it. Rejects when the first reading fails. */
export async function watch(parts: LoopParts): Promise<void> {
  const startedAt = parts.clock.monotonic();
  const first = await parts.reader.read();
  const loop = new Loop(parts, first, parts.clock.monotonic() - startedAt);
  try {
    await loop.run();
  } finally {
    loop.end();
  }
}

class Loop {
  readonly #parts: LoopParts;
  #snapshot: TopSnapshot;
  /** How long the last reading took. */
  #readMs: number;
  #failure: string | null = null;
  #isPaused = false;
  #hasEnded = false;
  #wake: () => void = () => {};

  constructor(parts: LoopParts, first: TopSnapshot, readMs: number) {
    this.#parts = parts;
    this.#snapshot = first;
    this.#readMs = readMs;
    for (const signal of SIGNALS) process.on(signal, this.#quit);
    process.on('SIGWINCH', this.#draw);
    process.on('exit', this.#restore);
    if (this.#readsKeys) parts.keys.setRawMode?.(true);
    if (this.#readsKeys) parts.keys.on('data', this.#pressed).resume();
    parts.output.raw(ENTER);
  }

  get #readsKeys(): boolean {
    return this.#parts.keys.isTTY === true;
  }

  async run(): Promise<void> {
    this.#draw();
    for (;;) {
      await this.#interval();
      if (this.#hasEnded) return;
      if (!this.#isPaused) await this.#read();
      if (this.#hasEnded) return;
      this.#draw();
    }
  }

  end(): void {
    const { keys } = this.#parts;
    for (const signal of SIGNALS) process.off(signal, this.#quit);
    process.off('SIGWINCH', this.#draw);
    process.off('exit', this.#restore);
    if (this.#readsKeys) keys.off('data', this.#pressed).pause();
    this.#restore();
  }

  /** Ends early when a key was pressed that matters, or by a signal. */
  #interval(): Promise<void> {
    const { clock, intervalMs } = this.#parts;
    return new Promise((resolve) => {
      const timer = clock.after(Math.max(intervalMs, PAUSE_FACTOR * this.#readMs), resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** Does not wait for a reading that hangs once it is told to end. */
  async #read(): Promise<void> {
    const ended = new Promise<null>((resolve) => {
      this.#wake = () => {
        if (this.#hasEnded) resolve(null);
      };
    });
    const { clock } = this.#parts;
    const startedAt = clock.monotonic();
    try {
      this.#snapshot = (await Promise.race([this.#parts.reader.read(), ended])) ?? this.#snapshot;
      this.#failure = null;
    } catch (error) {
      this.#failure = error instanceof Error ? error.message : String(error);
    }
    this.#readMs = clock.monotonic() - startedAt;
  }

  readonly #pressed = (data: Buffer | string): void => {
    for (const key of String(data)) {
      if (key === 'q' || key === CTRL_C) this.#quit();
      if (key === 'p') this.#isPaused = !this.#isPaused;
    }
    this.#wake();
  };

  readonly #quit = (): void => {
    this.#hasEnded = true;
    this.#wake();
  };

  readonly #draw = (): void => {
    const { output, database } = this.#parts;
    const heading = headingOf(database, this.#snapshot, { keys: this.#keysText, failure: this.#failure });
    const lines = topLines(this.#snapshot, heading, output);
    output.raw(`${TO_TOP}${lines.map((line) => `${line}${CLEAR_LINE}`).join('\r\n')}${CLEAR_BELOW}`);
  };

  get #keysText(): string {
    if (!this.#readsKeys) return 'Ctrl-C quits';
    return this.#isPaused ? 'PAUSED: p goes on, q quits' : 'q quits, p pauses';
  }

  readonly #restore = (): void => {
    if (this.#readsKeys) this.#parts.keys.setRawMode?.(false);
    this.#parts.output.raw(LEAVE);
  };
}
