import { ConfigError } from '../../errors.ts';
import type { Store } from '../store.ts';

/** A fresh, empty store whose time the suite can move. */
export interface StoreHarness {
  readonly store: Store;
  /**
   * Moves the store's time on and lets what is under way finish. The clock may also run on by itself:
   * cases compare times within one answer, and move in steps of minutes.
   */
  advance(ms: number): Promise<void> | void;
  /** Removes all traces. The store may have been closed by then. */
  close(): Promise<void> | void;
}

export type OpenStore = () => Promise<StoreHarness> | StoreHarness;

export interface StoreCase {
  readonly verb: string;
  /** A sentence about behaviour, unique in the suite. */
  readonly name: string;
  run(harness: StoreHarness): Promise<void>;
}

export interface ConformanceOptions {
  /** Cases this store cannot pass: name of the case to the reason why. */
  readonly skip?: Readonly<Record<string, string>>;
}

/** One case, bound to a store: hand it to any test runner. */
export interface ConformanceCase {
  readonly verb: string;
  readonly name: string;
  /** Why it is skipped; null when it is to run. Report skipped ones, so that they are counted. */
  readonly skip: string | null;
  /** Opens a store, runs the case and closes the store, whatever happened. */
  run(): Promise<void>;
}

export function cases(verb: string, byName: Readonly<Record<string, StoreCase['run']>>): StoreCase[] {
  return Object.entries(byName).map(([name, run]) => ({ verb, name, run }));
}

export function bind(all: readonly StoreCase[], open: OpenStore, options: ConformanceOptions = {}): ConformanceCase[] {
  const names = new Set(all.map((one) => one.name));
  if (names.size < all.length)
    throw new ConfigError('Two conformance cases share a name: skipping one would skip both.');
  const skip = new Map(Object.entries(options.skip ?? {}));
  const unknown = [...skip.keys()].filter((name) => !names.has(name));
  if (unknown.length > 0) {
    throw new ConfigError(
      `Expected names of conformance cases to skip, got ${unknown.map((n) => `"${n}"`).join(', ')}.`,
    );
  }
  return all.map(({ verb, name, run }) => ({
    verb,
    name,
    skip: skip.get(name) ?? null,
    async run() {
      const harness = await open();
      try {
        await run(harness);
      } finally {
        await harness.close();
      }
    },
  }));
}
