import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { newSchema, runSql } from '../../../../test/support/postgres-schema.ts';
import { defineJob, type JobContext, Mulligan } from '../../../index.ts';
import { claimRequest, complete, newJob, settlement } from '../../conformance/builders.ts';
import type { TransactionClient } from '../../store.ts';
import { PostgresStore } from '../store.ts';

const url = inject('postgresUrl');

describe('a pool of the caller', () => {
  it.each([1, 2, 3])('with room for %i is refused: statements would wait for each other for ever', async (max) => {
    const pool = new pg.Pool({ connectionString: url, max });
    await expect(PostgresStore.open({ pool })).rejects.toThrow(
      /^PostgreSQL: pool: expected a max of at least 4 connections, /,
    );
    await pool.end();
  });

  it('gets no prepared statements: a pooler may stand before the server', async () => {
    const schema = newSchema();
    const pool = new pg.Pool({ connectionString: url, max: 4 });
    const store = await PostgresStore.open({ pool, schema });
    await store.enqueue([newJob()]);
    const { jobs } = await store.claim(claimRequest());
    await store.settle(jobs.map((job) => settlement(job, complete)));
    await store.close();
    const sessions = await Promise.all([1, 2, 3, 4].map(() => pool.connect()));
    for (const session of sessions) {
      expect((await session.query('SELECT name FROM pg_prepared_statements')).rows).toEqual([]);
      session.release();
    }
    await pool.end();
    await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
  });

  it('is left as it was when the store is closed', async () => {
    const schema = newSchema();
    const pool = new pg.Pool({ connectionString: url, max: 4 });
    await (await PostgresStore.open({ pool, schema })).close();
    expect(pool.listenerCount('error')).toBe(0);
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await pool.end();
    await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
  });
});

describe('poolOptions beside a pool of the caller', () => {
  it('are refused: they would have no effect', async () => {
    const pool = new pg.Pool({ connectionString: url });
    await expect(PostgresStore.open({ pool, poolOptions: { max: 20 } })).rejects.toThrow(
      'PostgreSQL: expected poolOptions beside a url, got one beside a pool, which has options of its own; leave it out.',
    );
    await pool.end();
  });
});

describe('a pool that is made for a url', () => {
  it.each([0, 1, 2])('with room for %i is refused: a handler would wait for itself', async (max) => {
    await expect(PostgresStore.open({ url, poolOptions: { max } })).rejects.toThrow(
      /^PostgreSQL: poolOptions.max: expected a whole number of at least 3, /,
    );
  });
});

describe('handlers in a transaction, more than a pool of the caller has connections', () => {
  const COUNT = 12;
  const patient = { timeout: 30_000 };
  const schema = newSchema();
  afterEach(() => runSql(url, `DROP SCHEMA ${schema} CASCADE`));

  async function leaseEnd(tx: TransactionClient, id: string): Promise<unknown> {
    const { rows } = await tx.query(`SELECT lease_ends_at FROM ${schema}.live WHERE id = $1`, [id]);
    return (rows as { lease_ends_at: unknown }[])[0]?.lease_ends_at;
  }

  /** Runs jobs at once until they complete, while another process looks for leases that are not extended. */
  async function workOff(
    max: number,
    run: (context: JobContext, mulligan: Mulligan) => Promise<unknown>,
  ): Promise<void> {
    const pool = new pg.Pool({ connectionString: url, max });
    const job = defineJob({ name: 'job', retry: { maxAttempts: 1 }, run: (_: null, ctx) => run(ctx, mulligan) });
    const store = await PostgresStore.open({ pool, schema });
    const mulligan: Mulligan = await Mulligan.open(store, { jobs: [job], log: () => {} });
    const other = await Mulligan.open(await PostgresStore.open({ url, schema }), { log: () => {} });
    other.work({ queues: ['nothing'], lease: '1s' });
    await other.enqueueMany(
      job,
      Array(COUNT)
        .fill(null)
        .map((input) => ({ input })),
    );
    mulligan.work({ queues: ['default'], concurrency: COUNT, lease: '2s' });
    const runs = async (): Promise<Record<string, number>> => (await other.stats()).totals.runs;
    await expect
      .poll(async () => Object.values(await runs()).reduce((sum, count) => sum + count), { timeout: 20_000 })
      .toBe(COUNT);
    // Before anything is closed: a call that waits for a connection without end would keep it open.
    expect(await runs()).toMatchObject({ completed: COUNT, crashed: 0, failed: 0 });
    await mulligan.close();
    await other.close();
    await pool.end();
  }

  it.each([4, 10])('leave room for heartbeats, with room for %i', patient, async (max) => {
    await workOff(max, (context) =>
      context.transaction(async (tx) => {
        // Until a heartbeat has extended the lease.
        const first = await leaseEnd(tx, context.job.id);
        while ((await leaseEnd(tx, context.job.id)) === first) {
          context.signal.throwIfAborted();
          await sleep(20);
        }
      }),
    );
  });

  it.each([4, 5, 10])('may enqueue in there, with room for %i', patient, async (max) => {
    await workOff(max, (context, mulligan) =>
      context.transaction(async (tx) => {
        await mulligan.enqueue(`new in the transaction ${context.job.id}`, null, { tx, queue: 'later' });
        await mulligan.enqueue(`new beside it ${context.job.id}`, null, { queue: 'later' });
      }),
    );
  });
});
