import { isBoxedPrimitive, isDate, isError } from './brand.ts';
import { byteLength } from './bytes.ts';
import { describe, isPlainObject, shorten } from './config.ts';
import { isOwnError, PayloadError } from './errors.ts';
import { DEEPEST_JSON } from './json-shape.ts';
import { toStoredError } from './untrusted/stored-error.ts';

const LONGEST_PATH = 400;

export interface SizeLimit {
  readonly maxBytes: number;
  /** What to do about a value that is larger. */
  readonly advice: string;
}

/** The JSON text of a value, or a PayloadError that names the part of it that JSON cannot carry. */
export function encodeJson(value: unknown, limit: SizeLimit, what: string): string {
  const text = write(value, limit, what);
  const bytes = byteLength(text);
  if (bytes > limit.maxBytes) throw tooLarge(what, limit, String(bytes));
  return text;
}

function write(value: unknown, limit: SizeLimit, what: string): string {
  const check = new Check(limit, what);
  try {
    check.visit(value);
    // Undefined, at the top or from a toJSON there, is stored as null.
    return JSON.stringify(value) ?? 'null';
  } catch (error) {
    if (isOwnError(error) && error instanceof PayloadError) throw error;
    // Getters, toJSON and proxies are the caller's code.
    const { name, message } = toStoredError(error);
    throw new PayloadError(`${check.where()}: reading it threw ${name}: ${message}`, { cause: error });
  }
}

/**
 * JSON.stringify silently drops functions and turns NaN into null and a Map into {}. A job whose input differs from what
 * was enqueued is worse than an error at once. (Properties that are undefined are left out, as everywhere.)
 */
class Check {
  readonly #limit: SizeLimit;
  readonly #what: string;
  /** From the top to the value that is being read; it is kept when that throws, for the message. */
  readonly #path: (string | number)[] = [];
  readonly #above: object[] = [];
  /** Every value takes a byte at least, so this ends the walk through a small tree whose branches are shared. */
  #values = 0;

  constructor(limit: SizeLimit, what: string) {
    this.#limit = limit;
    this.#what = what;
  }

  /** Returns what JSON writes for a value: the result of its toJSON, if it has one. */
  visit(given: unknown): unknown {
    const value = isObject(given) ? this.#afterToJson(given) : given;
    if (value === undefined) return value;
    if (++this.#values > this.#limit.maxBytes) throw tooLarge(this.#what, this.#limit, 'more');
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return value;
      case 'number':
        if (Number.isFinite(value)) return value;
        throw this.#unsupported(value, 'Send null, or a string.');
      case 'bigint':
        throw this.#unsupported(value, 'Send it as a string.');
      case 'object':
        if (value !== null) this.#visitObject(value);
        return value;
      default:
        throw this.#unsupported(value, 'Only data can be stored.');
    }
  }

  /** The path of the value that is being read. A path of 500 levels is a page of text, so only its ends are shown. */
  where(): string {
    const steps = this.#path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${shorten(step)}`));
    const path = `${this.#what}${steps.join('')}`;
    if (path.length <= LONGEST_PATH) return path;
    return `${path.slice(0, LONGEST_PATH / 2)} ... ${path.slice(-LONGEST_PATH / 2)}`.toWellFormed();
  }

  #visitObject(value: object): void {
    if (this.#above.includes(value))
      throw new PayloadError(`${this.where()}: expected a tree, got a cycle. JSON cannot carry cycles.`);
    if (this.#above.length >= DEEPEST_JSON)
      throw new PayloadError(`${this.where()}: expected at most ${DEEPEST_JSON} levels, got more.`);
    this.#above.push(value);
    this.#visitMembers(value);
    this.#above.pop();
  }

  #visitMembers(value: object): void {
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) {
        this.#path.push(index);
        if (this.visit(value[index]) === undefined)
          throw this.#unsupported(undefined, 'JSON would turn it into null; send null.');
        this.#path.pop();
      }
      return;
    }
    if (isBoxedPrimitive(value)) {
      this.visit(value.valueOf());
      return;
    }
    const keys = Object.keys(value);
    if (isEmptiedByJson(value, keys)) throw this.#unsupported(value, 'Send a plain object or an array.');
    for (const key of keys) {
      this.#path.push(key);
      this.visit((value as Record<string, unknown>)[key]);
      this.#path.pop();
    }
  }

  #afterToJson(value: object): unknown {
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON !== 'function') return value;
    if (isDate(value) && Number.isNaN(value.getTime())) {
      throw this.#unsupported(value, 'JSON would turn it into null; send null.');
    }
    return toJSON.call(value);
  }

  #unsupported(value: unknown, hint: string): PayloadError {
    return new PayloadError(`${this.where()}: expected what JSON can carry, got ${describe(value)}. ${hint}`);
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** A Map, a Promise, a class with private fields: JSON sees nothing in it. Of an error or bytes it sees the wrong part. */
function isEmptiedByJson(value: object, keys: readonly string[]): boolean {
  if (isPlainObject(value)) return false;
  return keys.length === 0 || isError(value) || ArrayBuffer.isView(value);
}

function tooLarge(what: string, { maxBytes, advice }: SizeLimit, got: string): PayloadError {
  return new PayloadError(`${what}: expected at most ${maxBytes} bytes of JSON, got ${got}. ${advice}`);
}
