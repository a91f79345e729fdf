import { isError } from '../brand.ts';
import { byteLength } from '../bytes.ts';
import { describe } from '../config.ts';
import type { Logger, LogLevel } from '../observe/log.ts';
import { SECRET } from '../untrusted/scrub.ts';
import { withoutSecrets } from '../untrusted/secret-fields.ts';
import { tidy } from '../untrusted/stored-error.ts';
import { readString } from '../untrusted/thrown.ts';

/*
 * What is kept of a run's log, to be stored with its settlement: the last lines, bounded in number and in bytes, whatever the
 * handler writes. Each line becomes JSON text when it is written, so that objects which change later are kept as they were.
 */
const MOST_LINES = 50;
const MOST_BYTES = 8 * 1_024;
const MESSAGE_BYTES = 1_024;
const MOST_FIELDS = 20;
const FIELDS_BYTES = 1_024;
const FIELD_NAME_BYTES = 64;
const TEXT_BYTES = 512;
/** Of one field, nested ones included: more than fits in FIELDS_BYTES is not read. */
const MOST_VALUES = 200;
const LEFT_OUT = '"..."';

export class LogLines {
  readonly #lines: string[] = [];
  #bytes = 0;
  #dropped = 0;

  /** Never throws. Lines of level `debug` are for the process's own log: they would displace the others. */
  add(level: LogLevel, at: number, message: unknown, fields?: unknown): void {
    if (level === 'debug') return;
    const line = lineText(level, at, message, fields);
    this.#lines.push(line);
    this.#bytes += byteLength(line);
    // The last one always fits: a byte of a message becomes six of JSON at most.
    while (this.#lines.length > MOST_LINES || this.#bytes > MOST_BYTES) {
      this.#bytes -= byteLength(this.#lines.shift() as string);
      this.#dropped++;
    }
  }

  /** As `Settlement.log` carries it; undefined when there is no line. */
  get text(): string | undefined {
    return this.#lines.length === 0 ? undefined : `{"dropped":${this.#dropped},"lines":[${this.#lines.join()}]}`;
  }
}

/** A logger that also keeps what it writes. */
export function withLines(logger: Logger, lines: LogLines, now: () => number): Logger {
  const write =
    (level: LogLevel) =>
    (message: string, fields?: Record<string, unknown>): void => {
      lines.add(level, now(), message, fields);
      logger[level](message, fields);
    };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

function lineText(level: LogLevel, at: number, message: unknown, fields: unknown): string {
  const text = JSON.stringify(tidy(typeof message === 'string' ? message : describe(message), MESSAGE_BYTES));
  const more = fieldsText(fields);
  return `{"level":"${level}","at":${at},"message":${text}${more === '' ? '' : `,"fields":{${more}}`}}`;
}

function fieldsText(fields: unknown): string {
  const texts: string[] = [];
  let room = FIELDS_BYTES;
  for (const [name, field] of Object.entries(fieldsOf(fields))) {
    const value = valueText(field);
    if (value === undefined) continue;
    const key = JSON.stringify(tidy(name, FIELD_NAME_BYTES));
    const text = [`${key}:${value}`, `${key}:${LEFT_OUT}`].find((one) => byteLength(one) <= room);
    if (text === undefined) break;
    room -= byteLength(text);
    texts.push(text);
  }
  return texts.join();
}

/** The first fields, without credentials. Getters, toJSON and proxies are the handler's code, and may throw. */
function fieldsOf(fields: unknown): object {
  try {
    const names = typeof fields === 'object' && fields !== null ? Object.keys(fields).slice(0, MOST_FIELDS) : [];
    return withoutSecrets(Object.fromEntries(names.map((name) => [name, fieldOf(fields as object, name)])), SECRET);
  } catch {
    return {};
  }
}

const UNREADABLE = Symbol('unreadable');

function fieldOf(fields: object, name: string): unknown {
  try {
    return Reflect.get(fields, name);
  } catch {
    return UNREADABLE;
  }
}

/** Undefined for what JSON leaves out. */
function valueText(field: unknown): string | undefined {
  let values = 0;
  const readable = (_: string, value: unknown): unknown => {
    if (++values > MOST_VALUES) throw new RangeError('expected fewer values');
    if (typeof value === 'string') return tidy(value, TEXT_BYTES);
    if (typeof value === 'bigint') return String(value);
    if (typeof value !== 'object' || value === null) return value;
    return isError(value) ? errorText(value) : withoutSecrets(value, SECRET);
  };
  try {
    return field === UNREADABLE ? LEFT_OUT : JSON.stringify(field, readable);
  } catch {
    return LEFT_OUT;
  }
}

function errorText(error: object): string {
  return tidy(`${readString(error, 'name') ?? 'Error'}: ${readString(error, 'message') ?? ''}`, TEXT_BYTES);
}
