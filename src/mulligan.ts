import { hostname } from 'node:os';
import { type Advice, type AdviseOptions, advise } from './advise/index.ts';
import { AuditLog } from './audit-log.ts';
import { type Clock, checkClock, systemClock } from './clock.ts';
import {
  checkBoolean,
  checkInteger,
  checkName,
  describe,
  isPlainObject,
  namesOf,
  readEntries,
  readOptions,
  unexpected,
} from './config.ts';
import { type AnyJobDefinition, definitionsByName, isDefinition, type JobDefinition, queuesOf } from './definition.ts';
import { type DrainOptions, type DrainResult, drain } from './drain.ts';
import { type Duration, parseDuration } from './duration.ts';
import { Enqueuer, type Target } from './enqueue.ts';
import type { EnqueueArgs, EnqueueOptions, EnqueueResult, JobToEnqueue } from './enqueue-options.ts';
import { ErrorGroups } from './error-groups.ts';
import { ClosedError, ConfigError } from './errors.ts';
import { Gates } from './gates.ts';
import type { AfterJson } from './json.ts';
import { LimitWriter, limitsInCode } from './limit-writer.ts';
import { Limits } from './limits.ts';
import { DecisionLog } from './observe/decision-log.ts';
import { type EventName, Events, type Listener } from './observe/events.ts';
import { type Forecast, type ForecastOptions, readForecast } from './observe/forecast.ts';
import { reportGate } from './observe/gates.ts';
import { type History, type HistoryOptions, readHistory } from './observe/history.ts';
import { type Logger, type LogSink, makeLogger, readLog, type StructuredLogger, writeToStderr } from './observe/log.ts';
import { Metrics } from './observe/metrics.ts';
import { openTracing } from './observe/opentelemetry.ts';
import { type Stats, summarise } from './observe/stats.ts';
import { readSnapshot, renderSnapshot } from './observe/store-gauges.ts';
import type { TracerLike, Tracing } from './observe/tracing.ts';
import { DeadJobs, Jobs, Queues } from './operate.ts';
import { PolicyWarnings } from './policy-check/at-start.ts';
import { checkSilence, type WarningName } from './policy-check/names.ts';
import { checkQueueResource } from './resource.ts';
import { DEFAULT_MAX_RESULT_BYTES } from './result.ts';
import { Retention, registerRetention } from './retention.ts';
import { type KeptFor, type RetentionOptions, readRetention } from './retention-options.ts';
import { checkRetry } from './retry/options.ts';
import type { RetryOptions } from './retry/policy.ts';
import { type ReadSchedule, readSchedules, type ScheduleDefinition } from './schedule-options.ts';
import { ScheduleWriter } from './schedule-writer.ts';
import { Schedules } from './schedules.ts';
import { openStore } from './store/open.ts';
import type { GateAnswer, LimitOverride, Store } from './store/store.ts';
import { packageVersion } from './version.ts';
import { Waits } from './waits.ts';
import { planWork, readGrace, type WorkOptions } from './worker/options.ts';
import { Reporter } from './worker/report.ts';
import { Worker } from './worker/worker.ts';
import { Workers } from './workers.ts';

export interface QueueDefaults {
  readonly retry?: RetryOptions;
  /** For jobs that this process enqueues to the queue and whose definition says nothing of a resource. */
  readonly resource?: string;
}

export interface MulliganOptions {
  /** The definitions this process works with. A producer may leave out those it only enqueues by definition. */
  readonly jobs?: readonly AnyJobDefinition[];
  /** Defaults for the jobs of a queue, weaker than a definition's own. */
  readonly queues?: Readonly<Record<string, QueueDefaults>>;
  /** No job gets more attempts than this; the result of an enqueue has `capped` when the job asked for more. */
  readonly hardCap?: number;
  /** Largest payload in bytes of JSON. Default 256 KiB. */
  readonly maxPayloadBytes?: number;
  /** Largest result of a handler in bytes of JSON. Default 256 KiB. A job whose result is larger completes without it. */
  readonly maxResultBytes?: number;
  /**
   * How long finished jobs of `jobs` and their ledgers are kept, where a definition says nothing itself; `null` keeps them for
   * ever. It is stored, and a shorter time than the stored one takes an order: `mulligan.retention.set`. Without it 1 d, 90 d
   * and 7 d. The least is 5 minutes, and a shorter time means that: an enqueue whose answer was lost is sent again, and finds
   * out by the stored job that it was accepted before.
   */
  readonly retention?: RetentionOptions;
  /**
   * Schedules of this application. Opening creates those that are not stored yet, and changes those that the code gives
   * differently than when it was last opened; the others stay as they are, with what was changed by hand since.
   */
  readonly schedules?: readonly ScheduleDefinition[];
  /** Removes stored schedules that came from code and are not in `schedules`, also those of other applications. Default false. */
  readonly removeMissingSchedules?: boolean;
  /**
   * Where log entries go: a function, or a logger such as pino's, which also gets one line per decision at debug and per dead
   * job at warn. Default: standard error.
   * @example await Mulligan.open('sqlite:jobs.db', { jobs, log: pino() })
   */
  readonly log?: LogSink | StructuredLogger;
  /**
   * Spans for OpenTelemetry: `true` for the tracer that your SDK has registered, or a tracer of your own. Default `false`.
   * Needs the package `@opentelemetry/api`, which is not loaded otherwise. See docs/tracing.md.
   * @example await Mulligan.open('sqlite:jobs.db', { jobs, tracing: true })
   */
  readonly tracing?: boolean | TracerLike;
  /** First part of all metric names. Default `mulligan`. */
  readonly metricsPrefix?: string;
  /** Warnings about the settings of jobs that are not logged when a worker starts, by name: see docs/advise.md. */
  readonly silence?: readonly WarningName[];
  /** For a server (`https://...`): what `mulligan token create` printed. */
  readonly token?: string;
  /** Another clock than the system's, for tests. */
  readonly clock?: Clock;
}

export const mulliganOptionNames: readonly (keyof MulliganOptions)[] = namesOf<MulliganOptions>({
  jobs: true,
  queues: true,
  hardCap: true,
  maxPayloadBytes: true,
  maxResultBytes: true,
  retention: true,
  schedules: true,
  removeMissingSchedules: true,
  log: true,
  tracing: true,
  metricsPrefix: true,
  silence: true,
  token: true,
  clock: true,
});

const DEFAULT_MAX_PAYLOAD_BYTES = 256 * 1024;

export interface ResultOptions {
  /** How long to wait for the job to end. Without it, as long as that takes. */
  readonly timeout?: Duration;
  /** Stops waiting when it aborts: the call rejects with its reason. The job is not cancelled. */
  readonly signal?: AbortSignal;
}

const resultOptionNames = namesOf<ResultOptions>({ timeout: true, signal: true });

/** What the server needs of an open queue. Not published. */
export interface MulliganParts
  extends Pick<Settings, 'clock' | 'definitions' | 'maxPayloadBytes' | 'maxResultBytes' | 'metricsPrefix'> {
  readonly store: Store;
  readonly events: Events;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly report: Reporter;
}

let readParts: (mulligan: Mulligan) => MulliganParts;

export function partsOf(mulligan: Mulligan): MulliganParts {
  return readParts(mulligan);
}

/** A queue: open a store, enqueue, work, operate. */
export class Mulligan {
  static {
    readParts = (mulligan) => mulligan.#readParts();
  }

  /** Jobs of any state. */
  readonly jobs: Jobs;
  /** Dead jobs: list, redrive or discard them. */
  readonly dead: DeadJobs;
  readonly queues: Queues;
  /** What operators did: who, what, when, and to how many jobs. */
  readonly audit: AuditLog;
  /** Workers of all processes: what runs where. */
  readonly workers: Workers;
  /** Gates: why jobs of a resource wait, and orders by hand. */
  readonly gates: Gates;
  /** Limits: how many jobs of a key may run at once and how often they may start, and settings by hand. */
  readonly limits: Limits;
  /** How long finished jobs are kept. */
  readonly retention: Retention;
  /** Schedules: jobs that recur, or run once at a given time. */
  readonly schedules: Schedules;
  /** What jobs fail with: errors of one kind are one group. */
  readonly errors: ErrorGroups;
  readonly #store: Store;
  readonly #settings: Settings;
  readonly #tracing: Tracing | null;
  readonly #events: Events;
  readonly #metrics: Metrics;
  readonly #log: Logger;
  readonly #enqueuer: Enqueuer;
  readonly #waits: Waits;
  readonly #limitWriter: LimitWriter;
  readonly #scheduleWriter: ScheduleWriter;
  readonly #workers: Set<Worker> = new Set();
  readonly #warnings: PolicyWarnings;
  #closing: Promise<void> | null = null;
  #closed = false;

  /** Opens `sqlite:path/to/file.db` (`sqlite://` means the same), `postgres://host/database`, `https://host` (a server), `memory:`, or a store of your own. */
  static async open(target: string | Store, options: MulliganOptions = {}): Promise<Mulligan> {
    const settings = readSettings(options);
    const log = makeLogger(settings.log, () => ({}));
    const tracing = await openTracing(settings.tracing, settings.clock, log);
    const mulligan = new Mulligan(await openStore(target, settings.clock, settings.token), settings, tracing);
    try {
      await mulligan.#limitWriter.register(settings.limits);
      await registerRetention(mulligan.#store, settings.definitions.values(), settings.retention, log);
      await mulligan.#reconcileSchedules();
      return mulligan;
    } catch (error) {
      if (typeof target === 'string') await mulligan.close();
      throw error;
    }
  }

  private constructor(store: Store, settings: Settings, tracing: Tracing | null) {
    const { clock, queueRetry, queueResource, hardCap, maxPayloadBytes } = settings;
    this.#store = store;
    this.#settings = settings;
    this.#tracing = tracing;
    this.#log = makeLogger(settings.log, () => ({}));
    this.#events = new Events((event, error) => this.#log.error('an event listener threw', { event, error }));
    this.#metrics = new Metrics(settings.metricsPrefix);
    this.#warnings = new PolicyWarnings(settings, this.#log);
    this.#limitWriter = new LimitWriter(store);
    const targetOf = (job: unknown, what: string): Target => this.#target(job, what);
    this.#enqueuer = new Enqueuer({
      store,
      clock,
      limits: this.#limitWriter,
      events: this.#events,
      queueRetry,
      queueResource,
      hardCap,
      maxPayloadBytes,
      tracing,
      targetOf,
    });
    this.#waits = new Waits(store, clock);
    this.jobs = new Jobs({ store, clock, maxPayloadBytes });
    this.dead = new DeadJobs({ store, clock, maxPayloadBytes });
    this.audit = new AuditLog(store, clock);
    this.queues = new Queues(store, clock);
    this.workers = new Workers(store);
    this.errors = new ErrorGroups(store, clock);
    this.gates = new Gates(store, clock, (answer) => this.#reportGate(answer));
    this.limits = new Limits(store, clock);
    this.retention = new Retention(store, clock);
    this.#scheduleWriter = new ScheduleWriter({ store, clock, enqueuer: this.#enqueuer, targetOf });
    this.schedules = new Schedules(store, this.#scheduleWriter);
  }

  /**
   * Stores a job; when this resolves, it is durable. A job whose name is not among `jobs` gets the queue `default` and the
   * `standard` policy, and its input is not checked.
   * @example await mulligan.enqueue(sendEmail, { to: 'a@example.com' }, { delay: '5m', key: 'welcome-42' })
   */
  enqueue<Input, Output = unknown>(
    job: JobDefinition<Input, unknown, Output> | string,
    ...args: EnqueueArgs<NoInfer<Input>>
  ): Promise<EnqueueResult<Output>> {
    const [input, options] = args;
    return this.#open(() => this.#enqueuer.enqueue(this.#target(job), input, options)) as Promise<
      EnqueueResult<Output>
    >;
  }

  /**
   * Stores many jobs, each with options of its own, in few writes; `options` hold for all that say nothing else. All are
   * checked before the first is stored. With `tx`, they are one statement.
   * @example await mulligan.enqueueMany(sendEmail, users.map(({ to, id }) => ({ input: { to }, key: `welcome-${id}` })))
   */
  enqueueMany<Input, Output = unknown>(
    job: JobDefinition<Input, unknown, Output> | string,
    jobs: readonly JobToEnqueue<NoInfer<Input>>[],
    options?: EnqueueOptions,
  ): Promise<EnqueueResult<Output>[]> {
    const answers = this.#open(() => this.#enqueuer.enqueueMany(this.#target(job), jobs, options));
    return answers as Promise<EnqueueResult<Output>[]>;
  }

  /**
   * What the handler of a job returned, once it has; from any process. Rejects when the job is dead (JobDeadError, with the
   * last error as its cause), was cancelled (JobCancelledError) or is unknown (JobNotFoundError), and after `timeout`.
   * @example const { url } = await mulligan.result(await mulligan.enqueue(thumbnail, { photo: 7 }), { timeout: '30s' })
   */
  result<Output = unknown>(
    job: EnqueueResult<Output> | string,
    options: ResultOptions = {},
  ): Promise<AfterJson<Output>> {
    return this.#open(() => {
      const { timeout, signal = null } = readOptions(options, resultOptionNames, 'result');
      if (signal !== null && !(signal instanceof AbortSignal))
        throw unexpected('result: signal', 'an AbortSignal', signal);
      const id = isPlainObject(job) ? job.id : job;
      const timeoutMs = timeout === undefined ? null : parseDuration(timeout, 'result: timeout');
      return this.#waits.wait(checkName(id, 'result: id'), { timeoutMs, signal }) as Promise<AfterJson<Output>>;
    });
  }

  #readParts(): MulliganParts {
    const { clock, decisions, definitions, maxPayloadBytes, maxResultBytes, metricsPrefix } = this.#settings;
    const [store, events, metrics, log] = [this.#store, this.#events, this.#metrics, this.#log];
    const report = new Reporter({ events, metrics, log, decisions, definitions, clock, tracing: this.#tracing });
    const settings = { clock, definitions, maxPayloadBytes, maxResultBytes, metricsPrefix };
    return { ...settings, store, events, metrics, log, report };
  }

  /** Starts a worker for the given definitions. Stop it with `worker.stop()`, or by closing the queue. */
  work(options: WorkOptions = {}): Worker {
    return this.#work(options, this.#store);
  }

  /**
   * Runs the jobs that are due, and resolves when none is left; for a cron of a serverless platform. Jobs that fall due
   * later, retries among them, are left for the next call.
   * @example await mulligan.drain({ maxMs: '50s', maxJobs: 1_000 })
   */
  async drain(options: DrainOptions = {}): Promise<DrainResult> {
    const { clock } = this.#settings;
    return drain(options, {
      store: this.#store,
      clock,
      work: (work, store) => this.#work(work, store),
      on: (name, listener) => this.on(name, listener),
    });
  }

  #work(options: WorkOptions, store: Store): Worker {
    if (this.#closing) throw closed();
    const { clock, log, decisions, maxPayloadBytes, maxResultBytes } = this.#settings;
    const definitions = implemented(this.#settings.definitions);
    const plan = planWork(options, queuesOf(definitions.values()));
    const worker: Worker = new Worker({
      store,
      clock,
      definitions,
      plan,
      host: { name: hostname(), pid: process.pid, mulligan: packageVersion() },
      report: new Reporter({
        events: this.#events,
        metrics: this.#metrics,
        log: this.#log,
        decisions,
        definitions,
        clock,
        tracing: this.#tracing,
      }),
      logSink: log,
      tracing: this.#tracing,
      maxPayloadBytes,
      maxResultBytes,
      enqueue: (...args) => this.enqueue(...args),
      enqueueMany: (...args) => this.enqueueMany(...args),
      isOnlyWorker: () => this.#workers.size === 1,
      onStopped: () => this.#workers.delete(worker),
    });
    this.#workers.add(worker);
    this.#warnings.log(definitions.values(), plan);
    worker.start();
    return worker;
  }

  /** Calls `listener` for events of this process; returns a function that removes it. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    return this.#events.on(name, listener);
  }

  /** Totals of all processes since the store was made, and how many jobs are in each state. */
  stats(): Promise<Stats> {
    return this.#open(async () => summarise(await this.#store.stats()));
  }

  /**
   * What waits, which retries fall due within the next hour by resource and name, and when the backlog will be empty at the
   * present rate. It costs the same with a thousand waiting jobs and a million: counts that were stopped say so.
   * @example const { outlook, emptyAt } = await mulligan.forecast({ queue: 'emails' })
   */
  forecast(options: ForecastOptions = {}): Promise<Forecast> {
    return this.#open(() => readForecast(this.#store, options));
  }

  /**
   * What the ledger says about retry policies: how often attempt n succeeded, what retries cost and saved, and what to change.
   * It reads a bounded part of the ledger, beside workers, and takes up to 20 s.
   * @example const { names } = await mulligan.advise({ name: 'email.send', days: 7 })
   */
  advise(options: AdviseOptions = {}): Promise<Advice> {
    return this.#open(() => advise(this.#store, this.#settings.clock, options));
  }

  /**
   * Runs, failures, retries and run times over the last minutes or months, in at most 500 steps and by job name. Kept by minute
   * for 2 days and by hour for 90, however soon the jobs themselves are deleted.
   * @example const { points, names } = await mulligan.history({ from: '24h' })
   */
  history(options: HistoryOptions = {}): Promise<History> {
    return this.#open(() => readHistory(this.#store, options, this.#settings.clock.now()));
  }

  /** The metrics of this process, and those of the store (jobs, gates, limits, schedules, workers), in Prometheus' text format. */
  metrics(): Promise<string> {
    return this.#open(async () => {
      const { metricsPrefix } = this.#settings;
      return this.#metrics.render() + renderSnapshot(metricsPrefix, await readSnapshot(this.#store));
    });
  }

  /**
   * Stops the workers (see `Worker.stop`) and closes the store. Until the workers have stopped, the queue can be used:
   * a handler that finishes within the grace may enqueue what comes next. Called again, the shortest grace holds.
   */
  async close(options: { readonly grace?: Duration } = {}): Promise<void> {
    // Checked before anything is closed: a bad grace must leave the queue as it was.
    const grace = readGrace(options, 'close');
    const stopped = Promise.all([...this.#workers].map((worker) => worker.stop({ grace })));
    this.#closing ??= this.#close(stopped);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(stopped: Promise<unknown>): Promise<void> {
    await stopped;
    this.#closed = true;
    this.#waits.close();
    await this.#store.close();
  }

  async #reconcileSchedules(): Promise<void> {
    const { schedules, removeMissingSchedules } = this.#settings;
    await this.#scheduleWriter.reconcile(schedules, 'Mulligan.open: schedules');
    if (removeMissingSchedules) await this.#scheduleWriter.removeMissing(schedules);
  }

  #reportGate(answer: GateAnswer): void {
    const to = { events: this.#events, metrics: this.#metrics, log: this.#log };
    for (const event of answer.events) reportGate(to, answer.gate, event, answer);
  }

  #target(job: unknown, what = 'enqueue'): Target {
    if (isDefinition(job)) return job;
    if (typeof job !== 'string') throw unexpected(what, 'a definition made by defineJob, or a job name', job);
    return this.#settings.definitions.get(job) ?? { name: checkName(job, `${what}: job name`) };
  }

  /** Every call returns a promise: an error that is thrown at once becomes a rejection. */
  #open<T>(action: () => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(closed());
    try {
      return action();
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

interface Settings {
  readonly definitions: ReadonlyMap<string, AnyJobDefinition>;
  readonly limits: ReadonlyMap<string, LimitOverride>;
  readonly queueRetry: ReadonlyMap<string, RetryOptions>;
  readonly queueResource: ReadonlyMap<string, string>;
  readonly hardCap: number | undefined;
  readonly maxPayloadBytes: number;
  readonly maxResultBytes: number;
  readonly retention: KeptFor;
  readonly schedules: readonly ReadSchedule[];
  readonly removeMissingSchedules: boolean;
  readonly log: LogSink;
  readonly decisions: DecisionLog | null;
  readonly tracing: boolean | TracerLike | undefined;
  readonly metricsPrefix: string;
  readonly silence: readonly WarningName[];
  readonly token: string | undefined;
  readonly clock: Clock;
}

function readSettings(options: MulliganOptions): Settings {
  const given = readOptions(options, mulliganOptionNames, 'Mulligan.open');
  // Defaults of undefined only: null is no way to leave an option out.
  const { jobs = [], queues = {}, retention = {}, schedules = [], removeMissingSchedules = false } = given;
  const { maxResultBytes = DEFAULT_MAX_RESULT_BYTES, metricsPrefix = 'mulligan' } = given;
  const { hardCap, maxPayloadBytes = DEFAULT_MAX_PAYLOAD_BYTES, log = writeToStderr, clock = systemClock } = given;
  const { sink, structured } = readLog(log, 'Mulligan.open: log');
  const definitions = definitionsByName(jobs, 'Mulligan.open: jobs');
  return {
    definitions,
    limits: limitsInCode(definitions.values(), 'Mulligan.open: jobs'),
    ...readQueues(queues),
    hardCap: hardCap === undefined ? undefined : checkInteger(hardCap, 'Mulligan.open: hardCap', { min: 1 }),
    maxPayloadBytes: checkInteger(maxPayloadBytes, 'Mulligan.open: maxPayloadBytes', { min: 1 }),
    maxResultBytes: checkInteger(maxResultBytes, 'Mulligan.open: maxResultBytes', { min: 1 }),
    retention: readDefaultRetention(retention, definitions),
    schedules: readSchedules(schedules, 'Mulligan.open: schedules'),
    removeMissingSchedules: checkBoolean(removeMissingSchedules, 'Mulligan.open: removeMissingSchedules'),
    log: sink,
    decisions: structured === null ? null : new DecisionLog(structured),
    tracing: given.tracing,
    metricsPrefix: readPrefix(metricsPrefix),
    silence: checkSilence(given.silence ?? [], 'Mulligan.open: silence'),
    token: given.token,
    clock: checkClock(clock, 'Mulligan.open: clock'),
  };
}

const queueOptionNames = namesOf<QueueDefaults>({ retry: true, resource: true });

function readQueues(queues: NonNullable<MulliganOptions['queues']>): Pick<Settings, 'queueRetry' | 'queueResource'> {
  const queueRetry = new Map<string, RetryOptions>();
  const queueResource = new Map<string, string>();
  const expected = 'an object from queue name to { retry, resource }';
  for (const [queue, own] of readEntries(queues, 'Mulligan.open: queues', expected)) {
    const what = `Mulligan.open: queues.${checkName(queue, 'Mulligan.open: queues')}`;
    const { retry, resource } = readOptions(own as QueueDefaults, queueOptionNames, what);
    if (retry !== undefined) queueRetry.set(queue, checkRetry(retry, `${what}.retry`));
    if (resource !== undefined) queueResource.set(queue, checkQueueResource(resource, `${what}.resource`));
  }
  return { queueRetry, queueResource };
}

/** It is stored for each of the jobs, so without any it would say nothing. */
function readDefaultRetention(
  retention: RetentionOptions,
  definitions: ReadonlyMap<string, AnyJobDefinition>,
): KeptFor {
  const kept = readRetention(retention, 'Mulligan.open: retention');
  if (definitions.size > 0 || Object.keys(kept).length === 0) return kept;
  throw new ConfigError(
    'Mulligan.open: retention: expected jobs beside it, whose retention it is, got none. For all names use mulligan.retention.set.',
  );
}

/** Those that this process can work on. A worker knows no others: their jobs wait for one that does. */
function implemented(definitions: ReadonlyMap<string, AnyJobDefinition>): ReadonlyMap<string, AnyJobDefinition> {
  const able = new Map([...definitions].filter(([, { run }]) => run !== undefined));
  if (able.size > 0 || definitions.size === 0) return able;
  const names = [...definitions.keys()].map(describe).join(', ');
  throw new ConfigError(
    `work: expected a job with a handler, got none: ${names} ${definitions.size === 1 ? 'is' : 'are'} defined without \`run\`. Use implement(job, run), and give its answer to Mulligan.open.`,
  );
}

function readPrefix(prefix: unknown): string {
  if (typeof prefix === 'string' && /^[a-zA-Z_][a-zA-Z0-9_]*$/.test(prefix)) return prefix;
  throw unexpected(
    'Mulligan.open: metricsPrefix',
    'letters, digits and underscores, not beginning with a digit',
    prefix,
  );
}

function closed(): ClosedError {
  return new ClosedError('expected an open queue, got a closed one. Open it again.');
}
