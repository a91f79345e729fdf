import { states } from '../../job.ts';
import { STATE } from '../codes.ts';
import { orderRow } from '../orders.ts';
import type { Order, RetentionRule, RetentionWrite } from '../store.ts';
import { orderValues, recordOrder } from './orders.ts';
import type { Session } from './session.ts';

const READ = 'SELECT name, state, is_code, kept_ms FROM @.retention';

type RuleRow = [name: string, state: number, isCode: boolean, keptMs: number | null];

export async function retention({ db }: Session): Promise<RetentionRule[]> {
  const rows = await db.read<RuleRow>(READ, []);
  return rows.map(([name, state, isCode, keptMs]) => ({
    name: name === '' ? null : name,
    state: states[state] as RetentionRule['state'],
    source: isCode ? 'code' : 'set',
    keptMs,
  }));
}

/** All rules in one transaction, and the row of the order with them. */
const WRITE = `
  WITH w AS MATERIALIZED (
    SELECT @.write_retention(g.n, g.s, g.c, g.k, g.r)
    FROM json_to_recordset($1::json) AS g (n text, s smallint, c boolean, k bigint, r boolean))`;
const WRITE_OF_CODE = `${WRITE} SELECT count(*) FROM w`;
const WRITE_BY_ORDER = `${WRITE} SELECT ${recordOrder(2, '0 * (SELECT count(*) FROM w)')}`;

export async function writeRetention({ db }: Session, writes: readonly RetentionWrite[], order?: Order): Promise<void> {
  const rules = writes.map(({ name, state, source, keptMs }) => {
    return { n: name ?? '', s: STATE[state], c: source === 'code', k: keptMs ?? null, r: keptMs === undefined };
  });
  // Of several processes that write the same rules, none may wait for a row of another in another order.
  const inOrder = JSON.stringify(rules.toSorted((a, b) => (a.n < b.n ? -1 : Number(a.n > b.n)) || a.s - b.s));
  if (order === undefined) await db.query(WRITE_OF_CODE, [inOrder]);
  else await db.query(WRITE_BY_ORDER, [inOrder, ...orderValues(orderRow(order, 'retention'))]);
}
