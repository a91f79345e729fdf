import type { Clock, Timer } from '../clock.ts';
import { unexpected } from '../config.ts';
import type { AnyJobDefinition, JobContext } from '../definition.ts';
import { formatDuration } from '../duration.ts';
import { ConfigError, InputError, isOwnError, LeaseLostError } from '../errors.ts';
import type { LimitDefinition } from '../limit/options.ts';
import { type Logger, type LogSink, makeLogger } from '../observe/log.ts';
import type { RunSpan, Tracing } from '../observe/tracing.ts';
import { encodeJson } from '../payload.ts';
import { encodeResult } from '../result.ts';
import { classify, type FailedRun, withCustomDelay } from '../retry/classify.ts';
import { Cancel, controlErrorOf, Snooze } from '../retry/control-errors.ts';
import { decide, isPastDeadline } from '../retry/decide.ts';
import type { Outcome } from '../retry/outcome.ts';
import { validateInput } from '../schema.ts';
import type { ClaimedJob, Settlement, Store, TransactionClient } from '../store/store.ts';
import { type ErrorCache, toStoredError } from '../untrusted/stored-error.ts';
import type { Lease } from './lease.ts';
import { LogLines, withLines } from './log-lines.ts';
import { Memos } from './once.ts';
import { readLeaseMs } from './options.ts';
import { permit } from './permit.ts';
import { whileLeased } from './persist.ts';
import { settlementOf } from './settlement.ts';
import { decode, migrateInput, needsMigration, rejectedBefore } from './versions.ts';

/** Why a run must stop. */
export type StopReason = 'timeout' | 'cancel' | 'shutdown' | 'lease-lost';

/** How long a handler may go on after its signal aborted. Then its place is freed; its code cannot be stopped. */
const ABORT_GRACE_MS = 5_000;
const PROGRESS_LIMIT = {
  maxBytes: 16 * 1024,
  advice: 'It travels with heartbeats: tell how far the run is, and store data elsewhere.',
};

/** To wait for the next microtask, without a new promise for each. */
const ready: Promise<void> = Promise.resolve();
const completed: Outcome = { kind: 'completed' };

/** What a run needs from its worker. */
export interface RunServices {
  readonly clock: Clock;
  readonly logSink: LogSink;
  readonly tracing: Tracing | null;
  readonly store: ConstructorParameters<typeof Memos>[1] & Pick<Store, 'transactions' | 'runs' | 'permit'>;
  /** Renews the lease of this run now; false when it was lost. */
  readonly renew: (run: Run) => Promise<boolean>;
  /** Renews all leases within a moment, for progress. */
  readonly renewSoon: () => void;
  readonly maxPayloadBytes: number;
  readonly rejectedPayloadTimeoutMs: number;
  readonly maxResultBytes: number;
  /** What a handler returned cannot be stored. */
  readonly onLostResult: (job: ClaimedJob, problem: string) => void;
  /** A permit of this limit has to wait. */
  readonly onLimited: (limit: string) => void;
  /** The limits of all definitions of the worker. */
  readonly limits: readonly LimitDefinition[];
  readonly enqueue: JobContext['enqueue'];
  readonly enqueueMany: JobContext['enqueueMany'];
  /** Equal errors of one worker are cleaned once. */
  readonly recentErrors: ErrorCache;
}

/** One run under way: the handler's call, its signal, and the outcome it will have. */
export class Run implements JobContext {
  readonly lease: Lease;
  /** JSON text that the store has not got yet. */
  unsentProgress: string | null = null;
  /** What the handler returned, as it is stored. */
  result: string | undefined = undefined;
  /** How this run ended, when its own transaction has already recorded that. */
  recorded: Settlement | null = null;
  /** Its own timeout has ended it. Who is to blame, the handler or what it called, is not known. */
  timedOut = false;
  /** Null unless runs are traced. */
  span: RunSpan | null = null;
  readonly #startedAt: number;
  readonly #definition: AnyJobDefinition;
  readonly #services: RunServices;
  #controller: AbortController | null = null;
  #stopReason: StopReason | null = null;
  #timeout: Timer | null = null;
  #grace: Timer | null = null;
  #memos: Memos | null = null;
  #isInTransaction = false;
  #hasPermit = false;
  #log: Logger | null = null;
  #lines: LogLines | null = null;
  /** How the run will end; null until its handler has. A timeout or a cancel that comes later does not change it. */
  #handled: Outcome | null = null;
  /** Null before the start and after the end. */
  #onEnd: ((outcome: Outcome) => void) | null = null;

  constructor(lease: Lease, startedAt: number, definition: AnyJobDefinition, services: RunServices) {
    this.lease = lease;
    this.#startedAt = startedAt;
    this.#definition = definition;
    this.#services = services;
  }

  /** All that the handler does becomes an outcome, reported once. A callback, because a promise costs every job. */
  start(onEnd: (outcome: Outcome) => void): void {
    const { timeoutMs } = this.#definition;
    this.#onEnd = onEnd;
    if (isPastDeadline(this.lease.job, this.lease.storeNow)) {
      this.#end({ kind: 'released', because: { kind: 'deadline' } });
      return;
    }
    this.span = this.#services.tracing?.run(this.lease.job) ?? null;
    if (timeoutMs !== null) this.#timeout = this.#services.clock.after(timeoutMs, () => this.stop('timeout'));
    if (this.span === null) void this.#handle();
    else void this.span.within(() => this.#handle());
  }

  /** What the handler has logged, as it is stored. */
  get logText(): string | undefined {
    return this.#lines?.text;
  }

  /** Tells the handler to stop; if it does not, or its effects do not end, its place is freed after a grace. */
  stop(reason: StopReason): void {
    // A run that has ended has nothing left to stop.
    if (this.#onEnd === null || this.#stopReason !== null) return;
    this.#stopReason = reason;
    this.timedOut = reason === 'timeout' && this.#handled === null;
    const error = this.#stopError(reason);
    this.#controller?.abort(error);
    this.#grace = this.#services.clock.after(ABORT_GRACE_MS, () => {
      const what = this.#handled === null ? 'the handler' : 'an effect inside once';
      this.log.warn(`${what} did not stop within ${formatDuration(ABORT_GRACE_MS)} of its signal: ${reason}`);
      this.#end(this.#handled ?? this.#failed(error));
    });
  }

  async #handle(): Promise<void> {
    // So that a handler's errors carry none of the worker's frames, which cost time to write down and explain nothing.
    await ready;
    const definition = this.#definition;
    let input: unknown;
    try {
      const { job } = this.lease;
      input = decode(job.payload);
      if (needsMigration(job, definition)) input = await migrateInput(input, job, definition);
      if (definition.input !== undefined) input = await this.#validated(input);
    } catch (thrown) {
      this.#end(await this.#unreadable(thrown));
      return;
    }
    try {
      const { run } = definition;
      if (run === undefined) throw notImplemented(definition.name);
      const returned = await run.call(definition, input, this);
      if (returned !== undefined) this.#keepResult(returned);
      this.#handled = completed;
    } catch (thrown) {
      this.#handled = this.#failed(thrown);
    }
    if (this.#memos !== null) await this.#effectsEnd(this.#memos, this.#handled);
    this.#end(this.#handled);
  }

  /** The effects under way are recorded before the run is settled: a later run would repeat those that are not. */
  async #effectsEnd(memos: Memos, outcome: Outcome): Promise<void> {
    const errors = await memos.settled();
    // Where the handler has failed, its own error is told, and the next run tries these effects again.
    if (outcome !== completed) return;
    for (const error of errors) this.log.warn('an effect inside once failed after its handler had returned', { error });
  }

  /** One that cannot be stored does not fail the job: its effects have happened. */
  #keepResult(value: unknown): void {
    // The transaction of this run has completed the job, with the result of its own work.
    if (this.recorded !== null) return;
    const { maxResultBytes, onLostResult } = this.#services;
    const encoded = encodeResult(value, maxResultBytes);
    if (encoded !== null && encoded.problem !== null) onLostResult(this.lease.job, encoded.problem);
    this.result = encoded?.text;
  }

  #validated(input: unknown): Promise<unknown> {
    return validateInput(this.#definition.input, input, this.#definition.name);
  }

  /** What its schema refuses, another version of the definition may accept; any other failure is one of the run. */
  async #unreadable(thrown: unknown): Promise<Outcome> {
    const isRejected = isOwnError(thrown) && thrown instanceof InputError;
    if (!isRejected || this.#stopReason !== null) return this.#failed(thrown);
    const { store, rejectedPayloadTimeoutMs, recentErrors } = this.#services;
    const rejection = {
      error: toStoredError(thrown, recentErrors),
      // Without the ledger it is as if this were the first time.
      before: await rejectedBefore(store, this.lease.job.id).catch(() => null),
      giveUpAfterMs: rejectedPayloadTimeoutMs,
    };
    return { kind: 'released', because: { kind: 'rejected', ...rejection } };
  }

  #end(outcome: Outcome): void {
    const onEnd = this.#onEnd;
    if (onEnd === null) return;
    this.#onEnd = null;
    this.#handled = outcome;
    this.#timeout?.cancel();
    this.#grace?.cancel();
    this.span?.stopped();
    onEnd(outcome);
  }

  #stopError(reason: StopReason): Error {
    const { name, id } = this.lease.job;
    switch (reason) {
      case 'timeout': {
        const limit = formatDuration(this.#definition.timeoutMs as number);
        return named('TimeoutError', `${name} ran longer than its timeout of ${limit}`);
      }
      case 'cancel':
        return new Cancel(`job ${id} was cancelled`);
      case 'shutdown':
        return named('AbortError', 'the worker is shutting down');
      case 'lease-lost':
        return new LeaseLostError(`job ${id}: another worker holds its lease; nothing this run writes will count`);
    }
  }

  /** What the handler threw, together with why it had to stop, if it had. A control error (`Unrecoverable`, ...) comes first. */
  #failed(thrown: unknown): Outcome {
    if (controlErrorOf(thrown) !== null) return this.#classified(thrown);
    switch (this.#stopReason) {
      case 'cancel':
        return { kind: 'cancelled', error: toStoredError(thrown, this.#services.recentErrors) };
      case 'shutdown':
        return { kind: 'released', because: { kind: 'shutdown' } };
      case 'timeout':
        return this.#classified(this.#stopError('timeout'));
      default:
        return this.#classified(thrown);
    }
  }

  #classified(error: unknown): Outcome {
    const { job, storeNow } = this.lease;
    const { classify: custom, rules, backoff } = this.#definition;
    const failed: FailedRun = {
      name: job.name,
      run: job.run,
      attempt: job.attempts,
      maxAttempts: job.policy.maxAttempts,
      previousDelayMs: job.previousDelayMs,
    };
    const outcome = classify(error, {
      now: storeNow,
      run: failed,
      classify: custom,
      rules,
      recentErrors: this.#services.recentErrors,
    });
    if (outcome.kind !== 'failed' || backoff === undefined) return outcome;
    return { kind: 'failed', failure: withCustomDelay(outcome.failure, backoff, { ...failed, error }) };
  }

  // The context, as the handler sees it. The run is its own context: a job that uses none of it pays for none of it.

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#stopReason !== null) this.#controller.abort(this.#stopError(this.#stopReason));
    }
    return this.#controller.signal;
  }

  get job(): JobContext['job'] {
    const { id, name, queue, priority, version, enqueuedAt } = this.lease.job;
    return { id, name, queue, priority, version, enqueuedAt: new Date(enqueuedAt) };
  }

  get run(): number {
    return this.lease.job.run;
  }

  get attempt(): number {
    return this.lease.job.attempts;
  }

  get maxAttempts(): number {
    return this.lease.job.policy.maxAttempts;
  }

  get lastError(): JobContext['lastError'] {
    return this.lease.job.lastError;
  }

  get log(): Logger {
    if (this.#log === null) {
      const { id, name, run } = this.lease.job;
      const log = makeLogger(this.#services.logSink, () => ({ job: id, name, run }));
      this.#lines = new LogLines();
      this.#log = withLines(log, this.#lines, () => this.lease.storeNow);
    }
    return this.#log;
  }

  // Getters, so that they work when a handler takes them apart: `run(input, { once, progress })`.

  get snooze(): JobContext['snooze'] {
    return (delay) => {
      throw new Snooze(delay);
    };
  }

  get progress(): JobContext['progress'] {
    return (value) => {
      this.unsentProgress = encodeJson(value, PROGRESS_LIMIT, 'progress');
      this.#services.renewSoon();
    };
  }

  get once(): JobContext['once'] {
    return (key, effect) => {
      const { store, clock, maxPayloadBytes } = this.#services;
      this.#memos ??= new Memos(this.lease, store, clock, {
        maxBytes: maxPayloadBytes,
        isOver: () => this.#handled !== null,
      });
      return this.#memos.once(key, effect);
    };
  }

  get permit(): JobContext['permit'] {
    return (limit, options = {}) => {
      const { store, clock, limits, onLimited } = this.#services;
      const onPermit = (): void => {
        this.#hasPermit = true;
      };
      const own = { lease: this.lease, signal: this.signal, hasPermit: this.#hasPermit, onPermit };
      return permit({ store, clock, limits, onLimited, ...own }, limit, options);
    };
  }

  get transaction(): JobContext['transaction'] {
    return (work) => this.#transact(work);
  }

  get enqueue(): JobContext['enqueue'] {
    return this.#services.enqueue;
  }

  get enqueueMany(): JobContext['enqueueMany'] {
    return this.#services.enqueueMany;
  }

  get extend(): JobContext['extend'] {
    return async (duration) => {
      this.lease.want(readLeaseMs(duration, 'extend'));
      const kept = await whileLeased([this.lease], this.#services.clock, () => this.#services.renew(this));
      if (!kept) throw this.#stopError('lease-lost');
    };
  }

  async #transact<Result>(work: (tx: TransactionClient) => Promise<Result>): Promise<Result> {
    const { store, clock } = this.#services;
    if (store.transactions === undefined) {
      throw new ConfigError('transaction: expected a store that shares its database, such as PostgreSQL; use `once`.');
    }
    if (typeof work !== 'function') throw unexpected('transaction', 'a function that takes a database client', work);
    if (this.recorded) throw new ConfigError('transaction: expected one per run, got a second. The job is completed.');
    if (this.#isInTransaction) {
      throw new ConfigError('transaction: expected one per run, got a second while the first is under way.');
    }
    let settlement: Settlement | null = null;
    let worked: unknown;
    this.#isInTransaction = true;
    const ended = await store.transactions
      .settleWith(
        async (tx) => {
          const value = await work(tx);
          worked = value;
          return value;
        },
        () => {
          const { job, storeNow } = this.lease;
          const decision = decide(job, completed, storeNow, () => clock.random());
          // Often it is what a query answered, which is no data and not meant as a result: then there is none.
          const encoded = encodeResult(worked, this.#services.maxResultBytes);
          const result = encoded?.problem === null ? encoded.text : undefined;
          const progress = this.unsentProgress ?? undefined;
          const parts = { startedAt: this.#startedAt, endedAt: storeNow, result, progress, log: this.logText };
          settlement = settlementOf(job, parts, completed, decision);
          return settlement;
        },
      )
      .finally(() => {
        this.#isInTransaction = false;
      });
    if (ended === null) throw this.#stopError('lease-lost');
    this.recorded = settlement;
    return ended.result;
  }
}

/** A worker does not claim such jobs on purpose: see `Mulligan.work`. */
function notImplemented(name: string): ConfigError {
  return new ConfigError(`${name}: expected a handler, got none. Use implement(job, run) where it is worked on.`);
}

function named(name: string, message: string): Error {
  const error = new Error(message);
  error.name = name;
  return error;
}
