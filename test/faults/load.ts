import { setTimeout as sleep } from 'node:timers/promises';
import { type Mulligan, StoreBusyError, StoreUnavailableError } from '../../src/index.ts';
import { failsTwice, quick, short, snoozes } from '../processes/jobs.ts';
import type { Chance } from './chance.ts';

/** Nothing that happens to processes ends these jobs early. */
export const hardy = { retry: { maxAttempts: 1_000, maxCrashes: 1_000 } } as const;

/** Keeps adding jobs of several kinds while processes come and go. */
export class Load {
  /** The ids that were answered. */
  readonly acknowledged: string[] = [];
  /** Those of them that can only end well. */
  readonly hardy: Set<string> = new Set();
  readonly #mulligan: Mulligan;
  readonly #chance: Chance;
  readonly #loops: Promise<void>[];
  readonly #goesOn: boolean;
  #stopped = false;
  /** How many calls were refused; what became of their jobs nobody knows. */
  refused = 0;

  /** `through outages`: a store that does not answer is asked again, with other jobs. */
  constructor(mulligan: Mulligan, chance: Chance, producers: number, manner: 'strict' | 'through outages' = 'strict') {
    this.#mulligan = mulligan;
    this.#chance = chance;
    this.#goesOn = manner === 'through outages';
    this.#loops = Array.from({ length: producers }, () => this.#produce());
  }

  /** Resolves when the last enqueue under way was answered; rejects if any failed. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  async #produce(): Promise<void> {
    while (!this.#stopped) {
      const isHardy = this.#chance.index(2) === 0;
      const options = isHardy ? hardy : {};
      for (const { id } of await this.#enqueue(options).catch((error: unknown) => this.#refused(error))) {
        this.acknowledged.push(id);
        if (isHardy) this.hardy.add(id);
      }
      await sleep(this.#chance.between(0, 6));
    }
  }

  #refused(error: unknown): [] {
    const passes = error instanceof StoreUnavailableError || error instanceof StoreBusyError;
    if (!this.#goesOn || !passes) throw error;
    this.refused++;
    return [];
  }

  async #enqueue(options: { readonly retry?: typeof hardy.retry }): Promise<{ readonly id: string }[]> {
    const mulligan = this.#mulligan;
    switch (this.#chance.index(4)) {
      case 0:
        return mulligan.enqueueMany(quick, [{ input: { n: 1 } }, { input: { n: 2 } }, { input: { n: 3 } }], options);
      case 1:
        return [await mulligan.enqueue(failsTwice, null, options)];
      case 2:
        return [await mulligan.enqueue(short, { ms: 50 }, options)];
      default:
        return [await mulligan.enqueue(snoozes, { ms: 30 }, options)];
    }
  }
}
