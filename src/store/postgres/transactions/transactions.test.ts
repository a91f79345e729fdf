import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import knex from 'knex';
import { Kysely, sql as kyselySql, PostgresDialect } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { newSchema, runSql } from '../../../../test/support/postgres-schema.ts';
import { type AnyJobDefinition, ConfigError, defineJob, type JobContext, Mulligan } from '../../../index.ts';
import { claimRequest, newJob, quota } from '../../conformance/builders.ts';
import type { TransactionClient } from '../../store.ts';
import { drizzleTx, knexTx, kyselyTx, PostgresStore, prismaTx } from '../index.ts';

const url = inject('postgresUrl');
const schema = newSchema();
const pool = new pg.Pool({ connectionString: url, max: 5 });

beforeAll(() => runSql(url, `CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.effects (text text)`));
afterAll(async () => {
  await pool.end();
  await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
});

async function open(jobs: AnyJobDefinition[] = []): Promise<Mulligan> {
  return Mulligan.open(await PostgresStore.open({ pool, schema }), { jobs, log: () => {} });
}

async function effects(): Promise<string[]> {
  return (await pool.query(`SELECT text FROM ${schema}.effects ORDER BY text`)).rows.map(({ text }) => text);
}

async function connected(): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

async function inTransaction<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

describe('a job that is to run now, as a transaction says', () => {
  it('runs once the transaction is committed, also one that it has enqueued itself, and the order is on record', async () => {
    await using mulligan = await open();
    const later = await mulligan.enqueue('ordered', 1, { delay: '1h' });
    const result = await inTransaction(async (tx) => {
      const own = await mulligan.enqueue('ordered', 2, { tx, delay: '1h' });
      const answer = await mulligan.jobs.runNow({ ids: [later.id, own.id, 'unknown'], tx, by: 'ann' });
      expect(await mulligan.jobs.get(later.id)).toMatchObject({ state: 'scheduled' });
      return { ...answer, own };
    });
    expect(result.ids.toSorted()).toEqual([later.id, result.own.id].toSorted());
    expect(result).toMatchObject({ count: 2, others: [{ id: 'unknown', state: 'not-found' }], stopped: null });
    for (const { id } of [later, result.own]) expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'ready' });
    const operations = await mulligan.audit.list();
    expect(operations.find(({ id }) => id === result.operation?.id)).toEqual(result.operation);
    expect(result.operation).toMatchObject({ action: 'runNow', by: 'ann', state: 'done', changed: 2 });
  });

  it('stays as it was when the transaction is rolled back, and nothing is on record', async () => {
    await using mulligan = await open();
    const { id } = await mulligan.enqueue('not ordered', 1, { delay: '1h' });
    const rolledBack = inTransaction(async (tx) => {
      await mulligan.jobs.runNow({ ids: [id], tx, by: 'nobody' });
      throw new Error('changed my mind');
    });
    await expect(rolledBack).rejects.toThrow('changed my mind');
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'scheduled' });
    expect((await mulligan.audit.list()).filter(({ by }) => by === 'nobody')).toEqual([]);
  });

  it.each([
    ['while the job runs', 'running'],
    ['before the job starts', 'ready'],
  ])('is not slept through, whose run cannot see what the transaction has written: %s', async (_, when) => {
    const run = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const waiting = defineJob<string>({
      name: `waits for a row ${when}`,
      queue: `approvals ${when}`,
      resource: false,
      async run(text, { snooze }) {
        const { rowCount } = await pool.query(`SELECT FROM ${schema}.effects WHERE text = $1`, [text]);
        started.resolve();
        if (rowCount === 0) {
          await run.promise;
          snooze('1h');
        }
      },
    });
    await using mulligan = await open([waiting]);
    const enqueued = await mulligan.enqueue(waiting, when);
    if (when === 'running') {
      mulligan.work({ queues: [waiting.queue] });
      await started.promise;
    }
    await inTransaction(async (tx) => {
      await tx.query(`INSERT INTO ${schema}.effects VALUES ($1)`, [when]);
      await mulligan.jobs.runNow({ ids: [enqueued.id], tx });
      run.resolve();
      if (when !== 'ready') return;
      const worker = mulligan.work({ queues: [waiting.queue] });
      await worker.whenIdle();
    });
    expect(await mulligan.result(enqueued)).toBeUndefined();
    await pool.query(`DELETE FROM ${schema}.effects WHERE text = $1`, [when]);
  });

  it('behind a resource is found although its partition is left alone, also by a strict transaction', async () => {
    const store = await PostgresStore.open({ pool, schema });
    const resources = Array.from({ length: 100 }, (_, index) => `many/${index}`);
    const jobs = resources.map((resource) => newJob({ queue: 'parked', resource, delayMs: 3_600_000 }));
    await store.enqueue(jobs);
    const parkAll = async (): Promise<string[]> => {
      const found: string[] = [];
      for (let claims = 0; claims < 5; claims++) {
        const { jobs: claimed } = await store.claim(claimRequest({ queues: [quota({ queue: 'parked' })] }));
        found.push(...claimed.map(({ id }) => id));
      }
      return found;
    };
    for (const [index, begin] of ['BEGIN', 'BEGIN ISOLATION LEVEL REPEATABLE READ'].entries()) {
      expect(await parkAll()).toEqual([]);
      const { id } = jobs[index] as { id: string };
      await using client = await connected();
      await client.query(begin);
      const order = { id: randomUUID(), order: id, by: 'test', ids: [id] };
      expect(await store.transactions.runNow(client, order)).toMatchObject({ ids: [id] });
      await client.query('COMMIT');
      expect(await parkAll()).toEqual([id]);
    }
    await store.close();
  });

  it('needs ids, a client in a transaction, and a store that shares its database', async () => {
    await using mulligan = await open();
    await using memory = await Mulligan.open('memory:', { log: () => {} });
    const { id } = await mulligan.enqueue('refused', 1, { delay: '1h' });
    await inTransaction(async (tx) => {
      await expect(mulligan.jobs.runNow({ name: 'refused', tx })).rejects.toThrow(
        'jobs.runNow: tx: expected ids, and none of the other options but by, got name. Without tx, it takes any selection.',
      );
      await expect(mulligan.jobs.runNow({ ids: [id], rate: '5/s', tx })).rejects.toThrow(/expected ids, and none/);
      await expect(memory.jobs.runNow({ ids: [id], tx })).rejects.toThrow(
        'jobs.runNow: tx needs a store that shares its database with you: open a postgres:// one.',
      );
    });
    await expect(mulligan.jobs.runNow({ ids: [id], tx: pool })).rejects.toThrow(
      'jobs.runNow: tx: expected a client inside a transaction, got an object of class BoundPool. That is a pool.',
    );
    await using client = await connected();
    await expect(mulligan.jobs.runNow({ ids: [id], tx: client })).rejects.toThrow(/so it would be done at once/);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'scheduled' });
  });
});

describe('a job enqueued in a transaction', () => {
  it('is there once the transaction is committed, and not before', async () => {
    await using mulligan = await open();
    const { id } = await inTransaction(async (tx) => {
      const enqueued = await mulligan.enqueue('in a transaction', { a: 1 }, { tx });
      expect(await mulligan.jobs.get(enqueued.id)).toBeNull();
      return enqueued;
    });
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'ready', payload: { a: 1 } });
  });

  it('waits for the others of its transaction: a client gets one query at a time', async () => {
    await using mulligan = await open();
    let atOnce = 0;
    let mostAtOnce = 0;
    const enqueued = await inTransaction(async (client) => {
      const tx = {
        getTransactionStatus: () => client.getTransactionStatus(),
        async query(text: string, values: unknown[]) {
          mostAtOnce = Math.max(mostAtOnce, ++atOnce);
          return client.query(text, values).finally(() => atOnce--);
        },
      };
      return Promise.all([1, 2, 3, 4].map((n) => mulligan.enqueue('all at once', n, { tx })));
    });
    expect(mostAtOnce).toBe(1);
    expect(await mulligan.jobs.list({ name: 'all at once' })).toHaveLength(4);
    expect(new Set(enqueued.map(({ id }) => id)).size).toBe(4);
  });

  it('waits for the others also when each call wraps the transaction of a library again', () => {
    const trx = { isTransaction: true, executeQuery: async () => ({ rows: [] }) };
    expect(kyselyTx(trx)).toBe(kyselyTx(trx));
    expect(kyselyTx(trx)).not.toBe(kyselyTx({ ...trx }));
  });

  it('is refused when one before it broke the transaction, and so are those after it', async () => {
    await using mulligan = await open();
    const answers = await inTransaction(async (tx) => {
      await tx.query('SELECT 1/0').catch(() => {});
      return Promise.allSettled([1, 2, 3].map((n) => mulligan.enqueue('broken', n, { tx })));
    });
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  });

  it('never existed when the transaction is rolled back, nor did its key', async () => {
    await using mulligan = await open();
    const ids: string[] = [];
    const rolledBack = inTransaction(async (tx) => {
      ids.push((await mulligan.enqueue('rolled back', 1, { tx, key: 'k' })).id);
      ids.push(
        ...(await mulligan.enqueueMany('rolled back', [{ input: 2 }, { input: 3 }], { tx })).map(({ id }) => id),
      );
      throw new Error('changed my mind');
    });
    await expect(rolledBack).rejects.toThrow('changed my mind');
    expect(ids).toHaveLength(3);
    for (const id of ids) expect(await mulligan.jobs.get(id)).toBeNull();
    expect(await mulligan.enqueue('rolled back', 4, { key: 'k' })).toMatchObject({ existed: false });
    expect(await mulligan.jobs.list({ name: 'rolled back' })).toHaveLength(1);
  });

  it('may be sent again under its id, which changes nothing and leaves the transaction as it was', async () => {
    const store = await PostgresStore.open({ pool, schema });
    const job = newJob({ name: 'sent twice' });
    await inTransaction(async (tx) => {
      await store.transactions.enqueue(tx, [job]);
      expect(await store.transactions.enqueue(tx, [job])).toEqual([{ id: job.id, existed: false }]);
    });
    expect(await store.get([job.id])).toMatchObject([{ id: job.id, state: 'ready' }]);
    await store.close();
  });

  it('answers with the job that holds its key', async () => {
    await using mulligan = await open();
    const first = await mulligan.enqueue('keyed', 1, { key: 'same' });
    const second = await inTransaction((tx) => mulligan.enqueue('keyed', 2, { tx, key: 'same' }));
    expect(second).toEqual({ id: first.id, existed: true });
  });

  it('makes only those wait for its key who want it too', async () => {
    await using mulligan = await open();
    const { holder, waiting } = await inTransaction(async (tx) => {
      const held = await mulligan.enqueue('contested', 1, { tx, key: 'user-42' });
      let answered = false;
      const again = Promise.all([2, 3].map((n) => mulligan.enqueue('contested', n, { key: 'user-42' }))).finally(() => {
        answered = true;
      });
      const others = await Promise.all([
        mulligan.enqueue('contested', 4, { key: 'user-41' }),
        mulligan.enqueue('contested', 5, { key: 'user-43' }),
        mulligan.enqueue('of another name', 6, { key: 'user-42' }),
        mulligan.enqueue('contested', 7),
        mulligan.enqueueMany('contested', [{ input: 8 }, { input: 9 }]).then(([first]) => first),
      ]);
      // By now it is known that the key is contested.
      others.push(await mulligan.enqueue('contested', 10, { key: 'user-44' }));
      expect(others.map((other) => other?.existed)).toEqual(Array(6).fill(false));
      expect(answered).toBe(false);
      // In an object, or the transaction would wait for those who wait for it.
      return { holder: held.id, waiting: [again] };
    });
    expect(await waiting[0]).toEqual(Array(2).fill({ id: holder, existed: true }));
  });

  it.each([
    ['Drizzle', 'commit'],
    ['Drizzle', 'rollback'],
    ['Kysely', 'commit'],
    ['Kysely', 'rollback'],
    ['Knex', 'commit'],
    ['Knex', 'rollback'],
  ] as const)('goes with a transaction of %s: %s', async (library, end) => {
    await using mulligan = await open();
    const text = `${library} ${end}`;
    let id = '';
    const work = async (tx: TransactionClient): Promise<void> => {
      ({ id } = await mulligan.enqueue(`it's ${library} of 100%?`, { text: '"a" \\ $1 ?' }, { tx }));
      if (end === 'rollback') throw new Error(text);
    };
    const done = { Drizzle: withDrizzle, Kysely: withKysely, Knex: withKnex }[library](text, work);
    if (end === 'rollback') await expect(done).rejects.toThrow(text);
    else await done;
    const job = await mulligan.jobs.get(id);
    expect([job?.payload ?? null, (await effects()).includes(text)]).toEqual(
      end === 'commit' ? [{ text: '"a" \\ $1 ?' }, true] : [null, false],
    );
  });

  it('goes with whatever answers rows, as Prisma does', async () => {
    await using mulligan = await open();
    const { id } = await inTransaction((client) => {
      const prisma = {
        $queryRawUnsafe: async (text: string, ...values: unknown[]) => (await client.query(text, values)).rows,
      };
      return mulligan.enqueue('prisma', 1, { tx: prismaTx(prisma) });
    });
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'ready' });
  });

  it('needs a client, and a store that shares its database', async () => {
    await using mulligan = await open();
    await expect(mulligan.enqueue('x', 1, { tx: {} as never })).rejects.toThrow(
      'enqueue: tx: expected a client with query(text, values)',
    );
    await using other = await Mulligan.open('memory:');
    await expect(inTransaction((tx) => other.enqueue('x', 1, { tx }))).rejects.toThrow(ConfigError);
  });

  it('does not take a pool, whose queries are in no transaction of the caller', async () => {
    await using mulligan = await open();
    await expect(mulligan.enqueue('pooled', 1, { tx: pool })).rejects.toThrow(
      'enqueue: tx: expected a client inside a transaction, got an object of class BoundPool. That is a pool.',
    );
    expect(await mulligan.jobs.list({ name: 'pooled' })).toEqual([]);
  });

  it.each([
    ['has not begun one', []],
    ['has ended its own', ['BEGIN', 'COMMIT']],
  ])('does not take a client that %s', async (_, statements) => {
    await using mulligan = await open();
    await using client = await connected();
    for (const statement of statements) await client.query(statement);
    const refusal = await mulligan.enqueue('alone', 1, { tx: client }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ConfigError);
    expect(String(refusal)).toMatch(
      'enqueue: tx: expected a client inside a transaction, got an object of class Client.',
    );
    expect(await mulligan.jobs.list({ name: 'alone' })).toEqual([]);
  });

  it('takes a client whose BEGIN is still under way', async () => {
    await using mulligan = await open();
    await using client = await connected();
    const begun = client.query('BEGIN');
    const { id } = await mulligan.enqueue('in a transaction', 1, { tx: client });
    await begun;
    expect(await mulligan.jobs.get(id)).toBeNull();
    await client.query('COMMIT');
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'ready' });
  });

  it('does not take the database of a library for its transaction', async () => {
    const knexDb = knex({ client: 'pg', connection: url });
    const db = drizzle({ client: pool });
    const prisma = { $queryRawUnsafe: async () => [], $connect: async () => {}, $transaction: async () => {} };
    const kysely = new Kysely<Record<string, never>>({ dialect: new PostgresDialect({ pool }) });
    expect(() => kyselyTx(kysely)).toThrow(
      'kyselyTx: expected a transaction of Kysely, got an object of class Kysely.',
    );
    expect(() => drizzleTx(db, sql)).toThrow('drizzleTx: expected a transaction of Drizzle, got an object of class');
    expect(() => knexTx(knexDb)).toThrow('knexTx: expected a transaction of Knex, got a function.');
    expect(() => prismaTx(prisma)).toThrow('prismaTx: expected a transaction of Prisma, got an object with the keys');
    await knexDb.destroy();
  });

  it.each([null, undefined, {}, 'tx'])('does not take %j for the transaction of any library', (tx) => {
    const adapters = [kyselyTx, knexTx, prismaTx, (it: unknown) => drizzleTx(it as never, sql)];
    for (const adapter of adapters) expect(() => adapter(tx as never)).toThrow(ConfigError);
  });

  it("needs Drizzle's sql beside its transaction", () =>
    drizzle({ client: pool }).transaction(async (tx) => {
      expect(() => drizzleTx(tx, undefined as never)).toThrow("drizzleTx: expected Drizzle's own `sql`");
    }));

  it('gets an error when its transaction only reads', async () => {
    await using mulligan = await open();
    await using client = await connected();
    await client.query('BEGIN READ ONLY');
    const refusal = await mulligan.enqueue('only read', 1, { tx: client }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ConfigError);
    expect(String(refusal)).toMatch('enqueue: tx: expected a transaction that may write, but this one is read-only');
  });

  it.each([[undefined], [[]], [{ rows: 'none' }]])('needs a client that answers rows, not %j', async (answer) => {
    await using mulligan = await open();
    const refusal = await mulligan.enqueue('x', 1, { tx: { query: async () => answer as never } }).catch(String);
    expect(refusal).toMatch(/^ConfigError: enqueue: tx: expected query\(text, values\) to answer \{ rows \}/);
  });

  it.each(['pg', 'Drizzle'])('gets an error when its transaction of %s had failed before', async (library) => {
    await using mulligan = await open();
    const enqueueIn = (tx: TransactionClient): Promise<unknown> => mulligan.enqueue('too late', 1, { tx });
    const refused =
      library === 'pg'
        ? inTransaction(async (tx) => {
            await tx.query('SELECT 1 / 0').catch(() => {});
            await enqueueIn(tx);
          })
        : drizzle({ client: pool }).transaction(async (tx) => {
            await tx.execute(sql`SELECT 1 / 0`).catch(() => {});
            await enqueueIn(drizzleTx(tx, sql));
          });
    const refusal = await refused.catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ConfigError);
    expect(refusal).toHaveProperty(
      'message',
      expect.stringMatching(/failed before; nothing was written\. Roll it back/),
    );
    expect(await mulligan.jobs.list({ name: 'too late' })).toEqual([]);
  });
});

async function withDrizzle(text: string, work: (tx: TransactionClient) => Promise<void>): Promise<void> {
  await drizzle({ client: pool }).transaction(async (tx) => {
    await tx.execute(sql`INSERT INTO ${sql.raw(schema)}.effects VALUES (${text})`);
    await work(drizzleTx(tx, sql));
  });
}

async function withKysely(text: string, work: (tx: TransactionClient) => Promise<void>): Promise<void> {
  const db = new Kysely<Record<string, never>>({ dialect: new PostgresDialect({ pool }) });
  await db.transaction().execute(async (trx) => {
    await kyselySql`INSERT INTO ${kyselySql.raw(schema)}.effects VALUES (${text})`.execute(trx);
    await work(kyselyTx(trx));
  });
}

async function withKnex(text: string, work: (tx: TransactionClient) => Promise<void>): Promise<void> {
  const db = knex({ client: 'pg', connection: url });
  try {
    await db.transaction(async (trx) => {
      await trx.raw(`INSERT INTO ${schema}.effects VALUES (?)`, [text]);
      await work(knexTx(trx));
    });
  } finally {
    await db.destroy();
  }
}

describe('a handler that completes its job in a transaction', () => {
  it('has its writes and its completion committed together', async () => {
    const job = defineJob({
      name: 'together',
      async run(_: null, ctx) {
        ctx.log.info('before');
        const answer = await ctx.transaction(async (tx) => {
          await tx.query(`INSERT INTO ${schema}.effects VALUES ($1)`, ['together']);
          return 42;
        });
        expect(answer).toBe(42);
      },
    });
    await using mulligan = await open([job]);
    const completed: string[] = [];
    mulligan.on('completed', ({ id }) => completed.push(id));
    const { id } = await mulligan.enqueue(job, null);
    await mulligan.work({ poll: 50 }).whenIdle();
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1, attempts: 1 });
    expect(await mulligan.jobs.runs(id)).toMatchObject([{ run: 1, outcome: 'completed' }]);
    expect(await mulligan.jobs.logs(id)).toMatchObject([{ run: 1, lines: [{ message: 'before' }] }]);
    expect((await effects()).filter((text) => text === 'together')).toHaveLength(1);
    expect(completed).toEqual([id]);
  });

  it('writes nothing when it throws inside, and is retried', async () => {
    const job = defineJob({
      name: 'half way',
      retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: 1 }, jitter: 'none' },
      async run(_: null, ctx) {
        await ctx.transaction(async (tx) => {
          await tx.query(`INSERT INTO ${schema}.effects VALUES ($1)`, [`half way ${ctx.attempt}`]);
          if (ctx.attempt === 1) throw new Error('half way');
        });
      },
    });
    await using mulligan = await open([job]);
    const { id } = await mulligan.enqueue(job, null);
    const worker = mulligan.work({ poll: 20 });
    await expect.poll(async () => (await mulligan.jobs.get(id))?.state, { timeout: 20_000 }).toBe('completed');
    await worker.stop();
    expect((await effects()).filter((text) => text.startsWith('half way'))).toEqual(['half way 2']);
  });

  it('is completed even when it throws afterwards', async () => {
    const job = defineJob({
      name: 'throws later',
      async run(_: null, ctx) {
        await ctx.transaction((tx) => tx.query(`INSERT INTO ${schema}.effects VALUES ($1)`, ['later']));
        throw new Error('too late');
      },
    });
    await using mulligan = await open([job]);
    const events: string[] = [];
    for (const event of ['completed', 'lease-lost'] as const) mulligan.on(event, () => events.push(event));
    const { id } = await mulligan.enqueue(job, null);
    await mulligan.work({ poll: 50 }).whenIdle();
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1 });
    expect(events).toEqual(['completed']);
  });

  it('writes nothing when its run was taken away meanwhile', async () => {
    const job = defineJob({
      name: 'too slow',
      retry: { maxAttempts: 5 },
      async run(_: null, ctx) {
        await ctx.transaction(async (tx) => {
          await tx.query(`INSERT INTO ${schema}.effects VALUES ($1)`, [`too slow ${ctx.run}`]);
          // As a rescuer would, after a silence longer than the lease.
          if (ctx.run === 1) {
            await pool.query(
              `UPDATE ${schema}.live SET worker = NULL, lease_ends_at = NULL, due_at = 0 WHERE id = $1`,
              [ctx.job.id],
            );
          }
        });
      },
    });
    await using mulligan = await open([job]);
    const { id } = await mulligan.enqueue(job, null);
    const worker = mulligan.work({ poll: 20 });
    await expect.poll(async () => (await mulligan.jobs.get(id))?.state, { timeout: 20_000 }).toBe('completed');
    await worker.stop();
    expect((await effects()).filter((text) => text.startsWith('too slow'))).toEqual(['too slow 2']);
  });

  /** Runs a job once, which writes what it is called into `effects`, and tells how it ended. */
  async function runOnce(
    name: string,
    run: (context: JobContext, write: (tx: TransactionClient) => Promise<unknown>) => Promise<unknown>,
  ): Promise<{ readonly state: string; readonly error: string; readonly written: number }> {
    const write = (tx: TransactionClient): Promise<unknown> =>
      tx.query(`INSERT INTO ${schema}.effects VALUES ($1)`, [name]);
    const job = defineJob({ name, retry: { maxAttempts: 1 }, run: (_: null, context) => run(context, write) });
    await using mulligan = await open([job]);
    const { id } = await mulligan.enqueue(job, null);
    await mulligan.work({ poll: 50 }).whenIdle();
    const ended = await mulligan.jobs.get(id);
    const written = (await effects()).filter((text) => text === name).length;
    return { state: ended?.state ?? 'gone', error: ended?.lastError?.message ?? '', written };
  }

  it.each([
    [['ROLLBACK'], 0],
    [['COMMIT'], 1],
    [['ROLLBACK', 'BEGIN'], 0],
    [['COMMIT; BEGIN'], 1],
    [['ROLLBACK AND CHAIN'], 0],
  ])('is not completed when it ends the transaction itself: %j', async (statements, written) => {
    const ended = await runOnce(`ends by ${statements}`, (context, write) =>
      context.transaction(async (tx) => {
        await write(tx);
        for (const statement of statements) await tx.query(statement, []);
      }),
    );
    expect(ended).toMatchObject({ state: 'dead', written });
    expect(ended.error).toMatch('the work has ended it (COMMIT, ROLLBACK); the job is not completed');
  });

  it('may choose the isolation of its transaction, and roll back a part of it', async () => {
    const ended = await runOnce('savepoints', (context, write) =>
      context.transaction(async (tx) => {
        await tx.query('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE', []);
        await tx.query('SAVEPOINT a', []);
        await write(tx);
        await tx.query('ROLLBACK TO SAVEPOINT a', []);
        await write(tx);
      }),
    );
    expect(ended).toEqual({ state: 'completed', error: '', written: 1 });
  });

  it('is done again when a heartbeat conflicts with its transaction of a strict isolation', async () => {
    let tries = 0;
    const ended = await runOnce('strict', (context, write) =>
      context.transaction(async (tx) => {
        await tx.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ', []);
        await write(tx);
        if (++tries < 3) await context.extend('1m');
      }),
    );
    expect(ended).toEqual({ state: 'completed', error: '', written: 1 });
    expect(tries).toBe(3);
  });

  it('fails by conflicts of its own, which it may expect', async () => {
    let tries = 0;
    const ended = await runOnce('own conflict', (context) =>
      context.transaction(async (tx) => {
        tries++;
        await tx.query("DO $$ BEGIN RAISE EXCEPTION 'mine' USING ERRCODE = '40001'; END $$", []);
      }),
    );
    expect(ended).toMatchObject({ state: 'dead', error: 'mine' });
    expect(tries).toBe(1);
  });

  it('cannot use the transaction after its end, whatever ended it', async () => {
    const refusals: unknown[] = [];
    const late = (tx: TransactionClient | null): Promise<unknown> =>
      (tx as TransactionClient).query('SELECT 1', []).catch((error: unknown) => void refusals.push(error));
    const ended = await runOnce('after the end', async (context, write) => {
      let kept: TransactionClient | null = null;
      const failed = context.transaction(async (tx) => {
        kept = tx;
        throw new Error('changed my mind');
      });
      await expect(failed).rejects.toThrow('changed my mind');
      await late(kept);
      await context.transaction(async (tx) => {
        kept = tx;
        await write(tx);
      });
      await late(kept);
    });
    expect(ended).toEqual({ state: 'completed', error: '', written: 1 });
    expect(refusals).toEqual(Array(2).fill(expect.any(ConfigError)));
    expect(String(refusals[0])).toMatch('this transaction has ended, and nothing was sent');
  });

  it('has a query that it did not wait for carried out before the end', async () => {
    const ended = await runOnce('not awaited', (context, write) =>
      context.transaction(async (tx) => {
        void tx.query('SELECT pg_sleep(0.2)', []);
        void write(tx);
      }),
    );
    expect(ended).toEqual({ state: 'completed', error: '', written: 1 });
  });

  it('fails when a query fails that it did not wait for', async () => {
    const ended = await runOnce('fails unawaited', (context, write) =>
      context.transaction(async (tx) => {
        await write(tx);
        void tx.query('SELECT 1 / 0', []);
      }),
    );
    expect(ended).toEqual({ state: 'dead', error: 'division by zero', written: 0 });
  });

  it('has one transaction, also when it asks for several at once', async () => {
    let answers: PromiseSettledResult<unknown>[] = [];
    const ended = await runOnce('several at once', async (context, write) => {
      answers = await Promise.allSettled([1, 2, 3].map(() => context.transaction(write)));
    });
    expect(ended).toEqual({ state: 'completed', error: '', written: 1 });
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(answers[1]).toMatchObject({
      reason: new ConfigError('transaction: expected one per run, got a second while the first is under way.'),
    });
  });

  it('gets an error when the store has no transactions', async () => {
    const errors: unknown[] = [];
    const job = defineJob({
      name: 'nowhere',
      retry: { maxAttempts: 1 },
      run: (_: null, ctx) => ctx.transaction(async () => {}).catch((error: unknown) => void errors.push(error)),
    });
    await using mulligan = await Mulligan.open('memory:', { jobs: [job] });
    await mulligan.enqueue(job, null);
    await mulligan.work().whenIdle();
    expect(errors).toEqual([expect.any(ConfigError)]);
  });
});
