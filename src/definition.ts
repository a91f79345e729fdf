import {
  checkInteger,
  checkList,
  checkName,
  copyData,
  describe,
  isPlainObject,
  namesOf,
  readOptions,
  unexpected,
  withoutUndefined,
} from './config.ts';
import { type Duration, parseDuration } from './duration.ts';
import type { EnqueueArgs, EnqueueOptions, EnqueueResult, JobToEnqueue } from './enqueue-options.ts';
import { ConfigError } from './errors.ts';
import { MAX_OUTAGE_MS } from './gate/constants.ts';
import { checkPriority, DEFAULT_PRIORITY, DEFAULT_QUEUE } from './job.ts';
import type { JsonCheck } from './json.ts';
import { checkLimits, type LimitDefinition, type LimitOptions } from './limit/options.ts';
import type { Logger } from './observe/log.ts';
import { checkSilence, type WarningName } from './policy-check/names.ts';
import { type AnyInput, checkReaction, definitionBrand, hasBrand, type ReactionTo } from './reaction.ts';
import { checkResource, type ResourceFunction } from './resource.ts';
import type { OutputCheck, OutputType } from './result.ts';
import { type KeptFor, type RetentionOptions, readRetention } from './retention-options.ts';
import type { BackoffFunction, ClassifyFunction, ClassifyRule } from './retry/classify.ts';
import { validateClassifyRules } from './retry/classify.ts';
import { type Decision, FIRST_VERSION } from './retry/decision.ts';
import { checkRetry } from './retry/options.ts';
import type { StoredError } from './retry/outcome.ts';
import type { RetryOptions } from './retry/policy.ts';
import type { InputSchema } from './schema.ts';
import type { TransactionClient } from './store/store.ts';
import { checkTags, type TagsFunction } from './tags.ts';
import { read } from './untrusted/thrown.ts';

/** What `defineJob` takes. `Input` is what is enqueued; `Parsed` is what the schema makes of it; `Output` is what the handler returns. */
export interface JobOptions<Input, Parsed = Input, Output = unknown, DeadInput = AnyInput> {
  /** Unique among the jobs of an application; it is stored with each job. */
  readonly name: string;
  /** Any Standard Schema (zod, valibot, ...). Checked at enqueue, and again before each run. */
  readonly input?: InputSchema<Input, Parsed>;
  /**
   * The version of the input, an integer from 1 on: raise it when you change what the input means. It is stored with each
   * job. A worker leaves jobs of a later version than its own to workers that have that one.
   */
  readonly version?: number;
  /** Makes an input of this version from a payload that was enqueued with an earlier one. The schema checks what it returns. */
  readonly migrate?: (payload: never, fromVersion: number) => NoInfer<Input> | Promise<NoInfer<Input>>;
  /**
   * Does the work. What it returns is kept as the job's result. Leave it out where jobs are only enqueued: `implement` adds it
   * where they are worked on.
   */
  readonly run?: (input: Parsed, context: JobContext) => Output | Promise<Output>;
  /** The type of the result, for a definition without `run`: `output: typeOf<{ url: string }>()`. It is not checked at run time. */
  readonly output?: OutputType<Output>;
  readonly queue?: string;
  /** Where retries wait, to be worked apart from fresh jobs. */
  readonly retryQueue?: string;
  /**
   * What its jobs depend on, such as an API: they wait while that is down, and an outage costs them no attempts. A name
   * without a slash, or a function of the input that returns a key (the gate is then `NAME OF THE JOB/KEY`),
   * `[parent, key]`, or null for none. Without a resource, the job's own name is a soft gate: it holds nothing back, and
   * while it sees an outage, failures of the environment do not count. `false` turns that off, too.
   * @example resource: (input) => ['webhook', new URL(input.url).host]
   */
  readonly resource?: string | ResourceFunction<Parsed> | false;
  /** For how long an outage may keep failures from counting where no resource is named. Default 1 day; an hour while fewer than three jobs fail. Not together with a named resource. */
  readonly maxOutage?: Duration;
  /**
   * How many of its jobs may run at once and how often they may start, for each key: one limit or several. All must have room.
   * @example limit: { name: 'shopify', key: (input) => input.shop, concurrency: 2, rate: { limit: 90, per: '10s' } }
   */
  readonly limit?: LimitOptions<Parsed> | readonly LimitOptions<Parsed>[];
  /** Texts that its jobs are found by: a list, or a function of the input. At most 16, of at most 100 characters. */
  readonly tags?: readonly string[] | TagsFunction<Parsed>;
  /** 0 (first) to 9 (last). */
  readonly priority?: number;
  readonly retry?: RetryOptions;
  /** How long one run may take before its signal aborts. One that has not returned 5 s later counts as failed. */
  readonly timeout?: Duration;
  /** Classifies an error; when it returns undefined, the rules decide. */
  readonly classify?: ClassifyFunction;
  /** Rules of your own, tried before the default ones. */
  readonly rules?: readonly ClassifyRule[];
  /** Chooses the delay before the next attempt, instead of the policy's backoff and jitter; its deadline still holds. */
  readonly backoff?: BackoffFunction;
  /**
   * What happens when a job of this kind is dead. `[job, input]` is a job that is stored in the write that buries this one: each time it
   * dies, whatever process finds that out. The input may be a function of the input of the dead job and of its id. A function is
   * called in the process that buried the job. Best effort: it is not repeated.
   * @example onDead: [refund, ({ order }, { id }) => ({ order, failed: id })]
   */
  readonly onDead?: ((job: DeadJob) => unknown) | ReactionTo<Parsed, DeadInput>;
  /**
   * Warnings about its settings that are not logged when a worker starts, by name: see docs/advise.md.
   * @example silence: ['no-jitter']
   */
  readonly silence?: readonly WarningName[];
  /**
   * How long its finished jobs and their ledgers are kept, at least 5 minutes; null is for ever. It is stored, for all processes.
   * A shorter time than the stored one takes an order: `mulligan.retention.set`. Default 1 d, 90 d and 7 d.
   * @example retention: { completed: '30d', dead: null }
   */
  readonly retention?: RetentionOptions;
}

export interface DeadJob {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly payload: unknown;
  readonly run: number;
  readonly attempts: number;
  readonly error: StoredError | null;
  readonly decision: Decision;
}

/** A checked definition: types the producer (`Input`), the worker (`Parsed`) and who waits for the result (`Output`) from one place. */
export interface JobDefinition<Input = unknown, Parsed = unknown, Output = unknown> {
  readonly name: string;
  readonly input: InputSchema<Input, Parsed> | undefined;
  /** Null when it carries none, and is then taken for 1. */
  readonly version: number | null;
  readonly migrate: ((payload: unknown, fromVersion: number) => unknown) | undefined;
  readonly queue: string;
  readonly retryQueue: string | null;
  /** `null`: none was named, so the queue's, if it has one. */
  readonly resource: string | ResourceFunction | false | null;
  readonly maxOutageMs: number;
  /** By name. */
  readonly limits: readonly LimitDefinition[];
  readonly tags: readonly string[] | TagsFunction | null;
  readonly priority: number;
  readonly retry: RetryOptions | undefined;
  readonly timeoutMs: number | null;
  readonly classify: ClassifyFunction | undefined;
  readonly rules: readonly ClassifyRule[];
  readonly backoff: BackoffFunction | undefined;
  readonly onDead: ((job: DeadJob) => unknown) | undefined;
  readonly reaction: ReactionTo | undefined;
  readonly silence: readonly WarningName[];
  readonly retention: KeptFor;
  // A method, so that definitions of any input fit into one list. Undefined until `implement` adds it.
  run?(input: Parsed, context: JobContext): Output | Promise<Output>;
}

/** What `context.permit` takes. */
export interface PermitOptions {
  /** How many starts of the rate it takes. Default 1; at most the `burst` of the rate. */
  readonly cost?: number;
  /** Whose rate it is. Default: the key under which the job itself counts in this limit; needed where it has none. */
  readonly key?: string | number;
}

/** What a handler gets beside its input. */
export interface JobContext {
  /** Aborts on timeout, cancel, shutdown and a lost lease; `signal.reason` says which. */
  readonly signal: AbortSignal;
  readonly job: {
    readonly id: string;
    readonly name: string;
    readonly queue: string;
    readonly priority: number;
    /** Of the definition with which it was enqueued; null when that carried none. */
    readonly version: number | null;
    readonly enqueuedAt: Date;
  };
  /** Number of this start; it only ever rises. */
  readonly run: number;
  /** This attempt, from 1 to `maxAttempts`. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** What the last failed run ended with. */
  readonly lastError: StoredError | null;
  readonly log: Logger;
  /** Run again after `delay`; this run does not count. Ends the handler by throwing. */
  snooze(delay: Duration): never;
  /** Stores a JSON value that others can read; sent along with the next heartbeat, or with the outcome of this run. */
  progress(value: unknown): void;
  /**
   * Runs `effect` at most until its result has been recorded: later runs of this job get the recorded result.
   * The result must be JSON: when it cannot be stored, the effect is not repeated, and the job is dead (`Unrecoverable`).
   * A crash between the effect and its recording lets it run again. The run ends only when all effects under way are recorded,
   * or 5 s after its signal has aborted.
   */
  once<Result>(key: string, effect: () => Result | Promise<Result>): Promise<Result>;
  /**
   * Runs `work` in a database transaction that also completes this job: either both are committed or neither, so
   * what `work` writes through its client happens exactly once. Needs PostgreSQL; once per run, and best last. The result of
   * the job is then what `work` returned, if JSON can carry that.
   * @example await ctx.transaction((tx) => tx.query('UPDATE accounts SET ... WHERE id = $1', [id]))
   */
  transaction<Result>(work: (tx: TransactionClient) => Promise<Result>): Promise<Result>;
  /**
   * Enqueues a job, as `mulligan.enqueue` does. When this run fails afterwards, the next one enqueues it again: a `key` made
   * from this job's id keeps it from being enqueued twice, with `keyUntil: 'pruned'` also after it has ended.
   * @example await context.enqueue(resize, { url }, { key: `${context.job.id}:resize`, keyUntil: 'pruned' })
   */
  enqueue<Input, Output>(
    job: JobDefinition<Input, unknown, Output> | string,
    ...args: EnqueueArgs<NoInfer<Input>>
  ): Promise<EnqueueResult<Output>>;
  /** Enqueues many jobs, as `mulligan.enqueueMany` does. */
  enqueueMany<Input, Output>(
    job: JobDefinition<Input, unknown, Output> | string,
    jobs: readonly JobToEnqueue<NoInfer<Input>>[],
    options?: EnqueueOptions,
  ): Promise<EnqueueResult<Output>[]>;
  /**
   * Takes a part of a limit's rate, for a call inside a handler. Resolves when the rate of the key allows it. When that takes
   * longer than a second, the job is snoozed until then, uncounted: the handler ends by throwing, as with `snooze`.
   * @example await context.permit('shopify', { cost: 3 })
   */
  permit(limit: string, options?: PermitOptions): Promise<void>;
  /** Lengthens the lease, by up to 365 days, for work that keeps the event loop from sending heartbeats. */
  extend(duration: Duration): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: a list of definitions mixes inputs; each keeps its own types.
export type AnyJobDefinition = JobDefinition<any, any, any>;

const optionNames = namesOf<JobOptions<unknown>>({
  name: true,
  input: true,
  run: true,
  version: true,
  migrate: true,
  output: true,
  queue: true,
  retryQueue: true,
  resource: true,
  maxOutage: true,
  limit: true,
  tags: true,
  priority: true,
  retry: true,
  timeout: true,
  classify: true,
  rules: true,
  backoff: true,
  onDead: true,
  silence: true,
  retention: true,
});

/** `Parsed` comes first, so that without a schema the input is what the handler says it takes. */
export function defineJob<Parsed = unknown, Input = Parsed, Output = unknown, DeadInput = AnyInput>(
  options: JobOptions<Input, Parsed, Output, DeadInput> & JsonCheck<Input> & OutputCheck<Output>,
): JobDefinition<Input, Parsed, Output> {
  const given = readOptions(options as JobOptions<Input, Parsed, Output>, optionNames, 'defineJob');
  const name = checkName(given.name, 'defineJob: name');
  const what = `job ${name}`;
  if (given.run !== undefined && typeof given.run !== 'function')
    throw unexpected(`${what}: run`, 'a function', given.run);
  if (given.input !== undefined && !isSchema(given.input)) {
    throw unexpected(`${what}: input`, 'a Standard Schema (zod, valibot, arktype, ...)', given.input);
  }
  checkOutput(given.output, `${what}: output`);
  const { onDead, ...hooks } = given;
  checkHooks(hooks, what);
  const version = given.version === undefined ? null : checkVersion(given.version, `${what}: version`);
  checkMigrate(given.migrate, version, what);
  return branded({
    name,
    input: given.input,
    version,
    migrate: given.migrate as JobDefinition['migrate'],
    queue: checkName(given.queue ?? DEFAULT_QUEUE, `${what}: queue`),
    retryQueue: given.retryQueue === undefined ? null : checkName(given.retryQueue, `${what}: retryQueue`),
    ...readGate(given, what),
    limits: given.limit === undefined ? [] : checkLimits(given.limit, `${what}: limit`),
    tags: readTags(given.tags, `${what}: tags`),
    priority: checkPriority(given.priority ?? DEFAULT_PRIORITY, `${what}: priority`),
    retry: given.retry === undefined ? undefined : checkRetry(given.retry, `${what}: retry`),
    timeoutMs: given.timeout === undefined ? null : checkTimeout(given.timeout, `${what}: timeout`),
    classify: given.classify,
    rules: given.rules === undefined ? [] : validateClassifyRules(copyData(given.rules, what), `${what}: rules`),
    backoff: given.backoff,
    ...readOnDead(onDead, `${what}: onDead`),
    silence: checkSilence(given.silence ?? [], `${what}: silence`),
    retention: readRetention(given.retention ?? {}, `${what}: retention`),
    ...(given.run && { run: given.run }),
  });
}

/** What only a worker needs of a definition, so that it need not be where jobs are enqueued. */
export type ImplementOptions = Pick<JobOptions<never>, 'timeout' | 'classify' | 'rules' | 'backoff'> & {
  readonly onDead?: (job: DeadJob) => unknown;
  readonly migrate?: (payload: never, fromVersion: number) => unknown;
};

const implementOptionNames = namesOf<ImplementOptions>({
  timeout: true,
  classify: true,
  rules: true,
  backoff: true,
  onDead: true,
  migrate: true,
});

/**
 * The same definition with a handler, for the process that works on its jobs. The definition itself, without `run`, can be
 * imported by processes that only enqueue.
 * @example const worker = implement(thumbnail, async ({ url }) => ({ bytes: await shrink(url) }))
 */
export function implement<Input, Parsed, Output>(
  job: JobDefinition<Input, Parsed, Output>,
  run: (input: Parsed, context: JobContext) => NoInfer<Output> | Promise<NoInfer<Output>>,
  options: ImplementOptions = {},
): JobDefinition<Input, Parsed, Output> {
  if (!isDefinition(job)) throw unexpected('implement', 'a definition made by defineJob', job);
  const what = `job ${job.name}`;
  if (job.run !== undefined) {
    throw new ConfigError(
      `${what}: implement: expected a definition without run, got one that has it. Leave one of them out.`,
    );
  }
  if (typeof run !== 'function') throw unexpected(`${what}: implement`, 'a function', run);
  const given = withoutUndefined(readOptions(options, implementOptionNames, `${what}: implement`));
  const { timeout, rules, migrate, ...hooks } = given;
  checkHooks(given, what);
  checkMigrate(migrate, job.version, what);
  return branded({
    ...job,
    ...hooks,
    ...(migrate !== undefined && { migrate: migrate as NonNullable<JobDefinition['migrate']> }),
    ...(timeout !== undefined && { timeoutMs: checkTimeout(timeout, `${what}: timeout`) }),
    ...(rules !== undefined && { rules: validateClassifyRules(copyData(rules, what), `${what}: rules`) }),
    run,
  });
}

function checkHooks(given: Omit<ImplementOptions, 'timeout' | 'rules'>, what: string): void {
  for (const hook of ['classify', 'backoff', 'onDead', 'migrate'] as const) {
    const value = given[hook];
    if (value !== undefined && typeof value !== 'function') throw unexpected(`${what}: ${hook}`, 'a function', value);
  }
}

function readOnDead(onDead: unknown, what: string): Pick<JobDefinition, 'onDead' | 'reaction'> {
  if (onDead === undefined) return { onDead: undefined, reaction: undefined };
  if (typeof onDead === 'function') return { onDead: onDead as JobDefinition['onDead'], reaction: undefined };
  return { onDead: undefined, reaction: checkReaction(onDead, what, 'a function, or [job, input]') };
}

/** No payload is of an earlier version than the first, so that the function would never be called. */
function checkMigrate(migrate: unknown, version: number | null, what: string): void {
  if (migrate === undefined || (version !== null && version > FIRST_VERSION)) return;
  const least = FIRST_VERSION + 1;
  throw new ConfigError(
    `${what}: expected a version of at least ${least} with migrate, got ${version ?? 'none'}. Payloads that were enqueued without a version are of version ${FIRST_VERSION}: set version: ${least}.`,
  );
}

/** A schema, say, would look as if results were checked. */
function checkOutput(output: unknown, what: string): void {
  if (output === undefined || (isPlainObject(output) && Object.keys(output).length === 0)) return;
  throw unexpected(what, 'what typeOf<YourType>() returns', output, 'It only names a type: results are not checked.');
}

function readGate(
  given: Pick<JobOptions<never>, 'resource' | 'maxOutage'>,
  what: string,
): Pick<JobDefinition, 'resource' | 'maxOutageMs'> {
  const resource = readResource(given.resource ?? null, `${what}: resource`);
  const maxOutageMs = parseDuration(given.maxOutage ?? MAX_OUTAGE_MS, `${what}: maxOutage`);
  // A function may return null, and its job then has the soft gate that maxOutage bounds.
  if (given.maxOutage === undefined || resource === null || typeof resource === 'function') {
    return { resource, maxOutageMs };
  }
  const [found, instead] =
    resource === false
      ? ['resource: false', 'With it every failure counts: leave maxOutage or resource out.']
      : [`resource: ${describe(resource)}`, 'Behind a resource, retry.deadline bounds the waiting: set that instead.'];
  throw new ConfigError(`${what}: maxOutage: expected only without a resource, got it with ${found}. ${instead}`);
}

function readTags(tags: unknown, what: string): JobDefinition['tags'] {
  if (tags === undefined) return null;
  return typeof tags === 'function' ? (tags as TagsFunction) : checkTags(tags, what);
}

function readResource(value: unknown, what: string): JobDefinition['resource'] {
  if (value === null || value === false) return value;
  return typeof value === 'function' ? (value as ResourceFunction) : checkResource(value, what);
}

function branded<Definition extends object>(definition: Definition): Readonly<Definition> {
  return Object.freeze(Object.defineProperty(definition, definitionBrand, { value: true }));
}

/** Definitions by name. A Map, so that no name can reach into a prototype. Of a split definition the half with `run` is kept. */
export function definitionsByName(jobs: unknown, what: string): ReadonlyMap<string, AnyJobDefinition> {
  const byName = new Map<string, AnyJobDefinition>();
  checkList(jobs, what, 'a list of definitions made by defineJob', (job, index) => {
    if (!isDefinition(job)) throw unexpected(`${what}[${index}]`, 'a definition made by defineJob', job);
    const twin = byName.get(job.name);
    const isTwin = twin !== undefined && twin !== job;
    if (isTwin && (twin.run === undefined) === (job.run === undefined)) {
      throw new ConfigError(`${what}: expected one definition per name, got two for ${describe(job.name)}.`);
    }
    if (!isTwin || job.run !== undefined) byName.set(job.name, job);
  });
  return byName;
}

/** Recognised by its brand: an object that only looks like a definition was never checked. */
export function isDefinition(value: unknown): value is AnyJobDefinition {
  return hasBrand(value);
}

function isSchema(value: unknown): value is InputSchema {
  // arktype's schemas are functions.
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false;
  return typeof read(read(value, '~standard'), 'validate') === 'function';
}

/** At most what every store can hold. */
const LATEST_VERSION = 1_000_000;

function checkVersion(value: unknown, what: string): number {
  return checkInteger(value, what, { min: 1, max: LATEST_VERSION });
}

function checkTimeout(value: unknown, what: string): number {
  const ms = parseDuration(value, what);
  if (ms > 0) return ms;
  throw unexpected(what, 'a duration above 0', value, 'Leave it out for no timeout.');
}

/** The queues that definitions name. */
export interface NamedQueues {
  /** A worker serves them all by default: jobs of a queue that no worker serves would wait for ever. */
  readonly all: readonly string[];
  /** Queues that hold only retries: no definition enqueues to them. */
  readonly onlyRetries: ReadonlySet<string>;
}

export function queuesOf(definitions: Iterable<AnyJobDefinition>): NamedQueues {
  const own = new Set<string>();
  const retry = new Set<string>();
  for (const { queue, retryQueue } of definitions) {
    own.add(queue);
    if (retryQueue !== null) retry.add(retryQueue);
  }
  const all = [...new Set([...own, ...retry])].sort();
  const onlyRetries = new Set([...retry].filter((queue) => !own.has(queue)));
  return { all: all.length === 0 ? [DEFAULT_QUEUE] : all, onlyRetries };
}
