import type { Duration } from '../duration.ts';

/** A policy is plain data: stored with the job, printed, simulated, and applied by any process. All durations are in ms. */
export interface RetryPolicy {
  /** The total number of attempts, the first included. */
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  readonly jitter: Jitter;
  /** Give up this long after the first run started; null for never. */
  readonly deadlineMs: number | null;
  /** At this many crashed runs the job is dead as poison. */
  readonly maxCrashes: number;
  /** Of so many runs, snoozes aside, no further one is given back: the job is dead. Never below `maxAttempts`. */
  readonly maxRuns: number;
}

export const backoffKinds = ['exponential', 'linear', 'fixed', 'fibonacci', 'table'] as const;

export type Backoff =
  | { readonly kind: 'exponential'; readonly baseMs: number; readonly factor: number; readonly maxMs: number }
  | { readonly kind: 'linear'; readonly baseMs: number; readonly maxMs: number }
  | { readonly kind: 'fixed'; readonly baseMs: number }
  | { readonly kind: 'fibonacci'; readonly baseMs: number; readonly maxMs: number }
  | { readonly kind: 'table'; readonly delaysMs: readonly number[] };

export const jitterNames = ['none', 'full', 'equal', 'decorrelated'] as const;
export type Jitter = (typeof jitterNames)[number] | { readonly spread: number };

/** A policy as it is written in a definition, a queue's options or an enqueue; what is left out comes from the next level. */
export interface RetryOptions {
  /** The total number of attempts, the first included: 1 means never retry. */
  readonly maxAttempts?: number;
  /** Attempts after the first; give this or `maxAttempts`. */
  readonly maxRetries?: number;
  readonly backoff?: BackoffOptions;
  readonly jitter?: Jitter;
  /** Give up this long after the first run started; null lifts a deadline set at a lower level. */
  readonly deadline?: Duration | null;
  /** At this many crashed runs the job is dead as poison. */
  readonly maxCrashes?: number;
  /** Of so many runs, snoozes aside, no further one is given back: the job is dead. `maxAttempts` when that is more. */
  readonly maxRuns?: number;
}

/** Without a `max`, a delay may grow to `LONGEST_DELAY_MS`. */
export type BackoffOptions =
  | { readonly kind: 'exponential'; readonly base: Duration; readonly factor?: number; readonly max?: Duration }
  | { readonly kind: 'linear'; readonly base: Duration; readonly max?: Duration }
  | { readonly kind: 'fixed'; readonly base: Duration }
  | { readonly kind: 'fibonacci'; readonly base: Duration; readonly max?: Duration }
  | { readonly kind: 'table'; readonly delays: readonly Duration[] };
