import { Cron } from 'croner';
import { isDate } from '../brand.ts';
import { describe, unexpected } from '../config.ts';
import { type Duration, formatDuration, parseDuration } from '../duration.ts';
import { ConfigError } from '../errors.ts';
import { LONGEST_DELAY_MS } from '../retry/backoff.ts';

/** When a schedule ticks, as plain data: it is stored, printed, and read by any process. Times are ms since the epoch. */
export type Timing =
  | { readonly kind: 'cron'; readonly cron: string; readonly timezone: string }
  /** At `anchor` and every `everyMs` before and after it. */
  | { readonly kind: 'every'; readonly everyMs: number; readonly anchor: number }
  | { readonly kind: 'at'; readonly at: number };

export interface TimingOptions {
  /**
   * A cron pattern of 5 fields, or of 6 with seconds first.
   * @example '0 3 * * *' at 3:00 each day; '*\/10 * * * * *' every ten seconds
   */
  readonly cron?: string;
  /** The time zone of `cron`, by its IANA name. Default `UTC`. */
  readonly timezone?: string;
  /** A fixed distance between ticks, of at least 1 s. */
  readonly every?: Duration;
  /** A time at which `every` ticks. Default: the epoch, so that `every: '5m'` ticks at :00, :05, :10 and so on. */
  readonly anchor?: Date;
  /** Ticks once, at this time. */
  readonly at?: Date;
}

const SHORTEST_INTERVAL_MS = 1_000;
/** Times of schedules: the years 1 to 9999. A clock may be set wrong, and before 1970; but ids of ticks hold no later times. */
export const EARLIEST: number = Date.parse('0001-01-01T00:00:00Z');
export const LATEST: number = Date.parse('9999-12-31T23:59:59.999Z');
const DEFAULT_TIMEZONE = 'UTC';

/** Whether an `at` has passed is not checked here: that depends on the store's clock. */
export function readTiming(options: TimingOptions, what: string): Timing {
  const { cron, timezone, every, anchor, at } = options;
  const given = Object.entries({ cron, every, at }).flatMap(([key, value]) => (value === undefined ? [] : [key]));
  if (given.length !== 1) {
    const got = given.length === 0 ? 'none' : given.join(' and ');
    throw new ConfigError(`${what}: expected one of cron, every or at, got ${got}. Give exactly one of them.`);
  }
  refuseWithout('timezone', timezone, 'cron', cron, what);
  refuseWithout('anchor', anchor, 'every', every, what);
  if (cron !== undefined) return readCron(cron, timezone ?? DEFAULT_TIMEZONE, what);
  if (every !== undefined) return readInterval(every, anchor, what);
  return { kind: 'at', at: readDate(at, `${what}: at`) };
}

/** What a program sends that is not this one. */
export function checkTiming(timing: Timing, what: string): Timing {
  switch (timing.kind) {
    case 'cron':
      return readTiming({ cron: timing.cron, timezone: timing.timezone }, what);
    case 'every':
      return readTiming({ every: timing.everyMs, anchor: new Date(timing.anchor) }, what);
    case 'at':
      return readTiming({ at: new Date(timing.at) }, what);
  }
}

function refuseWithout(option: string, value: unknown, other: string, otherValue: unknown, what: string): void {
  if (value === undefined || otherValue !== undefined) return;
  throw new ConfigError(`${what}: expected ${option} only together with ${other}, got it without. Leave it out.`);
}

function readCron(cron: unknown, timezone: unknown, what: string): Timing {
  const expected = "a cron pattern of 5 or 6 fields, such as '0 3 * * *'";
  if (typeof cron !== 'string') throw unexpected(`${what}: cron`, expected, cron);
  try {
    new Cron(cron, { paused: true });
  } catch (error) {
    throw unexpected(`${what}: cron`, expected, cron, whatIsWrong(cron, error));
  }
  // The parser would take a seventh field for the year.
  if (fieldsOf(cron).length > fieldNames.length) throw unexpected(`${what}: cron`, expected, cron, countOf(cron));
  if (!isTimezone(timezone)) {
    throw unexpected(`${what}: timezone`, "the IANA name of a time zone, such as 'Europe/Berlin'", timezone);
  }
  return { kind: 'cron', cron: cron.trim(), timezone };
}

const fieldNames = ['second', 'minute', 'hour', 'day of the month', 'month', 'day of the week'];

/** Names the field, which not every message of the parser does: each field is tried with `*` for all others. */
function whatIsWrong(cron: string, error: unknown): string {
  const reason = (error instanceof Error ? error.message : String(error)).replace(/^Cron\w+: /, '').replace(/\.$/, '');
  const fields = fieldsOf(cron);
  if (fields.length !== 5 && fields.length !== 6) return countOf(cron);
  const wrong = fields.findIndex(
    (field, at) => !parses(fields.map((_, other) => (other === at ? field : '*')).join(' ')),
  );
  const name = fieldNames[wrong + fieldNames.length - fields.length];
  return wrong === -1 ? `${reason}.` : `The ${name} is wrong (${describe(fields[wrong])}): ${reason}.`;
}

function fieldsOf(cron: string): string[] {
  return cron.trim().split(/\s+/);
}

function countOf(cron: string): string {
  return `It has ${fieldsOf(cron).length} fields.`;
}

function parses(cron: string): boolean {
  try {
    new Cron(cron, { paused: true });
    return true;
  } catch {
    return false;
  }
}

function isTimezone(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: value });
    return true;
  } catch {
    return false;
  }
}

function readInterval(every: unknown, anchor: unknown, what: string): Timing {
  const everyMs = parseDuration(every, `${what}: every`);
  if (everyMs < SHORTEST_INTERVAL_MS || everyMs > LONGEST_DELAY_MS) {
    const range = `${formatDuration(SHORTEST_INTERVAL_MS)} to ${formatDuration(LONGEST_DELAY_MS)}`;
    throw unexpected(`${what}: every`, `a duration of ${range}`, every);
  }
  return { kind: 'every', everyMs, anchor: anchor === undefined ? 0 : readDate(anchor, `${what}: anchor`) };
}

function readDate(value: unknown, what: string): number {
  // Not instanceof: a test runner's realm has a Date of its own.
  const ms = isDate(value) ? Date.prototype.getTime.call(value) : Number.NaN;
  if (Number.isNaN(ms)) throw unexpected(what, 'a valid Date', value);
  if (ms < EARLIEST || ms > LATEST) throw unexpected(what, 'a Date of the years 1 to 9999', value);
  return ms;
}
