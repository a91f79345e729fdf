import { isDate } from '../brand.ts';
import { describe, unexpected } from '../config.ts';
import { type Duration, formatDuration, parseDuration } from '../duration.ts';
import { read } from '../untrusted/thrown.ts';
import { LONGEST_DELAY_MS } from './backoff.ts';

/**
 * What a handler asks for by throwing a control error. It travels as plain data under a registered symbol, because
 * `instanceof` fails between two copies of this package and between realms.
 */
export type Control =
  | { readonly kind: 'unrecoverable' }
  | { readonly kind: 'retry-after'; readonly wait: Wait }
  | { readonly kind: 'snooze'; readonly wait: Wait }
  | { readonly kind: 'cancel' };

/** A span, or a point in time that becomes one when `now` is known. */
export type Wait = { readonly delayMs: number } | { readonly at: number };

const brand = Symbol.for('mulligan.control-error');

function mark(error: Error, control: Control): void {
  Object.defineProperty(error, brand, { value: Object.freeze(control) });
}

/**
 * The caller's message, whatever it is. This never throws: an error here would replace the control error that the handler
 * means to throw, and turn "never again" into an ordinary failure.
 */
function textOf(message: unknown): string {
  try {
    return String(message);
  } catch {
    return describe(message);
  }
}

/** Give up on this job at once: trying again cannot help. */
export class Unrecoverable extends Error {
  constructor(message = 'The job cannot succeed.', options?: ErrorOptions) {
    super(textOf(message), options);
    this.name = 'Unrecoverable';
    mark(this, { kind: 'unrecoverable' });
  }
}

/** This attempt failed; try again, but not sooner than this. */
export class RetryAfter extends Error {
  constructor(delay: Duration | Date, message = 'Asked to try again later.', options?: ErrorOptions) {
    super(textOf(message), options);
    this.name = 'RetryAfter';
    mark(this, { kind: 'retry-after', wait: readWait(delay, 'RetryAfter') });
  }
}

/** Nothing failed: run this job again later, without spending an attempt. */
export class Snooze extends Error {
  constructor(delay: Duration | Date, message = 'Snoozed.', options?: ErrorOptions) {
    super(textOf(message), options);
    this.name = 'Snooze';
    mark(this, { kind: 'snooze', wait: readWait(delay, 'Snooze') });
  }
}

/** The job is no longer wanted: end it as cancelled. */
export class Cancel extends Error {
  constructor(message = 'Cancelled by its handler.', options?: ErrorOptions) {
    super(textOf(message), options);
    this.name = 'Cancel';
    mark(this, { kind: 'cancel' });
  }
}

function readWait(delay: unknown, what: string): Wait {
  // Not instanceof: a test runner's realm has a Date of its own.
  if (isDate(delay)) {
    // Not `delay.getTime()`: the caller may have replaced it.
    const at = Date.prototype.getTime.call(delay);
    if (!Number.isNaN(at)) return { at };
    throw unexpected(what, 'a valid Date or a duration', 'Invalid Date');
  }
  const delayMs = parseDuration(delay, what);
  if (delayMs <= LONGEST_DELAY_MS) return { delayMs };
  const hint = 'Give a Date for a later time.';
  throw unexpected(what, `a duration of at most ${formatDuration(LONGEST_DELAY_MS)}`, delay, hint);
}

/** Null when this is no control error, or one that makes no sense: the brand may be forged, or from a newer version. */
export function controlErrorOf(error: unknown): Control | null {
  const control = read(error, brand);
  const kind = read(control, 'kind');
  if (kind === 'unrecoverable' || kind === 'cancel') return { kind };
  if (kind !== 'retry-after' && kind !== 'snooze') return null;
  const wait = sensibleWait(read(control, 'wait'));
  return wait === null ? null : { kind, wait };
}

const LAST_DATE_MS = 8.64e15;

function sensibleWait(wait: unknown): Wait | null {
  const delayMs = read(wait, 'delayMs');
  if (isWholeWithin(delayMs, 0, LONGEST_DELAY_MS)) return { delayMs };
  const at = read(wait, 'at');
  return isWholeWithin(at, -LAST_DATE_MS, LAST_DATE_MS) ? { at } : null;
}

function isWholeWithin(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

/** How long a wait is from `now` on; a point in the past is no wait. */
export function waitFrom(wait: Wait, now: number): number {
  return 'delayMs' in wait ? wait.delayMs : Math.max(0, Math.ceil(wait.at - now));
}
