import { checkInteger, readOptions } from './config.ts';
import type { Operation, Store } from './store/store.ts';

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 10_000;

/** The record of bulk actions: who did what, when, and to how many jobs. Kept for 90 days. */
export class Operations {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Newest first; 50 unless `limit` says otherwise. */
  async list(options: { readonly limit?: number } = {}): Promise<Operation[]> {
    const { limit = DEFAULT_PAGE } = readOptions(options, ['limit'], 'operations.list');
    return this.#store.operations(checkInteger(limit, 'operations.list: limit', { min: 1, max: LARGEST_PAGE }));
  }
}
