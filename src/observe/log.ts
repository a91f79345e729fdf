import { describe, unexpected } from '../config.ts';
import { printable } from '../printable.ts';
import { SECRET, scrub } from '../untrusted/scrub.ts';
import { leaveOutSecrets, withoutSecrets } from '../untrusted/secret-fields.ts';
import { read } from '../untrusted/thrown.ts';

export const logLevels = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LogEntry {
  readonly level: LogLevel;
  readonly message: string;
  readonly [field: string]: unknown;
}

/** Where Mulligan and its handlers write. What it returns is ignored, and so is what it throws or rejects with. */
export type LogSink = (entry: LogEntry) => unknown;

/** A logger such as pino's: fields first, then the message. */
export interface StructuredLogger {
  debug(fields: object, message: string): unknown;
  info(fields: object, message: string): unknown;
  warn(fields: object, message: string): unknown;
  error(fields: object, message: string): unknown;
  /** Whether anything becomes of an entry of this level; asked where there is one entry for every run. */
  isLevelEnabled?(level: string): boolean;
}

export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** A logger whose every entry carries `context`. An error of the sink is ignored: there is no other place to report it. */
export function makeLogger(sink: LogSink, context: () => Record<string, unknown>): Logger {
  const write =
    (level: LogLevel) =>
    (message: string, fields: Record<string, unknown> = {}): void => {
      try {
        const answer = sink({ ...context(), ...fields, level, message });
        // An executor, because a hostile promise throws at `Promise.resolve`.
        if (answer !== undefined) new Promise((resolve) => resolve(answer)).catch(() => {});
      } catch {}
    };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/** The sink for the option `log`, and the logger itself when it is one. */
export function readLog(
  log: unknown,
  what: string,
): { readonly sink: LogSink; readonly structured: StructuredLogger | null } {
  if (logLevels.every((level) => typeof read(log, level) === 'function')) {
    const logger = log as StructuredLogger;
    return { sink: (entry) => writeTo(logger, entry), structured: logger };
  }
  if (typeof log === 'function') return { sink: log as LogSink, structured: null };
  throw unexpected(what, 'a function that takes log entries, or a logger with debug, info, warn and error', log);
}

/** An `Error` goes under `err`, where pino and its like write its stack. */
function writeTo(logger: StructuredLogger, { level, message, ...fields }: LogEntry): void {
  const { error, ...rest } = fields;
  logger[level](error instanceof Error ? { ...rest, err: error } : fields, message);
}

/**
 * The default sink: a line of text on standard error, so that nothing mixes with a program's own output. It holds data of jobs, which
 * must neither control a terminal nor look like another line, and it is read by more people than the jobs are: credentials are left out.
 */
export function writeToStderr({ level, message, ...fields }: LogEntry): void {
  if (level === 'debug') return;
  const rest = Object.entries(withoutSecrets(fields, SECRET)).map(([key, value]) => ` ${key}=${render(value)}`);
  process.stderr.write(`mulligan ${level}: ${printable(`${scrub(String(message))}${rest.join('')}`)}\n`);
}

function render(value: unknown): string {
  try {
    if (value instanceof Error) return JSON.stringify(scrub(`${value.name}: ${value.message}`));
    return JSON.stringify(value, leaveOutSecrets) ?? String(value);
  } catch {
    return describe(value);
  }
}
