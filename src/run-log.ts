import type { LogLevel } from './observe/log.ts';

/** A line that a handler wrote to `context.log`. */
export interface LogLine {
  readonly level: LogLevel;
  /** In store time, ms since the epoch. */
  readonly at: number;
  readonly message: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** What is kept of the log of a run: its last lines. */
export interface RunLog {
  readonly run: number;
  /** Oldest first. */
  readonly lines: readonly LogLine[];
  /** How many lines were written before these, and are not kept. */
  readonly dropped: number;
}

/** A log with its run, from the text that a settlement carries (worker/log-lines.ts writes it). */
export function parseRunLog(run: number, text: string): RunLog {
  const { lines, dropped } = JSON.parse(text) as Omit<RunLog, 'run'>;
  return { run, lines, dropped };
}
