import type { RegisteredWorker, Store } from './store/store.ts';

/** The workers of all processes that share the store. */
export class Workers {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Workers that have not stopped, in the order in which they started. One that was killed is listed for an hour, with
   * `alive: false`.
   */
  async list(): Promise<RegisteredWorker[]> {
    return this.#store.workers();
  }
}
