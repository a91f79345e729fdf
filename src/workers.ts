import type { RegisteredWorker, Store } from './store/store.ts';

/** The workers of all processes that share the store. */
export class Workers {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Workers that have not stopped, in the order in which they started. Each is seen every 8 to 23 s (`lastSeenAt`). One that
   * was killed is `silent` after half a minute, `lost` after a minute (`alive` is false), and listed for an hour. Workers that
   * speak HTTP are registered by their server.
   */
  async list(): Promise<RegisteredWorker[]> {
    return this.#store.workers();
  }
}
