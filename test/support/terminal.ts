import { EventEmitter } from 'node:events';
import { Output } from '../../src/cli/output.ts';

export interface Shape {
  readonly columns: number;
  readonly rows: number;
}

/** A stream that remembers what was written; with a shape, it is a terminal. */
export class FakeStream extends EventEmitter {
  written = '';
  readonly isTTY: boolean;
  readonly columns: number | undefined;
  readonly rows: number | undefined;

  constructor(shape?: Shape) {
    super();
    this.isTTY = shape !== undefined;
    this.columns = shape?.columns;
    this.rows = shape?.rows;
  }

  write(text: string): boolean {
    this.written += text;
    return true;
  }

  /** How many colours it has: none, so that tests read plain text. */
  getColorDepth(): number {
    return 1;
  }
}

export interface FakeOutput {
  readonly output: Output;
  readonly stdout: FakeStream;
  readonly stderr: FakeStream;
}

export interface FakeOutputOptions {
  readonly json?: boolean;
  readonly terminal?: Shape;
  readonly monotonic?: () => number;
}

export function fakeOutput(options: FakeOutputOptions = {}): FakeOutput {
  const stdout = new FakeStream(options.terminal);
  const stderr = new FakeStream(options.terminal);
  const stream = (fake: FakeStream): NodeJS.WriteStream => fake as unknown as NodeJS.WriteStream;
  const output = new Output(options.json === true, stream(stdout), stream(stderr), options.monotonic);
  return { output, stdout, stderr };
}
