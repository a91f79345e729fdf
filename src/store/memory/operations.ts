import type { ChangeRequest, Operation } from '../change.ts';
import type { OrderRow } from '../orders.ts';
import { kept, type OperationRow } from './row.ts';
import type { MemoryState } from './state.ts';

/* The rows of bulk actions and orders: who ordered what, and how far it has come. */

type Begun = Pick<ChangeRequest, 'id' | 'action' | 'order' | 'selection' | 'by' | 'options'>;

export function newOperation({ id, action, order, selection, by, options }: Begun, now: number): OperationRow {
  return {
    id,
    action,
    order,
    by,
    selection: kept(selection),
    options: options ?? null,
    state: 'running',
    startedAt: now,
    updatedAt: now,
    endedAt: null,
    changed: 0,
    skipped: 0,
    canary: [],
    note: null,
    cursor: null,
    nextDueAt: 0,
  };
}

/** An order that was carried out just now. */
export function record(state: MemoryState, { id, action, by, selection, note, changed }: OrderRow, now: number): void {
  if (state.operations.has(id)) return;
  const row = newOperation({ id, action, order: id, selection, by }, now);
  end(row, 'done', now, note);
  row.changed = changed;
  state.operations.set(id, row);
}

export function end(operation: OperationRow, state: 'done' | 'stopped', now: number, note: string | null): void {
  Object.assign(operation, { state, endedAt: now, updatedAt: now, note });
}

export function operations(state: MemoryState, limit: number): Operation[] {
  return [...state.operations.values()].reverse().slice(0, limit).map(toOperation);
}

export function toOperation({ cursor: _cursor, order: _order, ...operation }: OperationRow): Operation {
  return kept(operation);
}
