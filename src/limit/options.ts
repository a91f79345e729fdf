import { checkInteger, checkName, checkOneOf, isList, namesOf, readOptions, shorten, unexpected } from '../config.ts';
import { type Duration, parseDuration } from '../duration.ts';
import { ConfigError } from '../errors.ts';
import { storableKey } from '../storable-key.ts';
import { toStoredError } from '../untrusted/stored-error.ts';
import { read } from '../untrusted/thrown.ts';
import {
  type LimitAction,
  type LimitKey,
  type LimitSettings,
  MOST_LIMITS,
  MOST_PER_LIMIT,
  type OnLimit,
  onLimits,
  type Rate,
} from './limit.ts';

/* Limits as definitions give them. */

/** Chooses the key of a job from its input; null for none: the limit then does not concern the job. */
// biome-ignore lint/suspicious/noExplicitAny: a list of definitions mixes inputs; `defineJob` gives the function its own.
export type LimitKeyFunction<Input = any> = (input: Input) => string | number | null;

/** At most `limit` starts of one key in any window of `per`. */
export interface RateOptions {
  readonly limit: number;
  readonly per: Duration;
  /**
   * So many may start at once after a pause; when there is always work, `limit - burst + 1` start per window. Default 1, and one
   * more for each 50 of the limit: enough to catch up on starts that came late, for 2% of the rate.
   */
  readonly burst?: number;
}

export interface LimitValues {
  /** How many jobs of one key may run at once. With 1 they run in order, also through retries. */
  readonly concurrency?: number;
  /** How many jobs of all keys together may run at once. */
  readonly total?: number;
  /** How often jobs of one key may start. */
  readonly rate?: RateOptions;
}

export interface LimitOptions<Input = unknown> extends Omit<LimitValues, 'concurrency'> {
  /** Definitions that name the same limit share it, and must say the same of it. */
  readonly name: string;
  /** Whose limit it is, such as a customer: a function of the input, called once, at enqueue. Without it all jobs share one. */
  readonly key?: LimitKeyFunction<Input>;
  /** A number, or one for each key: `(key) => (paying.has(key) ? 10 : 2)`. It is called at enqueue. */
  readonly concurrency?: number | ((key: string) => number);
  /**
   * What an enqueue does while as many jobs of the key wait and run as `concurrency` lets run. `wait` (default): the job waits.
   * `cancel-newest`: it is not stored, and the answer is one of those. `cancel-oldest`: it is stored, and the oldest that has
   * never started is cancelled. Definitions that share a limit may choose differently.
   */
  readonly onLimit?: OnLimit;
}

/** A checked limit of a definition. */
export interface LimitDefinition {
  readonly name: string;
  readonly key: LimitKeyFunction | null;
  readonly settings: LimitSettings;
  /** Null where the concurrency is the same for all keys. */
  readonly concurrencyOf: ((key: string) => number) | null;
  readonly onLimit: OnLimit;
}

const limitNames = namesOf<LimitOptions>({
  name: true,
  key: true,
  concurrency: true,
  total: true,
  rate: true,
  onLimit: true,
});
const valueNames = namesOf<LimitValues>({ concurrency: true, total: true, rate: true });
const rateNames = namesOf<RateOptions>({ limit: true, per: true, burst: true });
const LONGEST_NAME = 100;
const STARTS_PER_BURST = 50;

export function checkLimitName(value: unknown, what: string): string {
  return checkName(value, what, LONGEST_NAME);
}

export function checkLimits(value: unknown, what: string): readonly LimitDefinition[] {
  const given = isList(value) ? value : [value];
  const limits = given.map((one, index) => checkLimit(one, isList(value) ? `${what}[${index}]` : what));
  const names = new Set(limits.map(({ name }) => name));
  if (names.size < limits.length) throw new ConfigError(`${what}: expected each limit once, got two of one name.`);
  if (limits.length > MOST_LIMITS) throw unexpected(what, `at most ${MOST_LIMITS} limits`, limits.length);
  return limits.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function checkLimit(value: unknown, what: string): LimitDefinition {
  const given = readOptions(value as LimitOptions, limitNames, what);
  const name = checkLimitName(given.name, `${what}: name`);
  const { key = null, concurrency } = given;
  if (key !== null && typeof key !== 'function') throw unexpected(`${what}: key`, 'a function of the input', key);
  const isTiered = typeof concurrency === 'function';
  if (isTiered && key === null) {
    throw new ConfigError(`${what}: expected a key with a concurrency for each key, got none. Add key: (input) => ….`);
  }
  const onLimit = checkOneOf(given.onLimit ?? 'wait', onLimits, `${what}: onLimit`);
  const { concurrency: _, name: __, key: ___, onLimit: ____, ...values } = given;
  const settings = checkLimitValues(
    isTiered ? values : { ...values, ...(concurrency !== undefined && { concurrency }) },
    what,
  );
  if (onLimit !== 'wait' && !isTiered && settings.concurrency === null) {
    throw new ConfigError(
      `${what}: expected a concurrency with onLimit '${onLimit}', got none. A key is full when so many of its jobs are live.`,
    );
  }
  if (!isTiered && settings.concurrency === null && settings.total === null && settings.rate === null) {
    throw new ConfigError(`${what}: expected concurrency, total or rate, got none of them.`);
  }
  return { name, key, settings, concurrencyOf: isTiered ? concurrency : null, onLimit };
}

/** Those that are left out are null. */
function checkLimitValues(value: unknown, what: string): LimitSettings {
  const { concurrency, total, rate } = readOptions(value as LimitValues, valueNames, what);
  if (typeof rate === 'function') {
    const hint = 'give each tier a limit of its own, whose key returns null for the others.';
    throw unexpected(`${what}: rate`, '{ limit, per }', rate, `Only concurrency may be one: ${hint}`);
  }
  return {
    concurrency: concurrency === undefined ? null : checkCount(concurrency, `${what}: concurrency`),
    total: total === undefined ? null : checkCount(total, `${what}: total`),
    rate: rate === undefined ? null : checkRate(rate, `${what}: rate`, null),
  };
}

/** What an operator gives: null for no bound, 0 to let nothing start; what is left out stays as it was. */
export type LimitChange = { readonly [Name in keyof LimitValues]?: LimitValues[Name] | null };

/** `now`: the rate that holds; a burst that someone chose for it stays when only another rate is given. */
export function checkLimitChange(value: unknown, what: string, now: Rate | null): Partial<LimitSettings> {
  const { concurrency, total, rate } = readOptions(value as LimitChange, valueNames, what);
  const change = {
    ...changed('concurrency', concurrency, (given) => checkCount(given, `${what}: concurrency`, 0)),
    ...changed('total', total, (given) => checkCount(given, `${what}: total`, 0)),
    ...changed('rate', rate, (given) => checkRate(given, `${what}: rate`, now)),
  };
  if (Object.keys(change).length > 0) return change;
  throw new ConfigError(`${what}: expected concurrency, total or rate, got none of them. Give null to remove a bound.`);
}

function changed<Name extends string, Value>(
  name: Name,
  given: unknown,
  check: (given: unknown) => Value,
): { readonly [Key in Name]?: Value | null } {
  if (given === undefined) return {};
  return { [name]: given === null ? null : check(given) } as { [Key in Name]: Value | null };
}

function checkCount(value: unknown, what: string, min = 1): number {
  return checkInteger(value, what, { min, max: MOST_PER_LIMIT });
}

function checkRate(value: unknown, what: string, now: Rate | null): Rate {
  const { limit, per, burst } = readOptions(value as RateOptions, rateNames, what);
  const checked = checkCount(limit, `${what}: limit`);
  const perMs = parseDuration(per, `${what}: per`);
  if (perMs <= 0) throw unexpected(`${what}: per`, 'a duration above 0', per);
  return {
    limit: checked,
    perMs,
    burst:
      burst === undefined ? burstAfter(now, checked) : checkInteger(burst, `${what}: burst`, { min: 1, max: checked }),
  };
}

/** What a program sends that is not this one, of a limit or of a key: 0 lets nothing start. */
export function checkStoredCount(value: unknown, what: string): number {
  return checkCount(value, what, 0);
}

export function checkStoredRate({ limit, perMs, burst }: Rate, what: string): Rate {
  return checkRate({ limit, per: perMs, burst }, what, null);
}

/** See `RateOptions.burst`. */
export function defaultBurst(limit: number): number {
  return 1 + Math.floor(limit / STARTS_PER_BURST);
}

function burstAfter(now: Rate | null, limit: number): number {
  const isChosen = now !== null && now.burst !== defaultBurst(now.limit);
  return isChosen ? Math.min(now.burst, limit) : defaultBurst(limit);
}

/** The concurrency of one key. */
export type KeyConcurrency = LimitKey & { readonly concurrency: number };

/** What `limitsOf` makes of the limits of a definition. */
export interface JobLimits {
  readonly limits: readonly LimitKey[];
  /** Of keys whose concurrency is computed. */
  readonly concurrencies: readonly KeyConcurrency[];
  /** Of limits that do not let the job wait when its key is full. */
  readonly onLimit: readonly LimitAction[];
}

/** The limits of one job. Throws a ConfigError that names the job. */
export function limitsOf(limits: readonly LimitDefinition[], parsed: () => unknown, jobName: string): JobLimits {
  const found: LimitKey[] = [];
  const concurrencies: KeyConcurrency[] = [];
  const actions: LimitAction[] = [];
  for (const { name, key: choose, concurrencyOf, onLimit } of limits) {
    const what = `${jobName}: limit ${name}`;
    const key =
      choose === null
        ? ''
        : chosen(
            call(() => choose(parsed()), `${what}: key`),
            `${what}: key`,
          );
    if (key === null) continue;
    found.push({ limit: name, key });
    if (onLimit !== 'wait') actions.push({ limit: name, key, action: onLimit });
    if (concurrencyOf === null) continue;
    const count = call(() => concurrencyOf(key), `${what}: concurrency`);
    concurrencies.push({ limit: name, key, concurrency: checkCount(count, `${what}: concurrency`) });
  }
  return { limits: found, concurrencies, onLimit: actions };
}

function call(choose: () => unknown, what: string): unknown {
  try {
    return choose();
  } catch (error) {
    const { name, message } = toStoredError(error);
    throw new ConfigError(
      `${what}: expected its function to return, got an error that it threw: ${name}: ${shorten(message)}`,
      {
        cause: error,
      },
    );
  }
}

/** A key as it is stored; null for what is none. */
export function readLimitKey(value: unknown): string | null {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  return typeof value === 'string' ? storableKey(value) : null;
}

function chosen(answer: unknown, what: string): string | null {
  if (answer === null) return null;
  const key = readLimitKey(answer);
  if (key !== null) return key;
  new Promise((resolve) => resolve(answer)).catch(() => {});
  throw unexpected(what, 'its function to return a text, a number or null', answer, keyAdvice(answer));
}

function keyAdvice(answer: unknown): string {
  if (typeof read(answer, 'then') === 'function') return 'Return it at once, not as a promise.';
  return answer === undefined || typeof answer === 'number'
    ? 'Is a field of the input misspelt? Return null when the limit does not concern the job.'
    : 'Make a text of it.';
}
