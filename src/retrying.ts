import type { Clock, Timer } from './clock.ts';
import { backoffDelay } from './retry/backoff.ts';
import { delayBefore, type Random } from './retry/jitter.ts';
import type { RetryPolicy } from './retry/policy.ts';

/*
 * Mulligan's own retries: of store calls, connections and claims. They use the backoff and the jitter that jobs use, so
 * there is one formula. A loop that can be written as a function call uses `withRetries`; a loop of callbacks or states
 * keeps a `Pauses` and asks it for the next one.
 */

export type PausePolicy = Pick<RetryPolicy, 'backoff' | 'jitter'>;

/** Pauses that double. Jitter takes up to half away, so that processes that lost the same server do not return as one. */
export function doubling(firstMs: number, longestMs: number): PausePolicy {
  return { backoff: { kind: 'exponential', baseMs: firstMs, factor: 2, maxMs: longestMs }, jitter: 'equal' };
}

/** Pauses of about the same length. */
export function steady(pauseMs: number): PausePolicy {
  return { backoff: { kind: 'fixed', baseMs: pauseMs }, jitter: 'equal' };
}

/** The pauses of one row of failures. */
export class Pauses {
  readonly #policy: PausePolicy;
  readonly #random: Random;
  #failures = 0;
  #previousMs: number | null = null;

  constructor(policy: PausePolicy, random: Random) {
    this.#policy = policy;
    this.#random = random;
  }

  /** How many failures there were since the last success. */
  get failures(): number {
    return this.#failures;
  }

  /** Counts a failure and returns how long to pause after it, in ms. */
  next(): number {
    this.#previousMs = delayBefore(this.#policy, ++this.#failures, this.#previousMs, this.#random);
    return this.#previousMs;
  }

  /** Call it after a success: the next failure is a first one. */
  reset(): void {
    this.#failures = 0;
    this.#previousMs = null;
  }
}

export interface RetryingOptions {
  readonly policy: PausePolicy;
  /** Says which errors another try can mend. Every other error is thrown at once. */
  readonly isTransient: (error: unknown) => boolean;
  /** How many tries there are in all; unlimited unless given. */
  readonly maxAttempts?: number;
  /** No try starts later than this after the first one; unlimited unless given. */
  readonly giveUpAfterMs?: number;
  /** For a limit that moves, such as a lease that is renewed: no try starts when none of this is left. */
  readonly leftMs?: () => number;
  /** Ends a pause, and the tries with it. */
  readonly signal?: AbortSignal;
  /** Called before each pause, with the number of failures so far. */
  readonly onRetry?: (error: unknown, failures: number) => void;
}

/** Repeats `call` until it succeeds or the tries are over; then throws the last error. The first try is always made. */
export async function withRetries<Answer>(
  clock: Clock,
  options: RetryingOptions,
  call: () => Promise<Answer>,
): Promise<Answer> {
  const { policy, isTransient, maxAttempts = Infinity, giveUpAfterMs = Infinity, signal, onRetry } = options;
  const startedAt = clock.monotonic();
  const ownLeftMs = (): number => startedAt + giveUpAfterMs - clock.monotonic();
  const leftMs = (): number => Math.min(ownLeftMs(), options.leftMs?.() ?? Infinity);
  const pauses = new Pauses(policy, () => clock.random());
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isTransient(error) || signal?.aborted) throw error;
      const pauseMs = pauses.next();
      if (pauses.failures >= maxAttempts || leftMs() <= 0) throw error;
      onRetry?.(error, pauses.failures);
      // Never much past the end of what is left: the other side may be well again shortly before it.
      await pause(clock, Math.min(pauseMs, Math.max(backoffDelay(policy.backoff, 1), leftMs() / 2)), signal);
      // The process may have been stopped meanwhile.
      if (signal?.aborted || leftMs() <= 0) throw error;
    }
  }
}

/** Resolves after `pauseMs`, or as soon as `signal` aborts. */
export function pause(clock: Clock, pauseMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    let timer: Timer | null = null;
    const end = (): void => {
      timer?.cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    timer = clock.after(pauseMs, end);
    signal?.addEventListener('abort', end);
  });
}
