import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { newSchema, runSql } from '../../../../test/support/postgres-schema.ts';
import { defineJob, Mulligan } from '../../../index.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { claimRequest } from '../../conformance/builders.ts';
import { PostgresStore } from '../index.ts';

/*
 * A process that has sent too many notifications leaves the NOTIFY out of its callers' transactions. In these tests five
 * transactions that roll back use up the limit, and timers of the producer's store fire only when a test moves its clock.
 */
const url = inject('postgresUrl');
const schema = newSchema();
const BURST = 20;
const NOTIFICATIONS_AT_ONCE = 5;
/** Only to end what hangs: a worker that is not notified polls an hour later. */
const timeout = 30_000;
const pool = new pg.Pool({ connectionString: url, max: BURST });

beforeAll(() => runSql(url, `CREATE SCHEMA ${schema}`));
afterAll(async () => {
  await pool.end();
  await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
});

interface Run {
  readonly inputs: number[];
  readonly complete: Promise<void>;
}

/** Works off the burst on this store; `complete` is when all of its jobs have run. */
async function workOn(store: PostgresStore): Promise<Mulligan & { readonly run: Run }> {
  const { promise: complete, resolve } = Promise.withResolvers<void>();
  const inputs: number[] = [];
  const job = defineJob({
    name: 'burst',
    run(n: number) {
      inputs.push(n);
      if (inputs.length === BURST) resolve();
    },
  });
  const mulligan = await Mulligan.open(store, { jobs: [job], log: () => {} });
  mulligan.work({ poll: '1h' });
  return Object.assign(mulligan, { run: { inputs, complete } });
}

/** Resolves with the next wake-up of this store. */
function woken(store: PostgresStore): Promise<void> {
  return new Promise((resolve) => {
    const unsubscribe = store.onWork(() => {
      unsubscribe();
      resolve();
    });
  });
}

/** Notifications only reach a connection that listens by then. */
async function listens(store: PostgresStore): Promise<void> {
  let isListening = false;
  void woken(store).then(() => {
    isListening = true;
  });
  while (!isListening) await runSql(url, 'SELECT pg_notify($1, $2)', [`mulligan_${schema}`, 'knock']);
}

/** Transactions that have enqueued one job each, and are open. */
async function enqueueAtOnce(producer: Mulligan, count: number): Promise<pg.PoolClient[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const client = await pool.connect();
      await client.query('BEGIN');
      await producer.enqueue('burst', n, { tx: client });
      return client;
    }),
  );
}

async function end(transactions: readonly pg.PoolClient[], how: 'COMMIT' | 'ROLLBACK'): Promise<void> {
  for (const client of transactions) {
    await client.query(how);
    client.release();
  }
}

async function burst(producer: Mulligan): Promise<pg.PoolClient[]> {
  await end(await enqueueAtOnce(producer, NOTIFICATIONS_AT_ONCE), 'ROLLBACK');
  return enqueueAtOnce(producer, BURST);
}

const everyInput = Array.from({ length: BURST }, (_, n) => n);
const byNumber = (a: number, b: number): number => a - b;

describe('jobs of a burst of transactions without a NOTIFY', () => {
  it('are claimed by another process although they commit after its first wake-up', { timeout }, async () => {
    const clock = new VirtualClock();
    const worker = await PostgresStore.open({ url, schema });
    const producer = await Mulligan.open(await PostgresStore.open({ url, schema, clock }), { jobs: [], log: () => {} });
    await listens(worker);
    const transactions = await burst(producer);
    const tooEarly = woken(worker);
    await clock.advance(10);
    await tooEarly;
    await end(transactions, 'COMMIT');
    const inTime = woken(worker);
    await clock.advance(100);
    await inTime;
    const { jobs } = await worker.claim(claimRequest({ limit: 100 }));
    expect(jobs).toHaveLength(BURST);
    await runSql(url, `TRUNCATE ${schema}.live`);
    await producer.close();
    expect(clock.pending).toBe(0);
    await worker.close();
  });

  it('are run by the process that enqueued them', { timeout }, async () => {
    const clock = new VirtualClock();
    const store = await PostgresStore.open({ url, schema, clock });
    await using mulligan = await workOn(store);
    await listens(store);
    const transactions = await burst(mulligan);
    await end(transactions, 'COMMIT');
    await clock.advance(100);
    await mulligan.run.complete;
    expect(mulligan.run.inputs.toSorted(byNumber)).toEqual(everyInput);
  });

  it('are run by another process when the producer closes right after the COMMIT', { timeout }, async () => {
    const clock = new VirtualClock();
    const workersStore = await PostgresStore.open({ url, schema });
    await using worker = await workOn(workersStore);
    await listens(workersStore);
    const producer = await Mulligan.open(await PostgresStore.open({ url, schema, clock }), { jobs: [], log: () => {} });
    await end(await burst(producer), 'COMMIT');
    await producer.close();
    expect(clock.pending).toBe(0);
    await worker.run.complete;
    expect(worker.run.inputs.toSorted(byNumber)).toEqual(everyInput);
  });
});
