import type { Clock } from '../clock.ts';
import { checkName, unexpected } from '../config.ts';
import { ConfigError, LeaseLostError } from '../errors.ts';
import { encodeJson } from '../payload.ts';
import { Unrecoverable } from '../retry/control-errors.ts';
import type { Store } from '../store/store.ts';
import type { Lease } from './lease.ts';
import { whileLeased } from './persist.ts';

const TOO_LARGE = 'Store the data elsewhere and answer a reference to it, or raise maxPayloadBytes.';

/** Stored in place of a result that could not be. It is no JSON, so no result looks like it. */
export const RESULT_UNKNOWN = 'result unknown';

interface MemosOptions {
  /** Of one result. */
  readonly maxBytes: number;
  /** The handler has ended: no effect begins any more. */
  readonly isOver: () => boolean;
}

/** The durable memo of one run: what earlier runs recorded, and what this one adds. */
export class Memos {
  readonly #lease: Lease;
  readonly #store: Pick<Store, 'recall' | 'remember'>;
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #isOver: () => boolean;
  #recalled: Promise<ReadonlyMap<string, string>> | null = null;
  readonly #underWay: Map<string, Promise<unknown>> = new Map();
  readonly #withoutResult: Set<string> = new Set();

  constructor(
    lease: Lease,
    store: Pick<Store, 'recall' | 'remember'>,
    clock: Clock,
    { maxBytes, isOver }: MemosOptions,
  ) {
    this.#lease = lease;
    this.#store = store;
    this.#clock = clock;
    this.#maxBytes = maxBytes;
    this.#isOver = isOver;
  }

  once<Result>(key: string, effect: () => Result | Promise<Result>): Promise<Result> {
    const name = checkName(key, 'once: key');
    if (typeof effect !== 'function') {
      const hint = 'Write for example once("charge", () => charge(order)).';
      throw unexpected(`once(${JSON.stringify(name)})`, 'a function that has the effect', effect, hint);
    }
    let result = this.#underWay.get(name);
    if (result === undefined) {
      if (this.#isOver()) return Promise.reject(calledTooLate(name));
      result = this.#resolve(name, effect);
      this.#underWay.set(name, result);
      // A failed effect may be tried again within the same run.
      result.catch(() => this.#underWay.delete(name));
    }
    return result as Promise<Result>;
  }

  /** Resolves when every effect that has begun is recorded or has failed: to the errors of those that failed meanwhile. */
  async settled(): Promise<readonly unknown[]> {
    const ended = await Promise.allSettled(this.#underWay.values());
    return ended.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  }

  async #resolve(key: string, effect: () => unknown): Promise<unknown> {
    const recorded = this.#withoutResult.has(key) ? RESULT_UNKNOWN : (await this.#recall()).get(key);
    if (recorded === RESULT_UNKNOWN) throw lostResult(key);
    if (recorded !== undefined) return JSON.parse(recorded);
    if (this.#lease.ended) throw this.#lostLease(key);
    const text = await this.#encode(key, await effect());
    await this.#remember(key, text);
    // What a later run would get, so that the first one sees the same.
    return JSON.parse(text);
  }

  /** An effect whose result cannot be stored would be repeated by each later run. So its job fails for good instead. */
  async #encode(key: string, result: unknown): Promise<string> {
    const limit = { maxBytes: this.#maxBytes, advice: TOO_LARGE };
    try {
      return encodeJson(result, limit, `once(${JSON.stringify(key)})`);
    } catch (cause) {
      this.#withoutResult.add(key);
      await this.#remember(key, RESULT_UNKNOWN);
      const done = `once(${JSON.stringify(key)}): the effect is done and will not be repeated, but its result cannot be stored`;
      throw new Unrecoverable(`${done}: ${(cause as Error).message}`, { cause });
    }
  }

  /** The effect has happened: losing its result would repeat it, so storing is tried for as long as the lease lasts. */
  async #remember(key: string, text: string): Promise<void> {
    const kept = await whileLeased([this.#lease], this.#clock, () => this.#store.remember(this.#lease.job, key, text));
    if (!kept) throw this.#lostLease(key);
  }

  #lostLease(key: string): LeaseLostError {
    return new LeaseLostError(`once(${JSON.stringify(key)}): the lease was lost; its result is not recorded`);
  }

  #recall(): Promise<ReadonlyMap<string, string>> {
    // A first run has nothing to recall.
    if (this.#lease.job.run === 1) return Promise.resolve(new Map());
    this.#recalled ??= whileLeased([this.#lease], this.#clock, () => this.#store.recall(this.#lease.job.id));
    return this.#recalled;
  }
}

function calledTooLate(key: string): ConfigError {
  return new ConfigError(
    `once(${JSON.stringify(key)}): expected a call while the handler runs, got one after it had ended; the effect did not begin. Await every effect, for example with Promise.allSettled.`,
  );
}

function lostResult(key: string): Unrecoverable {
  return new Unrecoverable(
    `once(${JSON.stringify(key)}): the effect was done before, but its result could not be stored. Catch this error where the handler can go on without the result.`,
  );
}
