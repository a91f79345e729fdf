import { checkInteger } from '../config.ts';
import type { Duration } from '../duration.ts';
import { validateRetryOptions } from './options.ts';
import { policies } from './presets.ts';

export { validateRetryOptions } from './options.ts';

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
}

/** Without a `max`, a delay may grow to `LONGEST_DELAY_MS`. */
export type BackoffOptions =
  | { readonly kind: 'exponential'; readonly base: Duration; readonly factor?: number; readonly max?: Duration }
  | { readonly kind: 'linear'; readonly base: Duration; readonly max?: Duration }
  | { readonly kind: 'fixed'; readonly base: Duration }
  | { readonly kind: 'fibonacci'; readonly base: Duration; readonly max?: Duration }
  | { readonly kind: 'table'; readonly delays: readonly Duration[] };

/** Who asks for what, from the strongest voice to the weakest. */
export interface PolicySources {
  readonly job?: RetryOptions | undefined;
  readonly definition?: RetryOptions | undefined;
  readonly queue?: RetryOptions | undefined;
  /** No job gets more attempts than this, whatever it asks for. */
  readonly hardCap?: number | undefined;
}

export interface ResolvedPolicy {
  readonly policy: RetryPolicy;
  /** Set when the hard cap took attempts away, so that it can be reported and not silently applied. */
  readonly capped: { readonly asked: number; readonly hardCap: number } | null;
}

/** The `standard` preset gives what it names; a preset has no deadline and leaves crashes alone. */
export const defaultPolicy: RetryPolicy = {
  ...(validateRetryOptions(policies.standard, 'policies.standard') as RetryPolicy),
  deadlineMs: null,
  maxCrashes: 3,
};

/** Field by field: the job's own, else the definition's, else the queue's, else the default. A backoff is one field. */
export function resolvePolicy({ job, definition, queue, hardCap }: PolicySources): ResolvedPolicy {
  const asked: RetryPolicy = {
    ...defaultPolicy,
    ...(queue === undefined ? {} : validateRetryOptions(queue, 'queue.retry')),
    ...(definition === undefined ? {} : validateRetryOptions(definition, 'definition.retry')),
    ...(job === undefined ? {} : validateRetryOptions(job, 'retry')),
  };
  if (hardCap === undefined) return { policy: asked, capped: null };
  checkInteger(hardCap, 'hardCap', { min: 1, hint: 'Leave it out for no cap.' });
  if (asked.maxAttempts <= hardCap) return { policy: asked, capped: null };
  return { policy: { ...asked, maxAttempts: hardCap }, capped: { asked: asked.maxAttempts, hardCap } };
}
