import type { Mistake } from './mistake.ts';
import type { Watcher } from './postgres-hunt.ts';

/** A mistake in the SQL or the TypeScript of the PostgreSQL store. */
export interface PostgresMutant extends Mistake {
  /** The first that notices it, so that the run begins with it. */
  readonly by: Watcher;
  /** Tried with every change, and not only by `npm run mutants:postgres`. */
  readonly quick?: true;
}

export const postgresMutants: readonly PostgresMutant[] = [];
