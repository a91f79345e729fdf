import pg from 'pg';
import { expect, inject, it } from 'vitest';
import { newSchema, runSql } from '../../../test/support/postgres-schema.ts';
import { enqueueOne, retryIn, settleOne, startOne } from '../conformance/builders.ts';
import { plain } from './connection/arrays.ts';
import { functions } from './schema/functions.ts';
import { ARRIVED, ENDED, LANES, UPCOMING } from './sql/forecast.ts';
import { BY_INDEX } from './sql/shared.ts';
import { PostgresStore } from './store.ts';

const url = inject('postgresUrl');
/** MULLIGAN_FUZZ=all for the whole size. */
const MANY = process.env.MULLIGAN_FUZZ === 'all' ? 1_000_000 : 60_000;
const ROWS = 6_000;

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

function nodes(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)];
}

/** Copies of the newest live job, due from five minutes ago until an hour from now. */
const COPIES = `
  INSERT INTO @.live SELECT r.*
  FROM (SELECT to_jsonb(n) AS job FROM (SELECT * FROM @.live ORDER BY id DESC LIMIT 1) n) l
  CROSS JOIN generate_series(1, $2::bigint) i
  CROSS JOIN LATERAL jsonb_populate_record(NULL::@.live, l.job || jsonb_build_object(
    'id', gen_random_uuid(), 'due_at', $1::bigint - 300000 + i * 3900000 / $2::bigint)) r`;

async function connected(settings: string): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(settings);
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

it('a forecast reads indexes, and a bounded number of rows of them, however many jobs wait', async () => {
  const schema = newSchema();
  const store = await PostgresStore.open({ url, schema, wakeUps: false });
  const sql = (text: string): string => functions.resolve(text, schema);
  try {
    const job = await startOne(store, { name: 'a', resource: 'smtp' });
    await settleOne(store, job, retryIn(60_000));
    const { now } = await store.forecast({ rows: ROWS });
    await runSql(url, sql(COPIES), [now, MANY]);
    await enqueueOne(store, { queue: 'other' });
    await runSql(url, `ANALYZE ${schema}.live, ${schema}.partitions`);

    const partitions = plain(
      (await runSql(url, `SELECT id FROM ${schema}.partitions`)).map((row) => (row as { id: string }).id),
    );
    const statements: [string, unknown[]][] = [
      [LANES, [partitions, now, ROWS, 100]],
      [UPCOMING, [partitions, now, 50]],
      [ENDED, [now - 300_000, null]],
      [ARRIVED, [now - 300_000, null, now]],
    ];
    // As in the functions.
    await using client = await connected(`SET search_path = ${schema}; ${BY_INDEX.replaceAll(' SET ', '; SET ')}`);
    for (const [text, values] of statements) {
      const {
        rows: [row],
      } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values);
      const [{ Plan: plan }] = (row as { 'QUERY PLAN': [{ Plan: Plan }] })['QUERY PLAN'];
      const ofJobs = nodes(plan).filter((node) => node['Relation Name'] === 'live');
      for (const node of ofJobs) {
        expect(node['Node Type'], text).toMatch(/^Index/);
        const read = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
        // What arrived is measured by 10,000 jobs.
        expect(read, text).toBeLessThanOrEqual(12_000);
      }
    }

    const { lanes, upcoming } = await store.forecast({ rows: ROWS });
    const perMinute = (MANY * 60) / 3_900;
    expect(lanes).toMatchObject([
      { queue: 'default', lane: 'retry', due: { isExact: MANY / 13 < 3_000 }, later: { isExact: false } },
      { queue: 'other', lane: 'fresh', due: { count: 1, isExact: true } },
    ]);
    expect(upcoming.length).toBeGreaterThanOrEqual(59);
    for (const { expected, isExact } of upcoming.slice(0, 58)) {
      expect(isExact).toBe(false);
      expect(Math.abs(expected / perMinute - 1)).toBeLessThan(0.1);
    }
  } finally {
    await store.close();
    await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
  }
});
