export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogEntry {
  readonly level: LogLevel;
  readonly message: string;
  readonly [field: string]: unknown;
}

/** Where Mulligan and its handlers write; it must not throw. */
export type LogSink = (entry: LogEntry) => void;

export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** A logger whose every entry carries `context`. A sink that throws is ignored: there is nobody left to tell. */
export function makeLogger(sink: LogSink, context: () => Record<string, unknown>): Logger {
  const write =
    (level: LogLevel) =>
    (message: string, fields: Record<string, unknown> = {}): void => {
      try {
        sink({ ...context(), ...fields, level, message });
      } catch {}
    };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/** The default sink: a line of text on standard error, so that nothing mixes with a program's own output. */
export function writeToStderr({ level, message, ...fields }: LogEntry): void {
  if (level === 'debug') return;
  const rest = Object.entries(fields).map(([key, value]) => ` ${key}=${render(value)}`);
  process.stderr.write(`mulligan ${level}: ${message}${rest.join('')}\n`);
}

function render(value: unknown): string {
  if (value instanceof Error) return JSON.stringify(`${value.name}: ${value.message}`);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
