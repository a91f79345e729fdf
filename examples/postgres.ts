// PostgreSQL: a job is stored in the transaction that it is about, and completed in the transaction of what it writes.
// It needs a server: DATABASE_URL=postgres://user:password@localhost/database node examples/postgres.ts

import { defineJob, Mulligan } from 'mulligan';
import { PostgresStore } from 'mulligan/postgres';
import pg from 'pg';

const url = process.env.DATABASE_URL;
if (!url) throw new Error('expected DATABASE_URL, such as postgres://user:password@localhost/database');

const schema = `mulligan_example_${process.pid}`; // removed at the end; usually left at its default, mulligan
const pool = new pg.Pool({ connectionString: url });

const charge = defineJob<{ order: number }>({
  name: 'order.charge',
  retry: { backoff: { kind: 'fixed', base: '50ms' } },
  async run({ order }, context) {
    await context.transaction(async (tx) => {
      await tx.query(`UPDATE ${schema}.orders SET paid = paid + 1 WHERE id = $1`, [order]);
      if (context.attempt === 1) throw new Error('the connection broke'); // and the UPDATE with it
    });
  },
});

async function placeOrder(mulligan: Mulligan, order: number, wantsIt: boolean): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query(`INSERT INTO ${schema}.orders VALUES ($1, 0)`, [order]);
    await mulligan.enqueue(charge, { order }, { tx: client });
    await client.query(wantsIt ? 'COMMIT' : 'ROLLBACK');
  } finally {
    client.release();
  }
}

await pool.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.orders (id int PRIMARY KEY, paid int NOT NULL)`);
try {
  await using mulligan = await Mulligan.open(await PostgresStore.open({ pool, schema }), { jobs: [charge] });
  await placeOrder(mulligan, 1, true);
  await placeOrder(mulligan, 2, false);

  const completed = new Promise((resolve) => mulligan.on('completed', resolve));
  mulligan.work({ poll: '100ms' });
  await completed;

  const { rows } = await pool.query(`SELECT id, paid FROM ${schema}.orders`);
  console.log('orders:', JSON.stringify(rows)); // one order, paid once, though it was tried twice
  for (const { id } of await mulligan.jobs.list()) {
    for (const { run, outcome } of await mulligan.jobs.runs(id)) console.log(`run ${run} ${outcome}`);
  }
} finally {
  await pool.query(`DROP SCHEMA ${schema} CASCADE`);
  await pool.end();
}
