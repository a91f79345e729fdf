import { isDate } from './brand.ts';
import { ConfigError, UnknownNameError } from './errors.ts';
import { ourNameFor } from './foreign-options.ts';

/** The error for an option of the wrong kind. Its message names the option, what was expected, what it got, and what to do. */
export function unexpected(what: string, expected: string, got: unknown, hint?: string): ConfigError {
  return new ConfigError(unexpectedText(what, expected, got, hint));
}

/** The same for a name or an id that nothing has. */
export function unknownName(what: string, expected: string, got: unknown, hint?: string): UnknownNameError {
  return new UnknownNameError(unexpectedText(what, expected, got, hint), hint);
}

function unexpectedText(what: string, expected: string, got: unknown, hint?: string): string {
  return `${what}: expected ${expected}, got ${describe(got)}.${hint === undefined ? '' : ` ${hint}`}`;
}

/**
 * A short rendering of any value for a message. It never throws, and shows an object's keys but not
 * its values: an option object may hold credentials, and reading values would run getters.
 */
export function describe(value: unknown): string {
  try {
    return render(value);
  } catch {
    return 'a value that cannot be read';
  }
}

const LONGEST_TEXT = 80;
const MOST_KEYS = 6;

/** Keeps a message short, however long the text is that it quotes. */
export function shorten(text: string): string {
  return text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT).toWellFormed()}...`;
}

function render(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(shorten(value));
    case 'bigint':
      return shorten(`${value}n`);
    case 'symbol':
      return shorten(String(value));
    case 'function':
      return 'a function';
    case 'object':
      return value === null ? 'null' : renderObject(value);
    default:
      return Object.is(value, -0) ? '-0' : String(value);
  }
}

function renderObject(value: object): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : `an array of ${value.length}`;
  if (isDate(value) && Number.isNaN(Date.prototype.getTime.call(value))) return 'an invalid Date';
  if (!isPlainObject(value)) {
    const className: unknown = value.constructor?.name;
    return typeof className === 'string' && className !== '' ? `an object of class ${shorten(className)}` : 'an object';
  }
  const keys = Object.keys(value);
  if (keys.length === 0) return 'an empty object';
  const shown = keys.slice(0, MOST_KEYS).map(shorten).join(', ');
  return `an object with ${keys.length === 1 ? 'the key' : 'the keys'} ${shown}${keys.length > MOST_KEYS ? ', ...' : ''}`;
}

/** True for an object made by a literal or by JSON, in any realm: its prototype ends the chain. Never throws. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || isList(value)) return false;
  try {
    const prototype: unknown = Object.getPrototypeOf(value);
    return prototype === null || Object.getPrototypeOf(prototype) === null;
  } catch {
    return false;
  }
}

/** `Array.isArray` throws at a revoked proxy. */
export function isList(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/** The candidate most likely meant by a misspelt word; null when none comes close. */
export function closest(word: string, candidates: readonly string[]): string | null {
  const typed = word.toLowerCase();
  const limit = Math.min(3, Math.max(1, Math.floor(typed.length / 3)));
  let best: string | null = null;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - typed.length) >= bestDistance) continue;
    const distance = editDistance(typed, candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  // `attempts` is four letters away from `maxAttempts`, and yet clearly meant.
  return best ?? (typed.length < 4 ? null : (candidates.find((one) => one.toLowerCase().includes(typed)) ?? null));
}

/** How many letters to insert, drop, replace or swap with their neighbour to get from `a` to `b`. */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = at(previous, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
      let least = Math.min(replaced, at(previous, column) + 1, at(current, column - 1) + 1);
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) least = Math.min(least, at(beforePrevious, column - 2) + 1);
      current.push(least);
    }
    beforePrevious = previous;
    previous = current;
  }
  return at(previous, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] as number;
}

function didYouMean(word: string, known: readonly string[]): string {
  const ours = ourNameFor(word, known);
  if (ours !== null) return ours;
  const meant = closest(word, known);
  return meant === null ? `Valid options: ${known.join(', ')}.` : `Did you mean ${meant}?`;
}

/** The names of all options of a type. A record, so that the compiler notices a name that is missing or wrong. */
export function namesOf<Options>(
  names: Readonly<Record<keyof Options & string, true>>,
): readonly (keyof Options & string)[] {
  return Object.keys(names) as (keyof Options & string)[];
}

export function checkKeys(
  options: unknown,
  known: readonly string[],
  what: string,
): asserts options is Record<string, unknown> {
  readOptions(options as object, known, what);
}

/**
 * The options as a copy of our own, each read once: a getter or a proxy is the caller's code, which may throw,
 * or return something else the next time.
 */
export function readOptions<Options extends object>(options: Options, known: readonly string[], what: string): Options {
  if (!isPlainObject(options))
    throw unexpected(what, 'an object with options', options, `Valid options: ${known.join(', ')}.`);
  const copy: Record<string, unknown> = {};
  for (const key of reading(what, () => Object.keys(options))) {
    if (!known.includes(key)) {
      throw new ConfigError(`${what}: there is no option ${JSON.stringify(shorten(key))}. ${didYouMean(key, known)}`);
    }
    copy[key] = reading(`${what}: ${key}`, () => options[key]);
  }
  return copy as Options;
}

/** Without the options that are undefined: `undefined` says nothing, so that it must not hide what another source says. */
export function withoutUndefined<Options extends object>(options: Options): Options {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options;
}

/** The entries of an object whose keys the user chooses. Checking the keys is left to the caller. */
export function readEntries(map: unknown, what: string, expected: string): [string, unknown][] {
  if (!isPlainObject(map)) throw unexpected(what, expected, map);
  return reading(what, () => Object.entries(map));
}

/** The members of a list, each read once, and checked before the next is looked at. Holes are seen as undefined. */
export function checkList<Member>(
  list: unknown,
  what: string,
  expected: string,
  check: (member: unknown, index: number) => Member,
): Member[] {
  if (!isList(list)) throw unexpected(what, expected, list);
  const length = reading(what, () => list.length);
  const members: Member[] = [];
  for (let index = 0; index < length; index++)
    members.push(
      check(
        reading(what, () => list[index]),
        index,
      ),
    );
  return members;
}

/** Deeper and longer than any data that options take. What is beyond is not copied, and a check refuses it. */
const DEEPEST_DATA = 4;
const LONGEST_DATA = 10_000;

/** Plain objects and lists as a frozen copy of our own, read once; anything else is left as it is. */
export function copyData<Data>(data: Data, what: string): Data {
  return reading(what, () => copyLevels(data, DEEPEST_DATA)) as Data;
}

function copyLevels(data: unknown, levels: number): unknown {
  if (levels === 0) return data;
  if (isPlainObject(data)) {
    // fromEntries defines own properties, so that __proto__ is just a key.
    return Object.freeze(Object.fromEntries(Object.keys(data).map((key) => [key, copyLevels(data[key], levels - 1)])));
  }
  // Not isList: a value that cannot be inspected throws here, and is then refused as unreadable.
  if (!Array.isArray(data) || data.length > LONGEST_DATA) return data;
  return Object.freeze(Array.from({ length: data.length }, (_, index) => copyLevels(data[index], levels - 1)));
}

/** Reads a value that a caller gave; an error that its code throws becomes a ConfigError. */
function reading<Value>(what: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw new ConfigError(`${what}: expected a value that can be read, but reading it threw. Give plain data.`, {
      cause: error,
    });
  }
}

export function checkOneOf<Choice extends string>(value: unknown, choices: readonly Choice[], what: string): Choice {
  if (choices.includes(value as Choice)) return value as Choice;
  const hint = typeof value === 'string' ? closest(value, choices) : null;
  throw unexpected(what, `one of ${choices.join(', ')}`, value, hint === null ? undefined : `Did you mean ${hint}?`);
}

export function checkBoolean(value: unknown, what: string): boolean {
  if (typeof value === 'boolean') return value;
  throw unexpected(what, 'true or false', value);
}

export interface Bounds {
  readonly min?: number;
  readonly max?: number;
  /** What to do instead; it ends the message. */
  readonly hint?: string;
}

export function checkInteger(value: unknown, what: string, bounds: Bounds = {}): number {
  if (Number.isSafeInteger(value) && isWithin(value as number, bounds)) return (value as number) + 0; // -0 is 0
  throw unexpected(what, `a whole number${range(bounds)}`, value, bounds.hint);
}

export function checkNumber(value: unknown, what: string, bounds: Bounds = {}): number {
  if (Number.isFinite(value) && isWithin(value as number, bounds)) return (value as number) + 0;
  throw unexpected(what, `a number${range(bounds)}`, value, bounds.hint);
}

function isWithin(value: number, { min = -Infinity, max = Infinity }: Bounds): boolean {
  return value >= min && value <= max;
}

function range({ min, max }: Bounds): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}`;
  if (min !== undefined) return ` of at least ${min}`;
  return max === undefined ? '' : ` of at most ${max}`;
}

const LONGEST_NAME = 200;

export function checkName(value: unknown, what: string, longest: number = LONGEST_NAME): string {
  const fits = typeof value === 'string' && value.trim() !== '' && value.length <= longest;
  // PostgreSQL cannot store NUL, and a control character in a name misleads its reader.
  if (fits && value.isWellFormed() && !/\p{Cc}/u.test(value)) return value;
  const expected = `a text of 1 to ${longest} characters, none of them control characters`;
  throw unexpected(what, expected, value, typeof value === 'string' ? whatIsOdd(value) : undefined);
}

/** What a message does not show of a text that it quotes. */
function whatIsOdd(text: string): string | undefined {
  if (text !== '' && text.trim() === '') return 'It is blank.';
  return text.isWellFormed() ? undefined : 'It has half of a surrogate pair in it.';
}
