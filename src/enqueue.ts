import { types } from 'node:util';
import { Batch, type BatchBounds } from './batch.ts';
import type { Clock } from './clock.ts';
import { checkList, checkOneOf, isPlainObject, namesOf, readOptions, unexpected } from './config.ts';
import {
  type AnyJobDefinition,
  checkName,
  checkPriority,
  checkRetry,
  isDefinition,
  type OutputType,
} from './definition.ts';
import { type Duration, formatDuration, parseDuration } from './duration.ts';
import { ConfigError, StoreBusyError, StoreUnavailableError } from './errors.ts';
import { DEFAULT_PRIORITY, DEFAULT_QUEUE, type KeyLife, keyLives } from './job.ts';
import { KeyedBatch } from './keyed-batch.ts';
import type { Events } from './observe/events.ts';
import { partsOf } from './parts.ts';
import { encodeJson } from './payload.ts';
import { resourceOf } from './resource.ts';
import { LONGEST_DELAY_MS } from './retry/backoff.ts';
import type { RetryOptions } from './retry/policy.ts';
import { resolvePolicy } from './retry/resolve.ts';
import { doubling, withRetries } from './retrying.ts';
import { checkInput } from './schema.ts';
import type { Debounce, Enqueued, NewJob, Store, TransactionClient } from './store/store.ts';
import { checkTags, tagsOf } from './tags.ts';
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
  readonly keyUntil?: KeyLife;
  /**
   * The last input wins: with a `key`, this puts the job off by so long, and a further enqueue of the same name and key within
   * that time replaces it and puts it off again, at most until `maxWait` after the first. A job that has started is not touched.
   */
  readonly debounce?: Duration | { readonly wait: Duration; readonly maxWait?: Duration };
  /** Texts that the job is found by, beside those of its definition: `['endpoint:42']`. */
  readonly tags?: readonly string[];
  /** Overrides the definition's policy, field by field. */
  readonly retry?: RetryOptions;
  /**
   * A client inside a transaction of your own (PostgreSQL): the job is committed or rolled back with it. No worker sees
   * it before the commit. The `enqueued` event is emitted before that, so also for a job that is then rolled back.
   */
  readonly tx?: TransactionClient;
}

/** One of many jobs: its input, and options of its own. A transaction is given for all of them. */
export interface JobToEnqueue<Input = unknown> extends Omit<EnqueueOptions, 'tx'> {
  readonly input: Input;
}

/** The id of the job, and what the hard cap took away. `mulligan.result` takes it, and knows the type of the result by it. */
export interface EnqueueResult<Output = unknown> extends Enqueued, OutputType<Output> {
  /** Set when `hardCap` gave the job fewer attempts than it asked for. */
  readonly capped?: { readonly asked: number; readonly hardCap: number };
}

const optionNames = namesOf<EnqueueOptions>({
  delay: true,
  at: true,
  priority: true,
  queue: true,
  key: true,
  keyUntil: true,
  debounce: true,
  tags: true,
  retry: true,
  tx: true,
});
/** What one call to the store carries at most, unless a single job is larger. */
const batchBounds: BatchBounds<NewJob> = {
  limit: 1_000,
  maxBytes: 8 * 1_048_576,
  // Characters, which are known; a few of them take more bytes, and the bound is far below what a call can carry.
  bytesOf: ({ payload }) => payload.length,
};
/** In a caller's transaction, all jobs of a call are one statement. */
const transactionBounds: BatchBounds<NewJob> = { ...batchBounds, limit: 65_000, maxBytes: 64 * 1_048_576 };
const eachOptionNames: readonly (keyof JobToEnqueue)[] = [
  'input',
  ...optionNames.filter((name): name is Exclude<keyof EnqueueOptions, 'tx'> => name !== 'tx'),
];
/** Stands for the definition of jobs that are enqueued by name alone. */
const NO_DEFINITION = {};
const TOO_LARGE = 'Store the data elsewhere and enqueue a reference to it, or raise maxPayloadBytes.';
const pausesBeforeResend = doubling(50, 200);
const MOST_SENDS = 3;
const RESEND_WITHIN_MS = 60_000;
/**
 * The shortest time for which finished jobs are kept. A job whose answer was lost is sent again under its id, and only its
 * row shows that it has been accepted, perhaps even run, before. A resend starts at most `RESEND_WITHIN_MS` after the first
 * send, or `KEY_PATIENCE_MS` later when it waits for a key; the rest is for the call itself.
 */
export const LEAST_RETENTION_MS: number = 5 * 60_000;

export interface EnqueueSettings {
  readonly store: Pick<Store, 'enqueue' | 'transactions'>;
  readonly clock: Clock;
  readonly events: Events;
  readonly queueRetry: ReadonlyMap<string, RetryOptions>;
  readonly queueResource: ReadonlyMap<string, string>;
  readonly hardCap: number | undefined;
  readonly maxPayloadBytes: number;
}

/** A definition, or the name of a job whose definition this process does not have (the CLI, another service). */
export type Target = AnyJobDefinition | { readonly name: string };

/** validate -> encode -> group commit -> wake (by the store) */
export class Enqueuer {
  readonly #settings: EnqueueSettings;
  readonly #keyless: Batch<NewJob, Enqueued>;
  readonly #keyed: KeyedBatch;
  /** By definition and queue, so that a policy is resolved once and not for each job. */
  readonly #policies: WeakMap<object, Map<string, ReturnType<typeof resolvePolicy>>> = new WeakMap();

  constructor(settings: EnqueueSettings) {
    this.#settings = settings;
    this.#keyless = new Batch((jobs) => this.#send(jobs, isAwayOrBusy), batchBounds);
    // A busy store may mean that one of the keys is contested: the batch finds out which.
    this.#keyed = new KeyedBatch((jobs) => this.#send(jobs, isAway), batchBounds, settings.clock);
  }

  async enqueue(target: Target, input: unknown, options: EnqueueOptions = {}): Promise<EnqueueResult> {
    const checked = checkOptions(options);
    const prepared = this.#prepare(target, input, checked, null);
    const { job, capped } = prepared instanceof Promise ? await prepared : prepared;
    const [answer] = await this.#store([job], checked.tx);
    return this.#answer(job, answer as Enqueued, capped);
  }

  /** The job as `enqueue` would store it, for a schedule to store it later. */
  async prepare(target: Target, input: unknown, options: EnqueueOptions): Promise<Prepared> {
    return this.#prepare(target, input, checkOptions(options), null);
  }

  /** Stores a job that was prepared. */
  async enqueuePrepared(job: NewJob): Promise<EnqueueResult> {
    const [answer] = await this.#store([job], null);
    return this.#answer(job, answer as Enqueued, null);
  }

  /** Checks all jobs before it sends the first; then sends them in batches. `options` hold for those that say nothing else. */
  async enqueueMany(
    target: Target,
    jobs: readonly JobToEnqueue[],
    options: EnqueueOptions = {},
  ): Promise<EnqueueResult[]> {
    const given = readOptions(options, optionNames, 'enqueueMany');
    const checked = checkOptions(given, 'enqueueMany');
    const common = asChecked(given, checked);
    const list = checkList(jobs, 'enqueueMany', 'a list of { input, ...options }', (job) => job);
    const prepared: Prepared[] = [];
    for (const [index, one] of list.entries()) {
      const ready = this.#prepareOne(target, one, { common, checked }, `enqueueMany: jobs[${index}]`);
      prepared.push(ready instanceof Promise ? await ready : ready);
    }
    const answers = await this.#store(
      prepared.map(({ job }) => job),
      checked.tx,
    );
    return prepared.map(({ job, capped }, index) => this.#answer(job, answers[index] as Enqueued, capped));
  }

  #prepareOne(
    target: Target,
    one: unknown,
    { common, checked }: { readonly common: EnqueueOptions; readonly checked: CheckedOptions },
    what: string,
  ): Prepared | Promise<Prepared> {
    if (!hasInput(one)) {
      const hint = 'Put each input under `input`: inputs.map((input) => ({ input })).';
      throw unexpected(what, 'an object { input, ...options }', one, hint);
    }
    const { input, ...own } = readOptions(one, eachOptionNames, what);
    if (Object.keys(own).length === 0) return this.#prepare(target, input, checked, what);
    const { tx: _, ...rest } = common;
    return this.#prepare(target, input, checkOptions({ ...withoutRivals(rest, own), ...own }, what), what);
  }

  #store(jobs: readonly NewJob[], tx: TransactionClient | null): Promise<readonly Enqueued[]> {
    if (tx === null) return inParts(jobs, batchBounds, (part) => this.#add(part));
    const { transactions } = this.#settings.store;
    if (transactions !== undefined) return inParts(jobs, transactionBounds, (part) => transactions.enqueue(tx, part));
    throw new ConfigError('enqueue: tx needs a store that shares its database with you: open a postgres:// one.');
  }

  /** Jobs of several keys are given to the batches at once, so that they still are few writes; those of one key keep their order. */
  async #add(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    const [first] = jobs;
    if (first === undefined) return [];
    if (jobs.every(({ key }) => key === first.key)) return this.#addAlike(jobs);
    return (await Promise.all(runsOfOneKey(jobs).map((run) => this.#addAlike(run)))).flat();
  }

  /** All of them have the same key, or none. */
  #addAlike(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    return jobs[0]?.key === null ? this.#keyless.add(jobs) : this.#keyed.add(jobs);
  }

  /**
   * A call that failed may have been carried out all the same. Under their own ids the jobs can be sent again without
   * being doubled, so a short outage does not reach the caller.
   */
  #send(jobs: readonly NewJob[], isTransient: (error: unknown) => boolean): Promise<Enqueued[]> {
    const { store, clock } = this.#settings;
    return withRetries(
      clock,
      { policy: pausesBeforeResend, isTransient, maxAttempts: MOST_SENDS, giveUpAfterMs: RESEND_WITHIN_MS },
      () => store.enqueue(jobs),
    );
  }

  /**
   * Returns a promise only when a schema has to be asked. `at` says which of many jobs it is, for messages; null for one alone.
   */
  #prepare(target: Target, input: unknown, options: CheckedOptions, at: string | null): Prepared | Promise<Prepared> {
    const { maxPayloadBytes } = this.#settings;
    const definition = isDefinition(target) ? target : undefined;
    const what = at === null ? `${target.name}: input` : `${at}.input`;
    const payload = encodeJson(input, { maxBytes: maxPayloadBytes, advice: TOO_LARGE }, what);
    if (definition?.input === undefined) {
      return this.#newJob(target, definition, payload, options, () => JSON.parse(payload));
    }
    // The schema sees what the worker will see: the value after its trip through JSON.
    const checked = checkInput(
      definition.input,
      JSON.parse(payload),
      at === null ? target.name : `${at}: ${target.name}`,
    );
    return checked.then((parsed) => this.#newJob(target, definition, payload, options, () => parsed));
  }

  #newJob(
    target: Target,
    definition: AnyJobDefinition | undefined,
    payload: string,
    options: CheckedOptions,
    parsed: () => unknown,
  ): Prepared {
    const { clock } = this.#settings;
    const queue = options.queue ?? definition?.queue ?? DEFAULT_QUEUE;
    const { policy, capped } = this.#policy(definition, queue, options.retry);
    const job: NewJob = {
      id: clock.newId(),
      name: target.name,
      queue,
      retryQueue: definition?.retryQueue ?? null,
      resource: this.#resource(definition?.resource ?? null, queue, target.name, parsed),
      priority: options.priority ?? definition?.priority ?? DEFAULT_PRIORITY,
      payload,
      policy,
      delayMs: options.delayMs,
      dueAt: options.dueAt,
      key: options.key,
      keyLife: options.keyLife,
      version: definition?.version ?? undefined,
      tags: tagsOf(definition?.tags ?? null, options.tags, parsed, target.name),
      ...(options.debounce && { debounce: options.debounce }),
    };
    return { job, capped };
  }

  /** What the definition says wins over the queue's, also when that is none. */
  #resource(own: AnyJobDefinition['resource'], queue: string, jobName: string, parsed: () => unknown): string | null {
    if (typeof own === 'function') return resourceOf(own, parsed(), jobName);
    return own === false ? null : (own ?? this.#settings.queueResource.get(queue) ?? null);
  }

  #policy(
    definition: AnyJobDefinition | undefined,
    queue: string,
    own: RetryOptions | undefined,
  ): ReturnType<typeof resolvePolicy> {
    const { queueRetry, hardCap } = this.#settings;
    const resolve = (): ReturnType<typeof resolvePolicy> =>
      resolvePolicy({ job: own, definition: definition?.retry, queue: queueRetry.get(queue), hardCap });
    if (own !== undefined) return resolve();
    const owner = definition ?? NO_DEFINITION;
    const byQueue = this.#policies.get(owner) ?? new Map();
    this.#policies.set(owner, byQueue);
    // All queues without defaults of their own share one policy.
    const key = queueRetry.has(queue) ? queue : '';
    const known = byQueue.get(key) ?? resolve();
    byQueue.set(key, known);
    return known;
  }

  #answer(job: NewJob, { id, existed }: Enqueued, capped: Prepared['capped']): EnqueueResult {
    this.#settings.events.emit('enqueued', () => ({ id, name: job.name, queue: job.queue, existed }));
    return capped === null ? { id, existed } : { id, existed, capped };
  }
}

type StorePart = (part: readonly NewJob[]) => Promise<readonly Enqueued[]>;

/** A single job, the usual case, is a part of its own. */
function inParts(jobs: readonly NewJob[], bounds: BatchBounds<NewJob>, store: StorePart): Promise<readonly Enqueued[]> {
  return jobs.length === 1 ? store(jobs) : inOrder(partsOf(jobs, bounds), store);
}

function hasInput(one: unknown): one is JobToEnqueue {
  if (!isPlainObject(one)) return false;
  try {
    return 'input' in one;
  } catch {
    // Reading the options says what is wrong.
    return true;
  }
}

function runsOfOneKey(jobs: readonly NewJob[]): NewJob[][] {
  const runs: NewJob[][] = [];
  for (const job of jobs) {
    const last = runs.at(-1);
    if (last?.[0]?.key === job.key) last.push(job);
    else runs.push([job]);
  }
  return runs;
}

/** Options that are objects of the caller, as they were when they were checked. */
function asChecked(given: EnqueueOptions, { retry, debounce, delayMs }: CheckedOptions): EnqueueOptions {
  const maxWait = debounce?.maxWaitMs ?? null;
  return {
    ...given,
    ...(retry && { retry }),
    ...(debounce && { debounce: { wait: delayMs, ...(maxWait !== null && { maxWait }) } }),
  };
}

/** A job's own `at` replaces a common `delay`, and the like. */
function withoutRivals(common: EnqueueOptions, own: EnqueueOptions): EnqueueOptions {
  if (!dueOptions.some((name) => own[name] !== undefined)) return common;
  return Object.fromEntries(
    Object.entries(common).filter(([name]) => !(dueOptions as readonly string[]).includes(name)),
  );
}

/** One part after the other, so that the jobs are accepted in their order. */
async function inOrder(parts: readonly (readonly NewJob[])[], store: StorePart): Promise<readonly Enqueued[]> {
  const answers: Enqueued[] = [];
  for (const part of parts) answers.push(...(await store(part)));
  return answers;
}

function isAway(error: unknown): boolean {
  return error instanceof StoreUnavailableError;
}

function isAwayOrBusy(error: unknown): boolean {
  return isAway(error) || error instanceof StoreBusyError;
}

export interface Prepared {
  readonly job: NewJob;
  readonly capped: { readonly asked: number; readonly hardCap: number } | null;
}

/** Of these, a job has one at most. */
const dueOptions = ['delay', 'at', 'debounce'] as const;

interface CheckedOptions {
  readonly delayMs: number;
  readonly dueAt: number | null;
  readonly priority: number | undefined;
  readonly queue: string | undefined;
  readonly key: string | null;
  readonly keyLife: KeyLife;
  readonly debounce: Debounce | undefined;
  readonly tags: readonly string[] | null;
  readonly retry: RetryOptions | undefined;
  readonly tx: TransactionClient | null;
}

function checkOptions(options: EnqueueOptions, what = 'enqueue'): CheckedOptions {
  const given = readOptions(options, optionNames, what);
  const { delay, at, priority, queue, key, keyUntil, debounce, tags, retry, tx } = given;
  if (delay !== undefined && at !== undefined) {
    throw new ConfigError(`${what}: expected delay or at, got both. Give one of them.`);
  }
  const read: CheckedOptions = {
    delayMs: delay === undefined ? 0 : readDelay(delay, `${what}: delay`),
    dueAt: at === undefined ? null : readDate(at, what),
    priority: priority === undefined ? undefined : checkPriority(priority, `${what}: priority`),
    queue: queue === undefined ? undefined : checkName(queue, `${what}: queue`),
    key: key === undefined ? null : checkName(key, `${what}: key`),
    keyLife: keyUntil === undefined ? 'finished' : checkOneOf(keyUntil, keyLives, `${what}: keyUntil`),
    debounce: undefined,
    tags: tags === undefined ? null : checkTags(tags, `${what}: tags`),
    retry: retry === undefined ? undefined : checkRetry(retry, `${what}: retry`),
    tx: tx === undefined ? null : checkClient(tx, what),
  };
  return debounce === undefined ? read : { ...read, ...readDebounce(given, what) };
}

/** A debounced job holds its key until it starts: from then on, another enqueue is another job. */
function readDebounce(
  { debounce, delay, at, key, keyUntil }: EnqueueOptions,
  what: string,
): Pick<CheckedOptions, 'delayMs' | 'keyLife' | 'debounce'> {
  if (key === undefined) {
    throw new ConfigError(
      `${what}: expected a key with debounce, got none. Jobs of one name and key replace each other.`,
    );
  }
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

function checkClient(tx: unknown, what: string): TransactionClient {
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
function readDelay(delay: unknown, what: string): number {
  const ms = parseDuration(delay, what);
  if (ms <= LONGEST_DELAY_MS) return ms;
  const longest = `a duration of at most ${formatDuration(LONGEST_DELAY_MS)}`;
  throw unexpected(what, longest, delay, 'Give a Date as `at` for a later time.');
}

function readDate(at: unknown, what: string): number {
  // Not instanceof: a test runner's realm has a Date of its own. Not `at.getTime()`: the caller may have replaced it.
  const ms = types.isDate(at) ? Date.prototype.getTime.call(at) : Number.NaN;
  if (Number.isNaN(ms)) throw unexpected(`${what}: at`, 'a valid Date', at);
  // A due time before the epoch means "now" as well as any other in the past, and no store needs to hold it.
  return Math.max(0, ms);
}
