import type { OrderRow } from '../orders.ts';

/** What `record_order` (sql/change.ts) takes, but for the number of jobs; nulls for no order. */
export type OrderValues = [
  id: string | null,
  action: string | null,
  by: string | null,
  selection: string | null,
  note: string | null,
];

const NO_ORDER: OrderValues = [null, null, null, null, null];

export function orderValues(row: Omit<OrderRow, 'changed'> | null): OrderValues {
  return row === null ? NO_ORDER : [row.id, row.action, row.by, JSON.stringify(row.selection), row.note];
}

/** The call of `record_order` whose values begin with the parameter of this number. `changed` is SQL. */
export function recordOrder(first: number, changed = '0'): string {
  const [id, action, by, selection, note] = [0, 1, 2, 3, 4].map((at) => `$${first + at}`);
  return `@.record_order(${id}::uuid, ${action}, ${by}, ${selection}, ${note}, ${changed})`;
}
