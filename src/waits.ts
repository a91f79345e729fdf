import type { Clock, Timer } from './clock.ts';
import { formatDuration } from './duration.ts';
import {
  ClosedError,
  JobCancelledError,
  JobDeadError,
  JobNotFoundError,
  ResultMissingError,
  ResultTimeoutError,
  StoreBusyError,
  StoreUnavailableError,
} from './errors.ts';
import { decodeResult } from './result.ts';
import type { StoredError } from './retry/outcome.ts';
import type { EndedJob, Store, Unsubscribe } from './store/store.ts';
import { toStoredError } from './untrusted/stored-error.ts';

/*
 * Waits for jobs to end (`mulligan.result`). All waits of a process share one look at the store at a time:
 *
 *   a wait begins           -> look, and have the job watched
 *   the store tells its end -> look
 *   the store was cut off   -> look as soon as it is heard again
 *   another process commits -> look (a store that does not push, such as SQLite)
 *   nothing is told         -> look again after 100 ms, 300 ms, 1 s and then every 5 s: a notification can be lost
 *
 * A look that fails because the store is away changes nothing: the waits go on, each until its own timeout.
 */
const LOOK_AGAIN_MS = [100, 300, 1_000, 5_000] as const;
/** Where nothing is pushed and no commit is seen, waits look at least this often. */
const LONGEST_BLIND_MS = 1_000;
const LARGEST_LOOK = 1_000;
/** A job is watched for this long, and watched again after half of it. */
const WATCH_MS = 60_000;
/** Commits of other processes cause no more looks than this, nor so many that looking takes more than a tenth of the time. */
const LOOK_EVERY_MS = 20;
const PART_OF_TIME = 10;

type WaitStore = Pick<Store, 'ended' | 'onJobs' | 'onWork' | 'pushes'>;

export interface WaitOptions {
  readonly timeoutMs: number | null;
  readonly signal: AbortSignal | null;
}

/** One call that waits. */
interface Waiter {
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

/** One job that is waited for, by one call or more. */
interface Wait {
  readonly waiters: Set<Waiter>;
  looks: number;
  lookAt: number;
  watchedAt: number | null;
}

export class Waits {
  readonly #store: WaitStore;
  readonly #clock: Clock;
  readonly #waits: Map<string, Wait> = new Map();
  readonly #toLookAt: Set<string> = new Set();
  #unsubscribes: Unsubscribe[] = [];
  #timer: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #commitLook: Timer | null = null;
  #nextCommitLookAt = 0;
  #isLooking = false;
  /** What the last look failed with; null when it succeeded. */
  #lastFailure: unknown = null;
  #closed = false;

  constructor(store: WaitStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** How many jobs are waited for. */
  get size(): number {
    return this.#waits.size;
  }

  /** What the job's handler returned. */
  wait(id: string, { timeoutMs, signal }: WaitOptions): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      if (this.#closed) return reject(closed());
      const onAbort = (): void => this.#leave(id, waiter, () => waiter.reject(signal?.reason));
      const timeout =
        timeoutMs === null
          ? null
          : this.#clock.after(timeoutMs, () =>
              this.#leave(id, waiter, () => waiter.reject(this.#timedOut(id, timeoutMs))),
            );
      const done = (): void => {
        timeout?.cancel();
        signal?.removeEventListener('abort', onAbort);
      };
      const waiter: Waiter = {
        resolve: (value) => {
          done();
          resolve(value);
        },
        reject: (reason) => {
          done();
          reject(reason);
        },
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#enter(id, waiter);
    });
  }

  close(): void {
    this.#closed = true;
    const all = [...this.#waits.values()];
    this.#waits.clear();
    this.#rest();
    for (const { waiters } of all) for (const waiter of waiters) waiter.reject(closed());
  }

  #enter(id: string, waiter: Waiter): void {
    const known = this.#waits.get(id);
    if (known !== undefined) {
      known.waiters.add(waiter);
      return;
    }
    if (this.#waits.size === 0) this.#listen();
    const wait = { waiters: new Set([waiter]), looks: 0, lookAt: Number.POSITIVE_INFINITY, watchedAt: null };
    this.#waits.set(id, wait);
    this.#look([id]);
  }

  #timedOut(id: string, timeoutMs: number): ResultTimeoutError {
    const late = `job ${id} has not ended within ${formatDuration(timeoutMs)}`;
    if (this.#lastFailure === null) return new ResultTimeoutError(id, `${late}. It goes on; ask again.`);
    const { message } = toStoredError(this.#lastFailure);
    const cause = { cause: this.#lastFailure };
    return new ResultTimeoutError(id, `${late}, as far as is known: the store could not be asked. ${message}`, cause);
  }

  #leave(id: string, waiter: Waiter, answer: () => void): void {
    const wait = this.#waits.get(id);
    if (wait?.waiters.delete(waiter) && wait.waiters.size === 0) this.#forget(id);
    answer();
  }

  #forget(id: string): void {
    this.#waits.delete(id);
    this.#toLookAt.delete(id);
    if (this.#waits.size === 0) this.#rest();
  }

  #listen(): void {
    this.#lastFailure = null;
    const missed = (): void => this.#look(this.#waits.keys());
    this.#unsubscribes = [this.#store.onJobs({ ended: (ids) => this.#look(ids), missed })];
    if (!this.#store.pushes) this.#unsubscribes.push(this.#store.onWork(() => this.#committed()));
  }

  #rest(): void {
    for (const unsubscribe of this.#unsubscribes.splice(0)) unsubscribe();
    this.#timer?.cancel();
    this.#timer = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
    this.#commitLook?.cancel();
    this.#commitLook = null;
    this.#toLookAt.clear();
  }

  /** Another process, or this one, has committed something. */
  #committed(): void {
    if (this.#commitLook !== null) return;
    const inMs = Math.max(0, this.#nextCommitLookAt - this.#clock.monotonic());
    this.#commitLook = this.#clock.after(inMs, () => {
      this.#commitLook = null;
      this.#look(this.#waits.keys());
    });
  }

  #look(ids: Iterable<string>): void {
    for (const id of ids) if (this.#waits.has(id)) this.#toLookAt.add(id);
    if (this.#isLooking || this.#toLookAt.size === 0) return;
    this.#isLooking = true;
    // In the next turn, so that all that is asked for in this one is one look.
    queueMicrotask(() => void this.#lookAtAll());
  }

  async #lookAtAll(): Promise<void> {
    const startedAt = this.#clock.monotonic();
    while (this.#toLookAt.size > 0) await this.#lookAtSome();
    const now = this.#clock.monotonic();
    this.#nextCommitLookAt = now + Math.max(LOOK_EVERY_MS, (now - startedAt) * PART_OF_TIME);
    this.#isLooking = false;
  }

  async #lookAtSome(): Promise<void> {
    const ids = [...this.#toLookAt].slice(0, LARGEST_LOOK);
    for (const id of ids) this.#toLookAt.delete(id);
    const now = this.#clock.monotonic();
    const isWatched = (id: string): boolean => {
      const watchedAt = this.#waits.get(id)?.watchedAt ?? null;
      return watchedAt !== null && now - watchedAt < WATCH_MS / 2;
    };
    const watchMs = this.#store.pushes && !ids.every(isWatched) ? WATCH_MS : null;
    try {
      const ended = await this.#store.ended(ids, watchMs);
      this.#lastFailure = null;
      for (const job of ended) this.#end(job);
      for (const id of ids) this.#lookLater(id, watchMs === null ? null : now);
    } catch (error) {
      this.#failed(ids, error);
    }
  }

  #end(job: EndedJob): void {
    const wait = this.#waits.get(job.id);
    if (wait === undefined) return;
    this.#forget(job.id);
    let answer: (waiter: Waiter) => void;
    try {
      const value = resultOf(job);
      answer = (waiter) => waiter.resolve(value);
    } catch (error) {
      answer = (waiter) => waiter.reject(error);
    }
    for (const waiter of wait.waiters) answer(waiter);
  }

  #failed(ids: readonly string[], error: unknown): void {
    this.#lastFailure = error;
    const isPassing = error instanceof StoreUnavailableError || error instanceof StoreBusyError;
    for (const id of ids) {
      const wait = this.#waits.get(id);
      if (isPassing) this.#lookLater(id, null);
      else if (wait !== undefined) {
        this.#forget(id);
        for (const waiter of wait.waiters) waiter.reject(error);
      }
    }
  }

  #lookLater(id: string, watchedAt: number | null): void {
    const wait = this.#waits.get(id);
    if (wait === undefined) return;
    if (watchedAt !== null) wait.watchedAt = watchedAt;
    const pause = LOOK_AGAIN_MS[Math.min(wait.looks++, LOOK_AGAIN_MS.length - 1)] as number;
    wait.lookAt = this.#clock.monotonic() + (this.#store.pushes ? pause : Math.min(pause, LONGEST_BLIND_MS));
    this.#wakeAt(wait.lookAt);
  }

  #wakeAt(at: number): void {
    if (at >= this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.#clock.after(at - this.#clock.monotonic(), () => {
      this.#timer = null;
      this.#timerAt = Number.POSITIVE_INFINITY;
      const now = this.#clock.monotonic();
      const due: string[] = [];
      let nextAt = Number.POSITIVE_INFINITY;
      for (const [waitId, { lookAt }] of this.#waits) {
        if (lookAt <= now) due.push(waitId);
        else nextAt = Math.min(nextAt, lookAt);
      }
      this.#look(due);
      if (nextAt < Number.POSITIVE_INFINITY) this.#wakeAt(nextAt);
    });
  }
}

/** What an ended job's handler returned; throws when there is none. */
export function resultOf({ id, state, result, deadReason, error }: EndedJob): unknown {
  const options = error === null ? {} : { cause: thrownError(error) };
  const last = error === null ? '' : ` Its last error: ${error.name}: ${error.message}`;
  switch (state) {
    case 'completed': {
      if (result === null) return undefined;
      const { result: value, resultError } = decodeResult(result);
      if (resultError === null) return value;
      throw new ResultMissingError(id, `job ${id} has completed, but its result could not be stored: ${resultError}`);
    }
    case 'dead': {
      const reason = deadReason ?? 'exhausted';
      throw new JobDeadError(id, reason, `job ${id} is dead (${reason}).${last}`, options);
    }
    case 'cancelled':
      throw new JobCancelledError(id, `job ${id} was cancelled.${last}`, options);
    case 'not-found':
      throw new JobNotFoundError(
        id,
        `expected the id of a stored job, got ${id}, which is unknown. It may have been rolled back, or pruned after its retention.`,
      );
  }
}

/** An error like the one that was stored. */
function thrownError({ name, message, code, status, stack }: StoredError): Error {
  const error = new Error(message);
  error.name = name;
  if (stack !== null && stack !== undefined) error.stack = stack;
  return Object.assign(error, code != null && { code }, status != null && { status });
}

function closed(): ClosedError {
  return new ClosedError('expected an open queue, but it was closed while a result was waited for. The job goes on.');
}
