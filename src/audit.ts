import type { Clock } from './clock.ts';
import { checkName } from './config.ts';
import { operatorName } from './operator.ts';
import type { Order } from './store/store.ts';

/** Who gave an order. */
export interface OrderOptions {
  /** For the audit. Default: user@host of this process. */
  readonly by?: string;
}

export const LONGEST_NOTE = 1_000;

/** Each order is one of its own. `note` says what was ordered. */
export function newOrder(clock: Clock, by: string, note: string | null): Order {
  return { id: clock.newId(), by, note: note === null ? null : note.slice(0, LONGEST_NOTE).toWellFormed() };
}

export function readOperator(by: string | undefined, what: string): string {
  return by === undefined ? operatorName() : checkName(by, `${what}: by`);
}
