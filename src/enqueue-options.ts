import { isDate } from './brand.ts';
import { checkName, checkOneOf, isPlainObject, namesOf, readOptions, unexpected, withoutUndefined } from './config.ts';
import { type Duration, formatDuration, parseDuration } from './duration.ts';
import { ConfigError } from './errors.ts';
import { checkPriority, type KeyLife, type KeyUntil, keyUntils } from './job.ts';
import { checkReaction, type ReactionTo } from './reaction.ts';
import type { OutputType } from './result.ts';
import { LONGEST_DELAY_MS } from './retry/backoff.ts';
import { checkRetry } from './retry/options.ts';
import type { RetryOptions } from './retry/policy.ts';
import type { Debounce, Enqueued, TransactionClient } from './store/store.ts';
import { checkTags } from './tags.ts';
import { read } from './untrusted/thrown.ts';

export interface EnqueueOptions {
  /** Run no sooner than this from now; or `at`. */
  readonly delay?: Duration;
  /** Run no sooner than this point in time; one that has passed means now. */
  readonly at?: Date;
  /** 0 (first) to 9 (last). */
  readonly priority?: number;
  /** Another queue than the definition's. */
  readonly queue?: string;
  /** At most one live job per name and key; a second enqueue returns the id of the first. */
  readonly key?: string;
  /** Until when the job holds its key: `started`, `finished` (default) or `pruned`. */
  readonly keyUntil?: KeyUntil;
  /**
   * The last input wins: with a `key`, this puts the job off by so long, and a further enqueue of the same name and key within
   * that time replaces it and puts it off again, at most until `maxWait` after the first. A job that is running is not touched;
   * one that has run and waits to run again is cancelled, and the new job takes its place.
   */
  readonly debounce?: Duration | { readonly wait: Duration; readonly maxWait?: Duration };
  /**
   * At most one job per name and key in this time: with a `key`, further enqueues within so long from when this job was accepted
   * return its id, whatever has become of it; also when it has completed, is dead or was cancelled.
   */
  readonly throttle?: Duration;
  /** Texts that the job is found by, beside those of its definition: `['endpoint:42']`. */
  readonly tags?: readonly string[];
  /** Overrides the definition's policy, field by field. */
  readonly retry?: RetryOptions;
  /**
   * A job that is stored in the write that buries this one, if it dies, instead of the one that the definition says.
   * @example onDead: [refund, { order: 7 }]
   */
  readonly onDead?: ReactionTo;
  /**
   * A client inside a transaction of your own (PostgreSQL): the job is committed or rolled back with it. No worker sees
   * it before the commit. The `enqueued` event is emitted before that, so also for a job that is then rolled back.
   */
  readonly tx?: TransactionClient;
}

/** What follows the job: its input, which may be left out where null is one, and options. */
export type EnqueueArgs<Input> = null extends Input
  ? [input?: Input, options?: EnqueueOptions]
  : [input: Input, options?: EnqueueOptions];

/** One of many jobs: its input, and options of its own. A transaction is given for all of them. */
export interface JobToEnqueue<Input = unknown> extends Omit<EnqueueOptions, 'tx'> {
  readonly input: Input;
}

/** The id of the job, and what the hard cap took away. `mulligan.result` takes it, and knows the type of the result by it. */
export interface EnqueueResult<Output = unknown> extends Enqueued, OutputType<Output> {
  /** Set when `hardCap` gave the job fewer attempts than it asked for. */
  readonly capped?: { readonly asked: number; readonly hardCap: number };
}

export const optionNames: readonly (keyof EnqueueOptions)[] = namesOf<EnqueueOptions>({
  delay: true,
  at: true,
  priority: true,
  queue: true,
  key: true,
  keyUntil: true,
  debounce: true,
  throttle: true,
  tags: true,
  retry: true,
  onDead: true,
  tx: true,
});
export const eachOptionNames: readonly (keyof JobToEnqueue)[] = [
  'input',
  ...optionNames.filter((name): name is Exclude<keyof EnqueueOptions, 'tx'> => name !== 'tx'),
];

/** Of these, a job has one at most. */
const dueOptions = ['delay', 'at', 'debounce'] as const;
/** Of each of these pairs, too: both would say how long the key is held. */
const throttleRivals = [
  ['throttle', 'keyUntil'],
  ['throttle', 'debounce'],
] as const;
const attemptOptions = ['maxAttempts', 'maxRetries'] as const;

export interface CheckedOptions {
  readonly delayMs: number;
  readonly dueAt: number | null;
  readonly priority: number | undefined;
  readonly queue: string | undefined;
  readonly key: string | null;
  readonly keyLife: KeyLife;
  readonly windowMs: number | undefined;
  readonly debounce: Debounce | undefined;
  readonly tags: readonly string[] | null;
  readonly retry: RetryOptions | undefined;
  readonly onDead: ReactionTo | undefined;
  readonly tx: TransactionClient | null;
}

export function checkOptions(options: EnqueueOptions, what = 'enqueue'): CheckedOptions {
  const given = readOptions(options, optionNames, what);
  const checked = checkEach(given, what);
  checkKey(given, what);
  return checked;
}

/** These make sense only for a job that has a key. Options that many jobs share may leave the key to each job. */
export function checkKey({ key, keyUntil, debounce, throttle }: EnqueueOptions, what: string): void {
  if (key !== undefined) return;
  if (throttle !== undefined) {
    throw new ConfigError(
      `${what}: expected a key with throttle, got none. Of jobs of one name and key, one is stored in that time.`,
    );
  }
  if (debounce !== undefined) {
    throw new ConfigError(
      `${what}: expected a key with debounce, got none. Jobs of one name and key replace each other.`,
    );
  }
  if (keyUntil !== undefined) {
    throw new ConfigError(`${what}: expected a key with keyUntil, got none. Give a key, or leave keyUntil out.`);
  }
}

/** All but `checkKey`. */
export function checkEach(given: EnqueueOptions, what: string): CheckedOptions {
  const { delay, at, priority, queue, key, keyUntil, debounce, throttle, tags, retry, onDead, tx } = given;
  if (delay !== undefined && at !== undefined) {
    throw new ConfigError(`${what}: expected delay or at, got both. Give one of them.`);
  }
  const read: CheckedOptions = {
    delayMs: delay === undefined ? 0 : readDelay(delay, `${what}: delay`, 'Give a Date as `at` for a later time.'),
    dueAt: at === undefined ? null : readDate(at, what),
    priority: priority === undefined ? undefined : checkPriority(priority, `${what}: priority`),
    queue: queue === undefined ? undefined : checkName(queue, `${what}: queue`),
    key: key === undefined ? null : checkName(key, `${what}: key`),
    keyLife: keyUntil === undefined ? 'finished' : checkOneOf(keyUntil, keyUntils, `${what}: keyUntil`),
    windowMs: undefined,
    debounce: undefined,
    tags: tags === undefined ? null : checkTags(tags, `${what}: tags`),
    retry: retry === undefined ? undefined : checkRetry(retry, `${what}: retry`),
    onDead: onDead === undefined ? undefined : checkReaction(onDead, `${what}: onDead`),
    tx: tx === undefined ? null : checkClient(tx, what),
  };
  return {
    ...read,
    ...(throttle !== undefined && readThrottle(given, what)),
    ...(debounce !== undefined && readDebounce(given, what)),
  };
}

function readThrottle(
  { throttle, debounce, keyUntil }: EnqueueOptions,
  what: string,
): Pick<CheckedOptions, 'keyLife' | 'windowMs'> {
  if (debounce !== undefined) {
    throw new ConfigError(`${what}: expected throttle or debounce, got both. Give one of them.`);
  }
  if (keyUntil !== undefined) {
    throw new ConfigError(
      `${what}: expected throttle without keyUntil, got both. The time of throttle is how long the key is held.`,
    );
  }
  const windowMs = readDelay(throttle, `${what}: throttle`);
  if (windowMs === 0) throw unexpected(`${what}: throttle`, 'a duration above 0', throttle);
  return { keyLife: 'window', windowMs };
}

/** A debounced job holds its key until it starts: from then on, another enqueue is another job. */
function readDebounce(
  { debounce, delay, at, keyUntil }: EnqueueOptions,
  what: string,
): Pick<CheckedOptions, 'delayMs' | 'keyLife' | 'debounce'> {
  if (delay !== undefined || at !== undefined) {
    throw new ConfigError(
      `${what}: expected debounce without delay or at, got both. The time of debounce is the delay.`,
    );
  }
  if (keyUntil !== undefined && keyUntil !== 'started') {
    throw new ConfigError(`${what}: expected keyUntil 'started' with debounce, got '${keyUntil}'. Leave keyUntil out.`);
  }
  const field = `${what}: debounce`;
  const { wait, maxWait } = isPlainObject(debounce)
    ? readOptions(debounce as { wait: Duration; maxWait?: Duration }, ['wait', 'maxWait'], field)
    : { wait: debounce, maxWait: undefined };
  const delayMs = readDelay(wait, isPlainObject(debounce) ? `${field}: wait` : field);
  if (delayMs === 0) throw unexpected(field, 'a duration above 0', wait);
  const maxWaitMs = maxWait === undefined ? null : readDelay(maxWait, `${field}: maxWait`);
  if (maxWaitMs !== null && maxWaitMs < delayMs) {
    throw unexpected(`${field}: maxWait`, 'at least as long a time as wait', maxWait);
  }
  return { delayMs, keyLife: 'started', debounce: { maxWaitMs } };
}

export function checkClient(tx: unknown, what: string): TransactionClient {
  // Each query of a pool may use another connection, so it is never part of the caller's transaction.
  if (typeof read(tx, 'totalCount') === 'number') {
    const hint = 'Give the client that has begun the transaction: await pool.connect().';
    throw unexpected(`${what}: tx`, 'a client inside a transaction', tx, `That is a pool. ${hint}`);
  }
  if (typeof read(tx, 'query') === 'function') return tx as TransactionClient;
  const hint = 'mulligan/postgres has adapters for Drizzle, Kysely, Knex and Prisma.';
  throw unexpected(`${what}: tx`, 'a client with query(text, values)', tx, hint);
}

/** Bounded, so that every store can hold the due time. */
function readDelay(delay: unknown, what: string, hint?: string): number {
  const ms = parseDuration(delay, what);
  if (ms <= LONGEST_DELAY_MS) return ms;
  const longest = `a duration of at most ${formatDuration(LONGEST_DELAY_MS)}`;
  throw unexpected(what, longest, delay, hint);
}

function readDate(at: unknown, what: string): number {
  // Not instanceof: a test runner's realm has a Date of its own. Not `at.getTime()`: the caller may have replaced it.
  const ms = isDate(at) ? Date.prototype.getTime.call(at) : Number.NaN;
  if (Number.isNaN(ms)) throw unexpected(`${what}: at`, 'a valid Date', at);
  // A due time before the epoch means "now" as well as any other in the past, and no store needs to hold it.
  return Math.max(0, ms);
}

/** Options that are objects of the caller, as they were when they were checked. */
export function asChecked(given: EnqueueOptions, { retry, tags, debounce, delayMs }: CheckedOptions): EnqueueOptions {
  const maxWait = debounce?.maxWaitMs ?? null;
  return {
    ...withoutUndefined(given),
    ...(retry && { retry }),
    ...(tags && { tags }),
    ...(debounce && { debounce: { wait: delayMs, ...(maxWait !== null && { maxWait }) } }),
  };
}

/** The options of one of many jobs: its own win, field by field in `retry`, and its tags are added. */
export function merged(common: EnqueueOptions, given: EnqueueOptions, what: string): EnqueueOptions {
  const own = withoutUndefined(given);
  const { tx: _, ...rest } = common;
  const kept = [dueOptions, ...throttleRivals].reduce<EnqueueOptions>(
    (left, rivals) => withoutRivals(left, own, rivals),
    rest,
  );
  return {
    ...kept,
    ...own,
    ...(own.retry !== undefined && { retry: mergedRetry(common.retry, checkRetry(own.retry, `${what}: retry`)) }),
    ...(own.tags !== undefined && {
      tags: [...(common.tags ?? []), ...(checkTags(own.tags, `${what}: tags`) ?? [])],
    }),
  };
}

function mergedRetry(common: RetryOptions = {}, given: RetryOptions): RetryOptions {
  const own = withoutUndefined(given);
  return { ...withoutRivals(common, own, attemptOptions), ...own };
}

/** A job's own `at` replaces a common `delay`, and the like. */
function withoutRivals<Options extends object>(
  common: Options,
  own: Options,
  rivals: readonly (keyof Options)[],
): Options {
  if (!rivals.some((name) => own[name] !== undefined)) return common;
  return Object.fromEntries(
    Object.entries(common).filter(([name]) => !rivals.includes(name as keyof Options)),
  ) as Options;
}

export function hasInput(one: unknown): one is JobToEnqueue {
  if (!isPlainObject(one)) return false;
  try {
    return 'input' in one;
  } catch {
    // Reading the options says what is wrong.
    return true;
  }
}
