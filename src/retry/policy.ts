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
}

export type Backoff =
  | { readonly kind: 'exponential'; readonly baseMs: number; readonly factor: number; readonly maxMs: number }
  | { readonly kind: 'linear'; readonly baseMs: number; readonly maxMs: number }
  | { readonly kind: 'fixed'; readonly baseMs: number }
  | { readonly kind: 'fibonacci'; readonly baseMs: number; readonly maxMs: number }
  | { readonly kind: 'table'; readonly delaysMs: readonly number[] };

export type Jitter = 'none' | 'full' | 'equal' | 'decorrelated' | { readonly spread: number };
