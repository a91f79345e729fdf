import type { Clock } from '../clock.ts';
import { unexpected } from '../config.ts';
import { checkName } from '../definition.ts';
import { LeaseLostError } from '../errors.ts';
import { encodeJson } from '../payload.ts';
import type { Store } from '../store/store.ts';
import type { Lease } from './lease.ts';
import { whileLeased } from './persist.ts';

const TOO_LARGE = 'Store the data elsewhere and answer a reference to it, or raise maxPayloadBytes.';

/** The durable memo of one run: what earlier runs recorded, and what this one adds. */
export class Memos {
  readonly #lease: Lease;
  readonly #store: Pick<Store, 'recall' | 'remember'>;
  readonly #clock: Clock;
  readonly #maxBytes: number;
  #recalled: Promise<ReadonlyMap<string, string>> | null = null;
  readonly #underWay: Map<string, Promise<unknown>> = new Map();

  constructor(lease: Lease, store: Pick<Store, 'recall' | 'remember'>, clock: Clock, maxBytes: number) {
    this.#lease = lease;
    this.#store = store;
    this.#clock = clock;
    this.#maxBytes = maxBytes;
  }

  once<Result>(key: string, effect: () => Result | Promise<Result>): Promise<Result> {
    const name = checkName(key, 'once: key');
    if (typeof effect !== 'function') {
      const hint = 'Write for example once("charge", () => charge(order)).';
      throw unexpected(`once(${JSON.stringify(name)})`, 'a function that has the effect', effect, hint);
    }
    let result = this.#underWay.get(name);
    if (result === undefined) {
      result = this.#resolve(name, effect);
      this.#underWay.set(name, result);
      // A failed effect may be tried again within the same run.
      result.catch(() => this.#underWay.delete(name));
    }
    return result as Promise<Result>;
  }

  async #resolve(key: string, effect: () => unknown): Promise<unknown> {
    const recorded = (await this.#recall()).get(key);
    if (recorded !== undefined) return JSON.parse(recorded);
    if (this.#lease.ended) throw this.#lostLease(key);
    const limit = { maxBytes: this.#maxBytes, advice: TOO_LARGE };
    const text = encodeJson(await effect(), limit, `once(${JSON.stringify(key)})`);
    // The effect has happened: losing its result would repeat it, so storing is tried for as long as the lease lasts.
    const kept = await whileLeased([this.#lease], this.#clock, () => this.#store.remember(this.#lease.job, key, text));
    if (!kept) throw this.#lostLease(key);
    // What a later run would get, so that the first one sees the same.
    return JSON.parse(text);
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
