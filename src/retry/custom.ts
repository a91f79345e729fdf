import { describe } from '../config.ts';
import { type Duration, formatDuration, parseDuration } from '../duration.ts';
import { toStoredError } from '../untrusted/stored-error.ts';
import { read } from '../untrusted/thrown.ts';
import { LONGEST_DELAY_MS } from './backoff.ts';
import type { Failure } from './outcome.ts';

/*
 * Functions of a definition. They run only in the worker. When one throws or returns nonsense, the policy decides instead
 * and the ledger gets a note.
 */

/** What a definition's functions get to know about the run that failed. */
export interface FailedRun {
  /** The job's name. */
  readonly name: string;
  readonly run: number;
  /** Attempts spent, this run included. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** The delay before this run; null before the first. */
  readonly previousDelayMs: number | null;
}

export interface BackoffArgs extends FailedRun {
  /** What the handler threw. */
  readonly error: unknown;
}

/** A definition's own backoff; with undefined or null, the policy chooses. */
export type BackoffFunction = (args: BackoffArgs) => Duration | null | undefined;

export interface CustomDelay {
  readonly delayMs: number | null;
  readonly note: string | null;
}

export function customDelay(backoff: BackoffFunction, args: BackoffArgs): CustomDelay {
  const { answer, note } = callUser('backoff()', () => backoff(args));
  return note === null ? readDelay(answer, 'backoff()') : { delayMs: null, note };
}

/** A delay that user code chose; undefined and null choose none, and so does nonsense, with a note. */
export function readDelay(answer: unknown, what: string): CustomDelay {
  if (answer === undefined || answer === null) return { delayMs: null, note: null };
  try {
    const delayMs = parseDuration(answer, what);
    if (delayMs <= LONGEST_DELAY_MS) return { delayMs, note: null };
    return { delayMs: LONGEST_DELAY_MS, note: `${what} was cut to ${formatDuration(LONGEST_DELAY_MS)}` };
  } catch {
    return { delayMs: null, note: `${what} returned ${describe(answer)}, which is no duration` };
  }
}

/** The failure, with the delay that the definition's own backoff chose. */
export function withCustomDelay(failure: Failure, backoff: BackoffFunction, args: BackoffArgs): Failure {
  const { delayMs, note } = customDelay(backoff, args);
  return { ...failure, customDelayMs: delayMs, note: joinNotes(failure.note, note) };
}

export function joinNotes(...notes: readonly (string | null)[]): string | null {
  return notes.filter((note) => note !== null).join('; ') || null;
}

/** Calls a user's function. An error or a promise becomes a note. */
export function callUser(what: string, call: () => unknown): { answer: unknown; note: string | null } {
  let answer: unknown;
  try {
    answer = call();
  } catch (error) {
    const { name, message } = toStoredError(error);
    return { answer: undefined, note: `${what} threw ${name}: ${message.slice(0, 200)}`.toWellFormed() };
  }
  if (typeof read(answer, 'then') !== 'function') return { answer, note: null };
  ignoreRejection(answer);
  return { answer: undefined, note: `${what} returned a promise; it must answer at once` };
}

/** An unhandled rejection would end the process. An executor, because a hostile promise throws at `Promise.resolve`. */
function ignoreRejection(promise: unknown): void {
  new Promise((resolve) => resolve(promise)).catch(() => {});
}
