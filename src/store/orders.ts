import type { ChangeAction, Order, RecordedAction } from './change.ts';
import type { JobSelection } from './selection.ts';
import type { CancelAnswer, HoldTarget } from './store.ts';

/*
 * Orders of operators by verbs that are no bulk actions: each leaves a row among the operations, done, in the transaction
 * that carries it out. A write that failed left neither; an order that is sent again under its id leaves no second row.
 */

/** The row that an order leaves. */
export interface OrderRow extends Order {
  readonly action: ChangeAction | RecordedAction;
  readonly selection: JobSelection;
  /** How many jobs it changed. */
  readonly changed: number;
}

/** An order that concerns no jobs. */
export function orderRow(order: Order, action: RecordedAction, selection: JobSelection = {}): OrderRow {
  return { ...order, action, selection, changed: 0 };
}

/** Only the name of a queue is a condition of jobs. */
export function holdRow(order: Order, action: 'pause' | 'resume', target: HoldTarget): OrderRow {
  return orderRow(order, action, 'queue' in target ? { queue: target.queue } : {});
}

export function cancelRow(order: Order, answers: readonly CancelAnswer[]): OrderRow {
  const ids = answers.map(({ id }) => id);
  const changed = answers.filter(({ result }) => result === 'cancelled' || result === 'cancelling').length;
  return { ...order, action: 'cancel', selection: { ids }, changed };
}
