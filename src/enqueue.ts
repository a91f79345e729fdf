import { Batch, type BatchBounds } from './batch.ts';
import type { Clock } from './clock.ts';
import { checkList, readOptions, unexpected } from './config.ts';
import { type AnyJobDefinition, isDefinition } from './definition.ts';
import {
  asChecked,
  type CheckedOptions,
  checkEach,
  checkKey,
  checkOptions,
  type EnqueueOptions,
  type EnqueueResult,
  eachOptionNames,
  hasInput,
  type JobToEnqueue,
  merged,
  optionNames,
} from './enqueue-options.ts';
import { ConfigError, StoreBusyError, StoreUnavailableError } from './errors.ts';
import { DEFAULT_PRIORITY, DEFAULT_QUEUE } from './job.ts';
import { contentionOf, KeyedBatch } from './keyed-batch.ts';
import { type KeyConcurrency, type LimitDefinition, limitsOf } from './limit/options.ts';
import type { LimitWriter } from './limit-writer.ts';
import type { Events } from './observe/events.ts';
import { sendTraced, type Tracing } from './observe/tracing.ts';
import { partsOf } from './parts.ts';
import { encodeJson } from './payload.ts';
import { reactionInput } from './reaction.ts';
import { resourceOf } from './resource.ts';
import type { RetryOptions } from './retry/policy.ts';
import { resolvePolicy } from './retry/resolve.ts';
import { doubling, withRetries } from './retrying.ts';
import { checkInput } from './schema.ts';
import { ID_OF_DEAD_JOB } from './store/reaction.ts';
import type { Enqueued, NewJob, Store, TransactionClient } from './store/store.ts';
import { tagsOf } from './tags.ts';

/** What one call to the store carries at most, unless a single job is larger. */
const batchBounds: BatchBounds<NewJob> = {
  limit: 1_000,
  maxBytes: 8 * 1_048_576,
  // Characters, which are known; a few of them take more bytes, and the bound is far below what a call can carry.
  bytesOf: ({ payload, onDead }) => payload.length + (onDead?.payload.length ?? 0),
};
/** In a caller's transaction, all jobs of a call are one statement. */
const transactionBounds: BatchBounds<NewJob> = { ...batchBounds, limit: 65_000, maxBytes: 64 * 1_048_576 };
/** Stands for the definition of jobs that are enqueued by name alone. */
const NO_DEFINITION = {};
const NO_OPTIONS = checkOptions({});
const TOO_LARGE = 'Store the data elsewhere and enqueue a reference to it, or raise maxPayloadBytes.';
const pausesBeforeResend = doubling(50, 200);
const MOST_SENDS = 3;
/** A job is sent again only while a row of it must still be there, if there was one: see LEAST_RETENTION_MS. */
const RESEND_WITHIN_MS = 60_000;

export interface EnqueueSettings {
  readonly store: Pick<Store, 'enqueue' | 'transactions'>;
  readonly clock: Clock;
  readonly limits: Pick<LimitWriter, 'lacks' | 'add' | 'writeConcurrencies'>;
  readonly events: Events;
  readonly queueRetry: ReadonlyMap<string, RetryOptions>;
  readonly queueResource: ReadonlyMap<string, string>;
  readonly hardCap: number | undefined;
  readonly maxPayloadBytes: number;
  readonly tracing: Tracing | null;
  /** What a job stands for that was given as a definition or as a name. */
  readonly targetOf: (job: unknown, what: string) => Target;
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
    const ready = prepared instanceof Promise ? await prepared : prepared;
    if (ready.limits !== undefined) await this.#writeLimits(ready);
    const { job, capped } = ready;
    const [answer] = await this.#store([job], checked.tx);
    return this.#answer(job, answer as Enqueued, capped);
  }

  /** The job as `enqueue` would store it, for a schedule to store it later. */
  async prepare(target: Target, input: unknown, options: EnqueueOptions, what: string): Promise<Prepared> {
    const prepared = await this.#prepare(target, input, checkOptions(options, what), what, ID_OF_DEAD_JOB);
    await this.#writeLimits(prepared);
    return prepared;
  }

  /** Stores a job that was prepared, by a write that does more than store it. */
  async enqueueWith(job: NewJob, write: (job: NewJob) => Promise<Enqueued>): Promise<EnqueueResult> {
    const send = async ([sent]: readonly NewJob[]): Promise<Enqueued[]> => [await write(sent as NewJob)];
    const { tracing } = this.#settings;
    const [answer] = tracing === null ? await send([job]) : await sendTraced(tracing, [job], send);
    return this.#answer(job, answer as Enqueued, null);
  }

  /** Checks all jobs before it sends the first; then sends them in batches. `options` hold for those that say nothing else. */
  async enqueueMany(
    target: Target,
    jobs: readonly JobToEnqueue[],
    options: EnqueueOptions = {},
  ): Promise<EnqueueResult[]> {
    const given = readOptions(options, optionNames, 'enqueueMany');
    const checked = checkEach(given, 'enqueueMany');
    const common = asChecked(given, checked);
    const list = checkList(jobs, 'enqueueMany', 'a list of { input, ...options }', (job) => job);
    const prepared: Prepared[] = [];
    for (const [index, one] of list.entries()) {
      const ready = this.#prepareOne(target, one, { common, checked }, `enqueueMany: jobs[${index}]`);
      prepared.push(ready instanceof Promise ? await ready : ready);
    }
    await this.#writeLimits({
      limits: [...new Set(prepared.flatMap(({ limits = [] }) => limits))],
      concurrencies: prepared.flatMap(({ concurrencies = [] }) => concurrencies),
    });
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
    if (Object.keys(own).length > 0) {
      return this.#prepare(target, input, checkOptions(merged(common, own, what), what), what);
    }
    checkKey(common, what);
    return this.#prepare(target, input, checked, what);
  }

  #store(jobs: readonly NewJob[], tx: TransactionClient | null): Promise<readonly Enqueued[]> {
    const { tracing } = this.#settings;
    if (tracing === null) return this.#storeIn(tx, jobs);
    return sendTraced(tracing, jobs, (traced) => this.#storeIn(tx, traced));
  }

  #storeIn(tx: TransactionClient | null, jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    if (tx === null) return inParts(jobs, batchBounds, (part) => this.#add(part));
    const { transactions } = this.#settings.store;
    if (transactions !== undefined) return inParts(jobs, transactionBounds, (part) => transactions.enqueue(tx, part));
    throw new ConfigError('enqueue: tx needs a store that shares its database with you: open a postgres:// one.');
  }

  /** Jobs of several keys are given to the batches at once, so that they still are few writes; those of one key keep their order. */
  async #add(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    const runs = runsAlike(jobs);
    if (runs.length === 1) return this.#addAlike(runs[0] as NewJob[]);
    return (await Promise.all(runs.map((run) => this.#addAlike(run)))).flat();
  }

  /** All of them contend for the same, or for nothing. */
  #addAlike(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    return contentionOf(jobs[0] as NewJob) === null ? this.#keyless.add(jobs) : this.#keyed.add(jobs);
  }

  /**
   * A call that failed may have been carried out all the same. Under their own ids the jobs can be sent again without
   * being doubled, so a short outage does not reach the caller.
   */
  #send(jobs: readonly NewJob[], isTransient: (error: unknown) => boolean): Promise<Enqueued[]> {
    return this.#withResends(isTransient, () => this.#settings.store.enqueue(jobs));
  }

  /**
   * Before the jobs, so that none starts without its bound; and outside of a caller's transaction: what is computed for a key
   * holds for all its jobs, also when these are rolled back.
   */
  async #writeLimits({ limits = [], concurrencies = [] }: Pick<Prepared, 'limits' | 'concurrencies'>): Promise<void> {
    const writer = this.#settings.limits;
    if (writer.lacks(limits)) await this.#withResends(isAwayOrBusy, () => writer.add(limits));
    if (concurrencies.length === 0) return;
    await this.#withResends(isAwayOrBusy, () => writer.writeConcurrencies(concurrencies));
  }

  #withResends<Answer>(isTransient: (error: unknown) => boolean, call: () => Promise<Answer>): Promise<Answer> {
    return withRetries(
      this.#settings.clock,
      { policy: pausesBeforeResend, isTransient, maxAttempts: MOST_SENDS, giveUpAfterMs: RESEND_WITHIN_MS },
      call,
    );
  }

  /**
   * Returns a promise only when a schema has to be asked. `at` says which of many jobs it is, for messages; null for one alone.
   */
  #prepare(
    target: Target,
    input: unknown,
    options: CheckedOptions,
    at: string | null,
    idOfDead?: string,
  ): Prepared | Promise<Prepared> {
    const { maxPayloadBytes } = this.#settings;
    const definition = isDefinition(target) ? target : undefined;
    const what = at === null ? `${target.name}: input` : `${at}.input`;
    const payload = encodeJson(input, { maxBytes: maxPayloadBytes, advice: TOO_LARGE }, what);
    if (definition?.input === undefined) {
      return this.#withReaction(target, payload, options, () => JSON.parse(payload), idOfDead);
    }
    // The schema sees what the worker will see: the value after its trip through JSON.
    const checked = checkInput(
      definition.input,
      JSON.parse(payload),
      at === null ? target.name : `${at}: ${target.name}`,
    );
    return checked.then((parsed) => this.#withReaction(target, payload, options, () => parsed, idOfDead));
  }

  /** `idOfDead` is what its reaction takes for the id of the job; left out, that is known. */
  #withReaction(
    target: Target,
    payload: string,
    options: CheckedOptions,
    parsed: () => unknown,
    idOfDead?: string,
  ): Prepared | Promise<Prepared> {
    const definition = isDefinition(target) ? target : undefined;
    const prepared = this.#newJob(target, definition, payload, options, parsed);
    const onDead = options.onDead ?? definition?.reaction;
    if (onDead === undefined) return prepared;
    const what = `${target.name}: onDead`;
    const id = idOfDead ?? prepared.job.id;
    const input = reactionInput(onDead, parsed, id, what);
    const reaction = this.#prepare(this.#settings.targetOf(onDead[0], what), input, NO_OPTIONS, what, id);
    return reaction instanceof Promise
      ? reaction.then((made) => reacting(prepared, made))
      : reacting(prepared, reaction);
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
      ...(options.windowMs !== undefined && { windowMs: options.windowMs }),
    };
    if (definition === undefined || definition.limits.length === 0) return { job, capped };
    const { limits, concurrencies, onLimit } = limitsOf(definition.limits, parsed, target.name);
    return {
      job: { ...job, limits, ...(onLimit.length > 0 && { onLimit }) },
      capped,
      limits: definition.limits,
      concurrencies,
    };
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

  #answer(job: NewJob, { id, existed, replaced }: Enqueued, capped: Prepared['capped']): EnqueueResult {
    this.#settings.events.emit('enqueued', () => ({ id, name: job.name, queue: job.queue, existed }));
    return { id, existed, ...(replaced && { replaced }), ...(capped && { capped }) };
  }
}

/** A job, and what is stored when it dies. */
function reacting(prepared: Prepared, reaction: Prepared): Prepared {
  const { id, delayMs, dueAt, key, keyLife, onLimit, ...onDead } = reaction.job;
  return {
    ...prepared,
    job: { ...prepared.job, onDead },
    limits: [...(prepared.limits ?? []), ...(reaction.limits ?? [])],
    concurrencies: [...(prepared.concurrencies ?? []), ...(reaction.concurrencies ?? [])],
  };
}

type StorePart = (part: readonly NewJob[]) => Promise<readonly Enqueued[]>;

/** A single job, the usual case, is a part of its own. */
function inParts(jobs: readonly NewJob[], bounds: BatchBounds<NewJob>, store: StorePart): Promise<readonly Enqueued[]> {
  return jobs.length === 1 ? store(jobs) : inOrder(partsOf(jobs, bounds), store);
}

function runsAlike(jobs: readonly NewJob[]): NewJob[][] {
  const runs: NewJob[][] = [];
  let last: string | null | undefined;
  for (const job of jobs) {
    const contention = contentionOf(job);
    if (contention === last) runs.at(-1)?.push(job);
    else runs.push([job]);
    last = contention;
  }
  return runs;
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
  /** Of the definition, and of that of its reaction. */
  readonly limits?: readonly LimitDefinition[];
  /** What these compute for the keys of their limits. */
  readonly concurrencies?: readonly KeyConcurrency[];
  readonly capped: { readonly asked: number; readonly hardCap: number } | null;
}
