import { isUint8Array } from '../brand.ts';
import { causeChain, read, readList } from '../untrusted/thrown.ts';
import { LONGEST_DELAY_MS } from './backoff.ts';

const MOST_HEADERS = 256;

/**
 * How long the other side asked to wait, in ms, as the common HTTP clients carry it; null when it did not.
 *
 * `x-ratelimit-reset` is not read: some servers mean a point in time by it, some a span, in seconds or
 * not, and a wrong guess would hold a job for hours where missing it costs an ordinary backoff.
 */
export function retryAfterOf(error: unknown, now: number): number | null {
  for (const one of causeChain(error)) {
    const waitMs = waitOf(one, now);
    if (waitMs !== null) return Math.min(LONGEST_DELAY_MS, Math.ceil(waitMs));
  }
  return null;
}

function waitOf(error: unknown, now: number): number | null {
  const sources = [
    read(error, 'headers'), // undici, OpenAI, Stripe, a thrown Response
    read(read(error, 'response'), 'headers'), // fetch, ky, axios, got, octokit, superagent
    read(read(error, '$response'), 'headers'), // AWS SDK
  ];
  for (const headers of sources) {
    if (headers === undefined) continue;
    const waitMs = parseMs(header(headers, 'retry-after-ms')) ?? parseRetryAfter(header(headers, 'retry-after'), now);
    if (waitMs !== null) return waitMs;
  }
  return parseSeconds(read(error, 'retryAfterSeconds')); // AWS SDK
}

/** A header out of a Headers or anything with `get`, a plain object, a flat list or a list of pairs. */
function header(headers: unknown, name: string): unknown {
  const list = readList(headers, 2 * MOST_HEADERS);
  if (list.length > 0) return fromList(list, name);
  return fromGet(headers, name) ?? fromKeys(headers, name);
}

function fromGet(headers: unknown, name: string): unknown {
  const get = read(headers, 'get');
  if (typeof get !== 'function') return undefined;
  try {
    return Reflect.apply(get, headers, [name]);
  } catch {
    return undefined;
  }
}

function fromKeys(headers: unknown, name: string): unknown {
  const exact = read(headers, name);
  if (exact !== undefined || typeof headers !== 'object' || headers === null) return exact;
  try {
    const key = Object.keys(headers)
      .slice(0, MOST_HEADERS)
      .find((one) => one.toLowerCase() === name);
    return key === undefined ? undefined : read(headers, key);
  } catch {
    return undefined;
  }
}

function fromList(list: readonly unknown[], name: string): unknown {
  const isNamed = (key: unknown): boolean => textOf(key)?.toLowerCase() === name;
  if (readList(list[0], 1).length > 0)
    return read(
      list.find((pair) => isNamed(read(pair, 0))),
      1,
    );
  const index = list.findIndex((key, place) => place % 2 === 0 && isNamed(key));
  return index === -1 ? undefined : list[index + 1];
}

/** undici hands raw headers on as bytes, node repeated ones as a list. */
function textOf(value: unknown): string | null {
  const [first] = readList(value, 1);
  const one = first ?? value;
  if (typeof one === 'number') return String(one);
  if (typeof one === 'string') return one.trim();
  return isUint8Array(one) && one.length < 128 ? String.fromCharCode(...one).trim() : null;
}

function parseMs(value: unknown): number | null {
  const text = textOf(value);
  return text !== null && /^\d+(\.\d+)?$/.test(text) ? Number(text) : null;
}

function parseSeconds(value: unknown): number | null {
  const seconds = parseMs(value);
  return seconds === null ? null : seconds * 1_000;
}

function parseRetryAfter(value: unknown, now: number): number | null {
  return parseSeconds(value) ?? parseHttpDate(textOf(value), now);
}

const httpDate = /^[A-Z][a-z]{2,8}, \d\d[ -][A-Z][a-z]{2}[ -](\d\d|\d{4}) \d\d:\d\d:\d\d GMT$/;
const asctimeDate = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/;

/** The three forms HTTP knows, and no others: `Date.parse` reads a date into almost any text, and asctime as local time. */
function parseHttpDate(text: string | null, now: number): number | null {
  if (text === null) return null;
  const date = httpDate.test(text) ? Date.parse(text) : asctimeDate.test(text) ? Date.parse(`${text} GMT`) : NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}
