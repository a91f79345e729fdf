import { describe } from './config.ts';
import { PayloadError } from './errors.ts';

/** Deeper than any sane payload, and shallow enough for every JSON parser. */
const DEEPEST = 500;

/** The JSON text of a value, or a PayloadError that says what in it cannot travel. */
export function encodeJson(value: unknown, maxBytes: number, what: string): string {
  refuseWhatJsonLoses(value, what, []);
  const text = JSON.stringify(value === undefined ? null : value);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) {
    throw new PayloadError(
      `${what}: expected at most ${maxBytes} bytes of JSON, came ${bytes}. Store the data elsewhere and enqueue a reference to it, or raise maxPayloadBytes.`,
    );
  }
  return text;
}

/**
 * JSON.stringify drops functions, turns NaN into null and a Map into {}: quietly. A job that comes back different
 * from how it was sent is worse than an error now. (Properties that are undefined are left out, as everywhere.)
 */
function refuseWhatJsonLoses(value: unknown, path: string, above: readonly object[]): void {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return;
    case 'undefined':
      return;
    case 'number':
      if (Number.isFinite(value)) return;
      throw lost(path, value, 'Send null, or a string.');
    case 'bigint':
      throw lost(path, value, 'Send it as a string.');
    case 'object':
      if (value !== null) refuseObject(value, path, above);
      return;
    default:
      throw lost(path, value, 'Only data can be stored.');
  }
}

function refuseObject(value: object, path: string, above: readonly object[]): void {
  if (above.includes(value))
    throw new PayloadError(`${path}: expected a tree, came a cycle. JSON cannot carry cycles.`);
  if (above.length >= DEEPEST) throw new PayloadError(`${path}: expected at most ${DEEPEST} levels, came more.`);
  const below = [...above, value];
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') {
    refuseWhatJsonLoses(toJson(value, path), path, below);
    return;
  }
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      if (item === undefined) throw lost(`${path}[${index}]`, item, 'JSON would turn it into null; send null.');
      refuseWhatJsonLoses(item, `${path}[${index}]`, below);
    }
    return;
  }
  if (isEmptiedByJson(value)) throw lost(path, value, 'Send a plain object or an array.');
  for (const key of Object.keys(value)) {
    refuseWhatJsonLoses((value as Record<string, unknown>)[key], `${path}.${key}`, below);
  }
}

function toJson(value: object, path: string): unknown {
  try {
    return (value as { toJSON(): unknown }).toJSON();
  } catch (error) {
    throw new PayloadError(`${path}: its toJSON threw: ${describe(error)}`, { cause: error });
  }
}

function isEmptiedByJson(value: object): boolean {
  return (
    value instanceof Map ||
    value instanceof Set ||
    value instanceof WeakMap ||
    value instanceof WeakSet ||
    value instanceof Promise ||
    value instanceof RegExp ||
    value instanceof Error ||
    ArrayBuffer.isView(value) ||
    value instanceof ArrayBuffer
  );
}

function lost(path: string, value: unknown, hint: string): PayloadError {
  return new PayloadError(`${path}: expected what JSON can carry, came ${describe(value)}. ${hint}`);
}
