import type { JobDefinition } from '../definition.ts';
import type { Duration } from '../duration.ts';
import type { EnqueueOptions, EnqueueResult, JobToEnqueue } from '../enqueue.ts';
import type { Logger } from '../observe/log.ts';
import type { StoredError } from '../retry/outcome.ts';
import type { TransactionClient } from '../store/store.ts';

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
   * A crash between the effect and its recording lets it run again.
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
    input: NoInfer<Input>,
    options?: EnqueueOptions,
  ): Promise<EnqueueResult<Output>>;
  /** Enqueues many jobs, as `mulligan.enqueueMany` does. */
  enqueueMany<Input, Output>(
    job: JobDefinition<Input, unknown, Output> | string,
    jobs: readonly JobToEnqueue<NoInfer<Input>>[],
    options?: EnqueueOptions,
  ): Promise<EnqueueResult<Output>[]>;
  /** Lengthens the lease, by up to 365 days, for work that keeps the event loop from sending heartbeats. */
  extend(duration: Duration): Promise<void>;
}
