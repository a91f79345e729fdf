/** How a mutant ended. `tainted`: its tests fail without it too, after it has run: it wants a process of its own. */
export type Fate = 'killed' | 'timeout' | 'survived' | 'unreached' | 'tainted';

export interface Trial {
  readonly mutant: number;
  readonly tests: readonly string[];
}

/** What a process is to do, in a file that `MUTATION_SESSION` names. */
export interface Session {
  /** Test files, relative to the root. */
  readonly files: readonly string[];
  readonly mutants: number;
  /** On from the start, for what only runs when a file is loaded. */
  readonly atLoad: number | null;
  /** null: run all tests without a mutant and learn what they reach. */
  readonly trials: readonly Trial[] | null;
  readonly testTimeoutMs: Readonly<Record<string, number>>;
  /** Where to write what came of it, a line of JSON at a time. */
  readonly answers: string;
}

export type Answer =
  | { readonly kind: 'loaded'; readonly reached: readonly number[] }
  | {
      readonly kind: 'test';
      readonly test: string;
      readonly ms: number;
      readonly failed: string | null;
      readonly reached: readonly number[];
    }
  | { readonly kind: 'begun'; readonly mutant: number }
  | {
      readonly kind: 'ended';
      readonly mutant: number;
      readonly fate: Fate;
      readonly test: string | null;
      readonly said: string;
    };
