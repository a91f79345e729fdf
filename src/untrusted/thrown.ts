/*
 * Reads thrown values. Anything can be thrown: null, proxies, objects whose getters throw, chains of causes that form a
 * circle. No function here throws, and every walk is bounded.
 */

const DEEPEST_CHAIN = 10;
const DEEPEST_CLASS = 8;

/** A property of any value; undefined when there is none or it cannot be read. */
export function read(value: unknown, key: PropertyKey): unknown {
  if (!isObject(value)) return undefined;
  try {
    return Reflect.get(value, key);
  } catch {
    return undefined;
  }
}

export function readString(value: unknown, key: PropertyKey): string | null {
  const text = read(value, key);
  return typeof text === 'string' && text !== '' ? text : null;
}

/** The first `limit` members of a list; empty when it is no list or cannot be read. */
export function readList(value: unknown, limit: number): unknown[] {
  try {
    return Array.isArray(value) ? Array.from({ length: Math.min(limit, value.length) }, (_, i) => read(value, i)) : [];
  } catch {
    return [];
  }
}

/** What was thrown, its cause, the cause of that, and so on. */
export function causeChain(thrown: unknown): unknown[] {
  const chain = [thrown];
  while (chain.length < DEEPEST_CHAIN) {
    const cause = read(chain.at(-1), 'cause');
    if (cause === undefined || cause === null || chain.includes(cause)) break;
    chain.push(cause);
  }
  return chain;
}

/** The error's own `name` and the names of its classes, the most specific first. */
export function namesOf(error: unknown): string[] {
  const names: string[] = [];
  const add = (name: string | null): void => {
    if (name !== null) names.push(name);
  };
  add(readString(error, 'name'));
  let prototype = prototypeOf(error);
  for (let depth = 0; prototype !== null && depth < DEEPEST_CLASS; depth++) {
    add(readString(read(prototype, 'constructor'), 'name'));
    prototype = prototypeOf(prototype);
  }
  return names;
}

export function codeOf(error: unknown): string | null {
  const code = read(error, 'code');
  if (typeof code === 'number' && Number.isFinite(code)) return String(code);
  return typeof code === 'string' && code !== '' ? code : null;
}

/** The HTTP status an error carries, in the places the common clients put it. */
export function statusOf(error: unknown): number | null {
  const response = read(error, 'response');
  const places = [
    read(error, 'status'),
    read(error, 'statusCode'),
    read(response, 'status'),
    read(response, 'statusCode'),
    read(read(error, '$metadata'), 'httpStatusCode'),
  ];
  const status = places.find((value) => Number.isInteger(value) && (value as number) >= 100 && (value as number) < 600);
  return (status as number | undefined) ?? null;
}

function isObject(value: unknown): value is object {
  return value !== null && (typeof value === 'object' || typeof value === 'function');
}

function prototypeOf(value: unknown): object | null {
  if (!isObject(value)) return null;
  try {
    return Object.getPrototypeOf(value);
  } catch {
    return null;
  }
}
