import { type Bounds, checkInteger, checkNumber, unexpected } from '../config.ts';
import { type Duration, parseDuration } from '../duration.ts';
import { ConfigError } from '../errors.ts';
import { wrongUsage } from './failure.ts';

/* These turn the text after a flag into a value, and name the flag in their errors. */

export function readInteger(text: string, flag: string, bounds: Bounds = {}): number {
  return checkInteger(toNumber(text) ?? text, flag, bounds);
}

export function readNumber(text: string, flag: string, bounds: Bounds = {}): number {
  return checkNumber(toNumber(text) ?? text, flag, bounds);
}

function toNumber(text: string): number | null {
  return /^[+-]?\d+(\.\d+)?$/.test(text) ? Number(text) : null;
}

/** In ms; on the command line a duration needs its unit. */
export function readDuration(text: string, flag: string): number {
  return parseDuration(text as Duration, flag);
}

export function readJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw unexpected(
      what,
      `JSON (${(error as Error).message})`,
      text,
      `Quote it for the shell: '{"to":"a@example.com"}'.`,
    );
  }
}

/** All of standard input, for `-` in place of an argument. */
export async function readStdin(): Promise<string> {
  if (process.stdin.isTTY)
    throw wrongUsage('expected JSON on standard input after -, but it is a terminal. Pipe it in.');
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const chunk of process.stdin) text += chunk;
  return text;
}

/** `{ [key]: value }`, or nothing: for options that must be left out when they were not given. */
export function given<Key extends string, Value>(key: Key, value: Value | undefined): { readonly [K in Key]?: Value } {
  return value === undefined ? {} : ({ [key]: value } as { [K in Key]: Value });
}

/** The same for text that is still to be read. */
export function read<Key extends string, Value>(
  key: Key,
  text: string | undefined,
  reader: (text: string) => Value,
): { readonly [K in Key]?: Value } {
  return given(key, text === undefined ? undefined : reader(text));
}

/** The library's own checks; the option that an error names (what `field` captures) becomes its flag. */
export function namingFlags<T>(field: RegExp, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw wrongUsage(error.message.replace(field, (_, option: string) => flagOf(option)));
  }
}

function flagOf(option: string): string {
  return `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
