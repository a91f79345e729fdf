import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { newSchema, runSql } from '../../../test/support/postgres-schema.ts';
import { defineJob, JobCancelledError, JobDeadError, Mulligan, Unrecoverable } from '../../index.ts';
import { claimOne, complete, enqueueOne, newJob, pruneWith, settlement } from '../conformance/builders.ts';
import { type PostgresOptions, PostgresStore } from './store.ts';

/* Each store here is what a process has: they share nothing but the database. */
const url = inject('postgresUrl');
const schema = newSchema();

beforeAll(() => runSql(url, `CREATE SCHEMA ${schema}`));
afterAll(() => runSql(url, `DROP SCHEMA ${schema} CASCADE`));

async function store(options: PostgresOptions = {}): Promise<PostgresStore & AsyncDisposable> {
  const opened = await PostgresStore.open({ url, schema, ...options });
  return Object.assign(opened, { [Symbol.asyncDispose]: () => opened.close() });
}

async function emptied(): Promise<void> {
  await runSql(url, `TRUNCATE ${schema}.live, ${schema}.finished, ${schema}.waits`);
}

async function waitsRows(): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return Number((await client.query(`SELECT count(*) FROM ${schema}.waits`)).rows[0].count);
  } finally {
    await client.end();
  }
}

/** Notifications only reach a connection that listens by then. */
async function listening(own: PostgresStore, sender: PostgresStore): Promise<void> {
  const heard = Promise.withResolvers<void>();
  const unsubscribe = own.onWork(() => heard.resolve());
  let isHeard = false;
  void heard.promise.then(() => {
    isHeard = true;
  });
  while (!isHeard) {
    await enqueueOne(sender, { queue: 'knock' });
    await Promise.race([heard.promise, new Promise((resolve) => setImmediate(resolve))]);
  }
  unsubscribe();
  await emptied();
}

function told(own: PostgresStore, change: 'ended' | 'cancelling', id: string): Promise<void> {
  return new Promise((resolve) => {
    const unsubscribe = own.onJobs({
      [change]: (ids: readonly string[]) => {
        if (!ids.includes(id)) return;
        unsubscribe();
        resolve();
      },
    });
  });
}

const half = defineJob({
  name: 'half',
  run(n: number) {
    if (n < 0) throw new Unrecoverable('negative');
    return { half: n / 2 };
  },
});

describe('jobs that another process ends', () => {
  it('are told when they are watched, and are watched no longer', async () => {
    await using waiting = await store();
    await using working = await store();
    await listening(waiting, working);
    const ids = [await enqueueOne(working), await enqueueOne(working)];
    const jobs = [await claimOne(working), await claimOne(working)];
    const heard = ids.map((id) => told(waiting, 'ended', id));
    expect(await waiting.ended(ids, 60_000)).toEqual([]);
    expect(await waitsRows()).toBe(2);
    await working.settle(jobs.map((job) => settlement(job, complete)));
    await Promise.all(heard);
    expect(await waitsRows()).toBe(0);
  });

  it('are told by the hundreds in a few notifications', async () => {
    await using waiting = await store();
    await using working = await store();
    await listening(waiting, working);
    const ids = (await working.enqueue(Array.from({ length: 1_000 }, () => newJob()))).map(({ id }) => id);
    expect(await waiting.ended(ids, 60_000)).toEqual([]);
    const missing = new Set(ids);
    const all = Promise.withResolvers<void>();
    waiting.onJobs({
      ended: (some) => {
        for (const id of some) missing.delete(id);
        if (missing.size === 0) all.resolve();
      },
    });
    await working.cancel(ids);
    await all.promise;
  });

  it('are missed while the connection is cut, which is told once it is there again', async () => {
    await using waiting = await store();
    await using working = await store();
    const missed = Promise.withResolvers<void>();
    waiting.onJobs({ missed: () => missed.resolve() });
    await listening(waiting, working);
    await runSql(
      url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query = 'LISTEN mulligan_${schema}'`,
    );
    await missed.promise;
  });

  it('stop when another process cancels them', async () => {
    await using working = await store();
    await using operating = await store();
    await listening(working, operating);
    const id = await enqueueOne(working);
    await claimOne(working);
    const heard = told(working, 'cancelling', id);
    expect(await operating.cancel([id])).toEqual([{ id, result: 'cancelling' }]);
    await heard;
  });

  it('are forgotten by a prune once no process waits for them any more', async () => {
    await using own = await store();
    await own.ended([await enqueueOne(own)], -1_000);
    expect(await waitsRows()).toBe(1);
    await pruneWith(own, { completedMs: null, deadMs: null, cancelledMs: null }, 10);
    expect(await waitsRows()).toBe(0);
    await emptied();
  });
});

describe('a job enqueued in a transaction', () => {
  const pool = new pg.Pool({ connectionString: url, max: 3 });
  afterAll(() => pool.end());

  async function heardAfterCommit(options: PostgresOptions): Promise<boolean> {
    await using working = await store();
    await using producing = await store(options);
    await listening(working, producing);
    const client = await pool.connect();
    try {
      let isHeard = false;
      const heard = Promise.withResolvers<void>();
      await client.query('BEGIN');
      await producing.transactions.enqueue(client, [newJob(), newJob()]);
      await producing.transactions.enqueue(client, [newJob()]);
      const unsubscribe = working.onWork(() => {
        isHeard = true;
        heard.resolve();
      });
      await working.stats();
      expect(isHeard).toBe(false);
      await client.query('COMMIT');
      // A notification of our own comes after those that were sent before it.
      await told(working, 'cancelling', await fence(working, producing));
      unsubscribe();
      return isHeard;
    } finally {
      client.release();
      await emptied();
    }
  }

  /** The id of a job whose cancel is notified from now on. */
  async function fence(working: PostgresStore, producing: PostgresStore): Promise<string> {
    await working.claim({ worker: 'w', leaseMs: 60_000, limit: 100, queues: [] });
    const job = await claimOne(working);
    setImmediate(() => void producing.cancel([job.id]));
    return job.id;
  }

  it('is notified of when the transaction is committed, and not before', async () => {
    expect(await heardAfterCommit({})).toBe(true);
  });

  it('is left to polling when that is turned off', async () => {
    expect(await heardAfterCommit({ wakeUpsInTransactions: false })).toBe(false);
  });
});

describe('results across processes', () => {
  it.each<[string, PostgresOptions]>([
    ['that notify each other', {}],
    ['that cannot listen, as behind PgBouncer', { wakeUps: false }],
  ])('reach a process that waits, between processes %s', async (_, options) => {
    await using producer = await Mulligan.open(await store(options), { jobs: [half], log: () => {} });
    await using consumer = await Mulligan.open(await store(options), { jobs: [half], log: () => {} });
    const enqueued = await producer.enqueueMany(half, [{ input: 8 }, { input: 10 }]);
    const results = enqueued.map((one) => producer.result(one, { timeout: '30s' }));
    consumer.work({ poll: '50ms' });
    expect(await Promise.all(results)).toEqual([{ half: 4 }, { half: 5 }]);
    const dead = await producer.result(await producer.enqueue(half, -1)).catch((error: unknown) => error);
    expect(dead).toBeInstanceOf(JobDeadError);
    expect((dead as Error).cause).toMatchObject({ message: 'negative' });
    const cancelled = await producer.enqueue(half, 1, { delay: '1h' });
    const waiting = producer.result(cancelled).catch((error: unknown) => error);
    await consumer.jobs.cancel(cancelled.id);
    expect(await waiting).toBeInstanceOf(JobCancelledError);
    await emptied();
  });

  it('are what the transaction of the run returned, when that completed the job', async () => {
    const job = defineJob({
      name: 'in a transaction',
      async run(_: null, context) {
        context.progress('nearly');
        return context.transaction(async (tx) => (await tx.query('SELECT 7 AS n', [])).rows);
      },
    });
    await using mulligan = await Mulligan.open(await store(), { jobs: [job], log: () => {} });
    mulligan.work();
    const enqueued = await mulligan.enqueue(job, null);
    expect(await mulligan.result(enqueued)).toEqual([{ n: 7 }]);
    expect((await mulligan.jobs.get(enqueued.id))?.progress).toBe('nearly');
    await emptied();
  });
});
