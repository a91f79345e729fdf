import { readEntries, readOptions, unexpected } from '../../config.ts';
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

function readSkip(skip: unknown, names: ReadonlySet<string>): ReadonlyMap<string, string> {
  const what = 'storeConformance: skip';
  const reasons = new Map<string, string>();
  for (const [name, reason] of readEntries(skip, what, 'an object from the name of a case to a reason')) {
    if (!names.has(name)) throw unexpected(what, 'the name of a conformance case', name);
    if (typeof reason !== 'string') throw unexpected(`${what}: ${name}`, 'a reason, as text', reason);
    reasons.set(name, reason);
  }
  return reasons;
}

export function bind(all: readonly StoreCase[], open: OpenStore, options: ConformanceOptions = {}): ConformanceCase[] {
  const names = new Set(all.map((one) => one.name));
  if (names.size < all.length)
    throw new ConfigError('Two conformance cases share a name: skipping one would skip both.');
  if (typeof open !== 'function') {
    throw unexpected('storeConformance', 'a function that opens a store for a case', open);
  }
  const skip = readSkip(readOptions(options, ['skip'], 'storeConformance').skip ?? {}, names);
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
