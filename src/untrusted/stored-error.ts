import { byteLength } from '../bytes.ts';
import { describe } from '../config.ts';
import { fingerprintOf } from './fingerprint.ts';
import { scrub } from './scrub.ts';
import { causeChain, codeOf, namesOf, read, readList, readString, statusOf } from './thrown.ts';

/*
 * Every finished run keeps one of these, and every job its last: the caps bound what a failing job costs
 * the store, whatever its handler throws.
 */
const NAME_BYTES = 128;
const CODE_BYTES = 64;
const MESSAGE_BYTES = 4 * 1_024;
const HEADER_BYTES = 1_024;
const STACK_BYTES = 8 * 1_024;
const MOST_MEMBERS = 5;
const MEMBER_BYTES = 256;
const MOST_ISSUES = 20;
const ISSUE_BYTES = 512;

/** Text beyond this is not read. */
const LONGEST_READ = 32 * 1_024;
/** The end of that text may be half a secret, which no pattern recognises: so much of it is dropped. */
const CUT_SECRET = 8 * 1_024;

/** What is kept of an error: an allow-list, trimmed, never the whole object. */
export interface StoredError {
  readonly name: string;
  readonly message: string;
  readonly code: string | null;
  readonly status: number | null;
  readonly stack: string | null;
  /** Equal for failures of one kind: what groups them. Errors that older versions stored have none. */
  readonly fingerprint?: string;
  /** What a schema said about the input, when that is why it failed. */
  readonly issues?: readonly { readonly message: string; readonly path: string }[];
}

/** The parts of an error that are stored, as they were read: neither cleaned nor trimmed. */
export type ReadError = Omit<StoredError, 'issues' | 'fingerprint'>;

/** May answer with what was made of an equal error before. */
export interface ErrorCache {
  get(read: ReadError, clean: (read: ReadError) => StoredError): StoredError;
}

/** An allow-list of what was thrown, trimmed and without credentials. Never throws. */
export function toStoredError(thrown: unknown, recent?: ErrorCache): StoredError {
  const issues = issuesOf(thrown);
  const error = readError(thrown);
  if (issues.length > 0) return { ...clean(error), issues };
  return recent === undefined ? clean(error) : recent.get(error, clean);
}

function readError(thrown: unknown): ReadError {
  const chain = causeChain(thrown);
  return {
    name: nameOf(thrown),
    message: messageOf(thrown),
    // `fetch failed` says nothing; the code that says why is in its cause.
    code: firstOf(chain, codeOf),
    status: firstOf(chain, statusOf),
    stack: stackOf(chain),
  };
}

function clean({ name, message, code, status, stack }: ReadError): StoredError {
  return withFingerprint({
    name: tidy(name, NAME_BYTES),
    message: tidy(message, MESSAGE_BYTES),
    code: code === null ? null : tidy(code.replaceAll('\0', ''), CODE_BYTES),
    status,
    stack: stack === null ? null : tidy(stack, STACK_BYTES),
  });
}

/** Of what is stored, so that it can be computed again. */
export function withFingerprint(error: ReadError): StoredError & { readonly fingerprint: string } {
  return { ...error, fingerprint: fingerprintOf(error) };
}

/** The name of the class when it did not set its own `name`: it says more than `Error`. */
function nameOf(thrown: unknown): string {
  const names = namesOf(thrown);
  const specific = names.find((name) => name !== 'Error' && name !== 'Object');
  return specific ?? (names.includes('Error') ? 'Error' : 'NonError');
}

function messageOf(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown;
  return (
    readString(thrown, 'message') ?? (readString(thrown, 'stack') === null ? `${describe(thrown)} was thrown` : '')
  );
}

function firstOf<T>(chain: readonly unknown[], find: (error: unknown) => T | null): T | null {
  for (const error of chain) {
    const found = find(error);
    if (found !== null) return found;
  }
  return null;
}

function stackOf(chain: readonly unknown[]): string | null {
  let text: string | null = null;
  for (const error of chain) {
    const stack = readString(error, 'stack');
    if (stack === null) continue;
    const own = [shortHeader(stack), ...membersOf(error)].join('\n');
    text = text === null ? own : `${text}\ncaused by: ${own}`;
  }
  return text;
}

/** Of an AggregateError, what its first members say. Without their frames, which would push the causes out. */
function membersOf(error: unknown): string[] {
  return readList(read(error, 'errors'), MOST_MEMBERS).map(
    (member) =>
      `  one of its errors: ${tidy(`${nameOf(member)}: ${messageOf(member)}`.replace(/\s+/g, ' '), MEMBER_BYTES)}`,
  );
}

/** A stack begins with the message: a message of a page must not leave no room for the frames. */
function shortHeader(stack: string): string {
  if (stack.length <= HEADER_BYTES) return stack;
  const frames = stack.search(/\n\s{1,16}at /);
  return frames <= HEADER_BYTES ? stack : tidy(stack.slice(0, frames), HEADER_BYTES) + stack.slice(frames);
}

function issuesOf(thrown: unknown): { message: string; path: string }[] {
  return readList(read(thrown, 'issues'), MOST_ISSUES).flatMap((issue) => {
    const message = readString(issue, 'message');
    return message === null ? [] : [{ message: tidy(message, ISSUE_BYTES), path: tidy(pathOf(issue), ISSUE_BYTES) }];
  });
}

/** A path comes as text, as a list of keys, or as a list of objects with a `key`. */
function pathOf(issue: unknown): string {
  const path = read(issue, 'path');
  if (typeof path === 'string') return path;
  const keys = readList(path, MOST_ISSUES).map((part) => read(part, 'key') ?? part);
  return keys.filter((key) => typeof key === 'string' || typeof key === 'number').join('.');
}

/** Text as it is stored. Scrubs before it trims: no pattern would recognise a secret that was cut in half. */
export function tidy(text: string, maxBytes: number): string {
  if (text.length <= LONGEST_READ) return trimmed(storable(scrub(text)), maxBytes);
  return trimmed(storable(scrub(text.slice(0, LONGEST_READ)).slice(0, -CUT_SECRET)), maxBytes);
}

/** PostgreSQL stores neither NUL nor half a surrogate pair. */
function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}

const ELLIPSIS = '...';

function trimmed(text: string, maxBytes: number): string {
  if (byteLength(text) <= maxBytes) return text;
  const bytes = new TextEncoder().encode(text.slice(0, maxBytes)).subarray(0, maxBytes - ELLIPSIS.length);
  // As a stream, so that the decoder leaves a character cut in half out.
  return new TextDecoder().decode(bytes, { stream: true }) + ELLIPSIS;
}
