import { isDate } from '../brand.ts';
import {
  checkInteger,
  checkList,
  checkName,
  checkOneOf,
  isPlainObject,
  namesOf,
  readOptions,
  unexpected,
} from '../config.ts';
import { type Duration, parseDuration } from '../duration.ts';
import { ConfigError } from '../errors.ts';
import { type JobState, states } from '../job.ts';
import { type DeadReason, deadReasons } from '../retry/decision.ts';
import type { JobSelection } from '../store/selection.ts';

/** A point in time: a Date, or how long ago: `'2h'` or `'2h ago'`. */
export type Moment = Date | Exclude<Duration, number> | `${Exclude<Duration, number>} ago`;

/** What of it is text. */
export const EXPECTED_AGO = "how long ago, such as '2h' or '2h ago'";

/**
 * Which jobs are meant. The same words everywhere: `jobs.list`, `count`, `cancel`, `runNow`, `export`, and `dead.list`,
 * `redrive`, `discard`. Conditions add up.
 */
export interface Selection {
  /** At most 10,000. */
  readonly ids?: readonly string[];
  readonly name?: string;
  /** Where it waits, runs or ended; of a retry, its retry queue. */
  readonly queue?: string;
  readonly state?: JobState | readonly JobState[];
  /** Why it is dead. */
  readonly reason?: DeadReason;
  /** The fingerprint of its last error. */
  readonly error?: string;
  /** Part of the message of its last error, in upper or lower case. No index helps, so a search is bounded. */
  readonly message?: string;
  readonly tag?: string;
  readonly key?: string;
  /** Ended since then; a job that has not ended: enqueued since then. */
  readonly since?: Moment;
  /** Ended, or enqueued, before that. */
  readonly until?: Moment;
  /** Attempts spent: at least so many, or a range, both ends included. */
  readonly attempts?: number | { readonly min?: number; readonly max?: number };
  readonly limit?: number;
}

export const selectionNames: readonly (keyof Selection)[] = namesOf<Selection>({
  ids: true,
  name: true,
  queue: true,
  state: true,
  reason: true,
  error: true,
  message: true,
  tag: true,
  key: true,
  since: true,
  until: true,
  attempts: true,
  limit: true,
});

const MOST_IDS = 10_000;
/** As many as PostgreSQL counts. */
const MOST_ATTEMPTS = 2 ** 31 - 1;

/** Checks a selection; `now` is what durations are counted back from. */
export function readSelection(given: Selection, what: string, now: number): JobSelection {
  const { ids, state, reason, since, until, attempts, limit } = given;
  const read: Record<string, unknown> = {
    ids: ids === undefined ? undefined : readIds(ids, `${what}: ids`),
    state: state === undefined ? undefined : readStates(state, `${what}: state`),
    reason: reason === undefined ? undefined : checkOneOf(reason, deadReasons, `${what}: reason`),
    since: since === undefined ? undefined : readMoment(since, `${what}: since`, now),
    until: until === undefined ? undefined : readMoment(until, `${what}: until`, now),
    attempts: attempts === undefined ? undefined : readAttempts(attempts, `${what}: attempts`),
    limit: limit === undefined ? undefined : checkInteger(limit, `${what}: limit`, { min: 1 }),
  };
  for (const field of ['name', 'queue', 'error', 'message', 'tag', 'key'] as const) {
    const value = given[field];
    read[field] = value === undefined ? undefined : checkName(value, `${what}: ${field}`);
  }
  return Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined));
}

/** For actions: one that selects nothing in particular is a mistake. */
export function checkConditions(given: Selection, what: string): void {
  const conditions = selectionNames.filter((name) => name !== 'limit' && given[name] !== undefined);
  if (conditions.length > 0) return;
  const names = selectionNames.filter((name) => name !== 'limit');
  // Not what was given instead: a server adds options of its own.
  throw new ConfigError(
    `${what}: expected at least one of ${names.slice(0, -1).join(', ')} or ${names.at(-1)}, got none.`,
  );
}

/**
 * One text for each order: the same one, given again, has the same. So times that were given as durations stay durations:
 * two hours before now is another point in time with each call.
 */
export function orderText(selection: JobSelection, { since, until }: Selection, extra: unknown): string {
  const written = {
    ...(typeof since === 'string' && { since: withoutAgo(since) }),
    ...(typeof until === 'string' && { until: withoutAgo(until) }),
  };
  return JSON.stringify([{ ...selection, ...written }, extra ?? null]);
}

function readIds(ids: unknown, what: string): string[] {
  const read = checkList(ids, what, 'a list of job ids', (id, index) => checkName(id, `${what}[${index}]`));
  if (read.length > MOST_IDS) throw unexpected(what, `at most ${MOST_IDS} ids`, read.length, 'Select in parts.');
  return [...new Set(read)];
}

function readStates(value: unknown, what: string): JobState | JobState[] {
  if (typeof value === 'string') return checkOneOf(value, states, what);
  return checkList(value, what, 'a state or a list of states', (state) => checkOneOf(state, states, what));
}

export function readMoment(value: unknown, what: string, now: number): number {
  const ms = isDate(value) ? Date.prototype.getTime.call(value) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  if (typeof value === 'string') return now - parseDuration(withoutAgo(value), what);
  throw unexpected(what, `a Date, or ${EXPECTED_AGO}`, value);
}

function withoutAgo(text: string): string {
  return text.replace(/ ago$/, '');
}

function readAttempts(value: unknown, what: string): { min: number; max: number } {
  if (typeof value === 'number')
    return { min: checkInteger(value, what, { min: 0, max: MOST_ATTEMPTS }), max: MOST_ATTEMPTS };
  if (!isPlainObject(value)) {
    throw unexpected(what, 'a number of attempts at least, or { min, max }', value);
  }
  const { min = 0, max = MOST_ATTEMPTS } = readOptions(value as { min?: number; max?: number }, ['min', 'max'], what);
  const bounds = { min: 0, max: MOST_ATTEMPTS };
  return { min: checkInteger(min, `${what}.min`, bounds), max: checkInteger(max, `${what}.max`, bounds) };
}
