import { type BulkResult, runBulk } from './bulk/bulk.ts';
import { readInterval } from './bulk/rate.ts';
import type { Clock } from './clock.ts';
import { checkInteger, checkName, readOptions, unexpected, unknownName } from './config.ts';
import { parseDuration } from './duration.ts';
import { type BulkOptions, CANARY_TIMEOUT } from './operate.ts';
import { operatorName } from './operator.ts';
import { type ChangeAction, changeActions } from './store/change.ts';
import type { Operation, Store } from './store/store.ts';

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 10_000;

/** What operators did: who, what, when, and to how many jobs. Kept for 90 days. */
export class AuditLog {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Newest first; 50 unless `limit` says otherwise. */
  async list(options: { readonly limit?: number } = {}): Promise<Operation[]> {
    const { limit = DEFAULT_PAGE } = readOptions(options, ['limit'], 'audit.list');
    return this.#store.operations(checkInteger(limit, 'audit.list: limit', { min: 1, max: LARGEST_PAGE }));
  }

  /**
   * Ends an unfinished operation: a call that works on it stops after its current part, and none continues it. What it has
   * changed stays so. One that has ended is answered as it is.
   */
  async stop(id: string, options: { readonly by?: string } = {}): Promise<Operation> {
    const { by = operatorName() } = readOptions(options, ['by'], 'audit.stop');
    const found = await this.#find(id, 'audit.stop');
    if (found.endedAt !== null) return found;
    const stop = `stopped by ${checkName(by, 'audit.stop: by')}`;
    const nothing = { order: this.#clock.newId(), part: 0, intervalMs: 0, keepAttempts: false, canary: 0 };
    const { action, selection } = found;
    return (await this.#store.change({ ...nothing, id: found.id, action, selection, by, stop })).operation;
  }

  /**
   * Goes on with a bulk action: with an unfinished one whose process ended, where it was; with one that was stopped, as another
   * operation on the jobs that are left, with the same canary and rate. One that is done is answered as it is.
   */
  async resume(id: string, options: Omit<BulkOptions, 'dryRun'> = {}): Promise<Operation> {
    const what = 'audit.resume';
    const { by = operatorName(), onProgress, signal } = readOptions(options, ['by', 'onProgress', 'signal'], what);
    const found = await this.#find(id, what);
    if (!(changeActions as readonly string[]).includes(found.action)) {
      throw unexpected(what, `an operation that is one of ${changeActions.join(', ')}`, found.action);
    }
    if (found.state === 'done') return found;
    const { selection, options: chosen } = found;
    const rate = chosen?.rate ?? null;
    const done: BulkResult = await runBulk(this.#store, this.#clock, {
      action: found.action as ChangeAction,
      selection,
      order: JSON.stringify([selection, null]),
      continues: found.endedAt === null ? found.id : undefined,
      by: checkName(by, `${what}: by`),
      what,
      rate,
      intervalMs: rate === null ? 0 : readInterval(rate, what),
      keepAttempts: chosen?.keepAttempts ?? false,
      payload: undefined,
      canary: chosen?.canary ?? 0,
      canaryTimeoutMs: parseDuration(CANARY_TIMEOUT, what),
      signal,
      onProgress,
    });
    return done.operation ?? found;
  }

  /** By its id, or by how the id begins when only one does. */
  async #find(id: string, what: string): Promise<Operation> {
    const asked = checkName(id, `${what}: id`);
    const found = (await this.#store.operations(LARGEST_PAGE)).filter((operation) => operation.id.startsWith(asked));
    if (found.length > 1) throw unexpected(what, 'the beginning of one id', asked, `${found.length} begin with it.`);
    if (found[0] === undefined) throw unknownName(what, 'the id of an operation', asked, 'See audit.list.');
    return found[0];
  }
}
