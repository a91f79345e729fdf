import type { Clock } from './clock.ts';
import { checkInteger, checkName, readOptions, unexpected } from './config.ts';
import { operatorName } from './operate.ts';
import type { Operation, Store } from './store/store.ts';

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 10_000;

/** The record of bulk actions: who did what, when, and to how many jobs. Kept for 90 days. */
export class Operations {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Newest first; 50 unless `limit` says otherwise. */
  async list(options: { readonly limit?: number } = {}): Promise<Operation[]> {
    const { limit = DEFAULT_PAGE } = readOptions(options, ['limit'], 'operations.list');
    return this.#store.operations(checkInteger(limit, 'operations.list: limit', { min: 1, max: LARGEST_PAGE }));
  }

  /**
   * Ends an unfinished operation: a call that works on it stops after its current part, and none continues it. What it has
   * changed stays so. One that has ended is answered as it is.
   */
  async stop(id: string, options: { readonly by?: string } = {}): Promise<Operation> {
    const { by = operatorName() } = readOptions(options, ['by'], 'operations.stop');
    const asked = checkName(id, 'operations.stop: id');
    const found = (await this.#store.operations(LARGEST_PAGE)).find((operation) => operation.id === asked);
    if (found === undefined) {
      throw unexpected('operations.stop', 'the id of an operation', asked, 'See operations.list.');
    }
    if (found.endedAt !== null) return found;
    const stop = `stopped by ${checkName(by, 'operations.stop: by')}`;
    const nothing = { order: this.#clock.newId(), part: 0, intervalMs: 0, keepAttempts: false, canary: 0 };
    const { action, selection } = found;
    return (await this.#store.change({ ...nothing, id: found.id, action, selection, by, stop })).operation;
  }
}
