import { DEEPEST_JSON, isTooDeep } from './json-shape.ts';
import { encodeJson } from './payload.ts';
import { toStoredError } from './untrusted/stored-error.ts';

/*
 * What a handler returned, as one text: JSON, or after MISSING the reason why there is none. No JSON text begins with
 * MISSING. A result that cannot be stored does not fail the job, because its effects have happened.
 */
const MISSING = '!';
const LONGEST_REASON = 1_000;

export const DEFAULT_MAX_RESULT_BYTES: number = 256 * 1024;

export interface EncodedResult {
  readonly text: string;
  /** Why there is no result. */
  readonly problem: string | null;
}

/** Null for undefined, which costs nothing. */
export function encodeResult(value: unknown, maxBytes: number): EncodedResult | null {
  if (value === undefined) return null;
  try {
    const advice = 'Store the data elsewhere and return a reference to it, or raise maxResultBytes.';
    return { text: encodeJson(value, { maxBytes, advice }, 'result'), problem: null };
  } catch (error) {
    const problem = toStoredError(error)
      .message.slice(0, LONGEST_REASON)
      .replace(/[\s\p{Cc}]+/gu, ' ')
      .toWellFormed();
    return { text: MISSING + problem, problem };
  }
}

/** Whether a text is what `encodeResult` writes, JSON aside. */
export function isMissingResult(text: string): boolean {
  return text.startsWith(MISSING);
}

/** Of a stored result, or null for none. */
export function decodeResult(text: string | null): { readonly result: unknown; readonly resultError: string | null } {
  if (text === null) return { result: null, resultError: null };
  if (isMissingResult(text)) return { result: null, resultError: text.slice(MISSING.length) };
  if (isTooDeep(text)) return { result: null, resultError: `it has more than ${DEEPEST_JSON} levels` };
  return { result: JSON.parse(text), resultError: null };
}

declare const outputType: unique symbol;

/** A type without a value, made by `typeOf`. */
export interface OutputType<Output> {
  readonly [outputType]?: Output;
}

/**
 * With some type arguments given, the compiler infers none of the others: `output` would be ignored, and the result would be
 * `unknown`. So that does not compile.
 */
export type OutputCheck<Output> = unknown extends Output
  ? { readonly output?: 'with type arguments, give all three: defineJob<Input, Input, Output>' }
  : unknown;

/**
 * Names the type of a result in a definition without `run`.
 * @example defineJob({ name: 'thumbnail', input: schema, output: typeOf<{ url: string }>() })
 */
export function typeOf<Output>(): OutputType<Output> {
  return Object.freeze({});
}
