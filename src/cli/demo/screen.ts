import { systemClock } from '../../clock.ts';
import type { Output } from '../output.ts';

/** Lines that are redrawn in place, without a cursor; it is shown again whatever ends the process. */
export class Screen {
  readonly #output: Output;
  #drawn = 0;

  constructor(output: Output) {
    this.#output = output;
    process.on('exit', this.#showCursor);
    output.raw('\x1b[?25l');
  }

  draw(lines: readonly string[]): void {
    const back = this.#drawn === 0 ? '' : `\x1b[${this.#drawn}A\x1b[J`;
    this.#drawn = lines.length;
    this.#output.raw(`${back}${lines.join('\n')}\n`);
  }

  end(): void {
    this.#showCursor();
    process.off('exit', this.#showCursor);
  }

  readonly #showCursor = (): void => this.#output.raw('\x1b[?25h');
}

/** Seconds since it was made, in a fixed width. */
export function stopwatch(): () => string {
  const startedAt = systemClock.monotonic();
  return () => `${((systemClock.monotonic() - startedAt) / 1_000).toFixed(1).padStart(5)}s`;
}
