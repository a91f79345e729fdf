import type { Clock } from './clock.ts';
import { checkName } from './config.ts';
import { operatorName } from './operator.ts';
import type { RecordedAction } from './store/change.ts';
import type { JobSelection, Store } from './store/store.ts';

/** Who gave an order. */
export interface OrderOptions {
  /** For the audit. Default: user@host of this process. */
  readonly by?: string;
}

/**
 * Leaves an order that concerns no jobs on record, once it was carried out. `note` says what was ordered.
 */
export type Audit = (action: RecordedAction, note: string, by: string, selection?: JobSelection) => Promise<void>;

const LONGEST_NOTE = 1_000;

export function auditTo(store: Pick<Store, 'change'>, clock: Clock): Audit {
  return async (action, note, by, selection = {}) => {
    const id = clock.newId();
    const nothing = { part: 0, intervalMs: 0, keepAttempts: false, canary: 0 };
    const stop = note.slice(0, LONGEST_NOTE).toWellFormed();
    // Each is an order of its own, so none continues another.
    await store.change({ ...nothing, id, order: id, action, by, selection, stop });
  };
}

export function readOperator(by: string | undefined, what: string): string {
  return by === undefined ? operatorName() : checkName(by, `${what}: by`);
}
