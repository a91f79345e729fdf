import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { heldWords, holdJobs } from '../../../../test/support/held-jobs.ts';
import { FakePooler } from '../../../../test/support/pooler.ts';
import { newSchema } from '../../../../test/support/postgres-schema.ts';
import { PostgresServer } from '../../../../test/support/postgres-server.ts';
import { defineJob } from '../../../definition.ts';
import { Mulligan } from '../../../mulligan.ts';
import { migrations } from '../../../store/postgres/schema/tables.ts';
import { PostgresStore } from '../../../store/postgres/store.ts';
import { type Check, worst } from '../check.ts';
import { examine } from '../examine.ts';
import { healthOf } from './snapshots.ts';
import { judge } from './tables.ts';

/** Others would leave transactions open on one that is shared. */
let server: PostgresServer;
beforeAll(async () => {
  server = await PostgresServer.start({ fsync: 'on', max_prepared_transactions: '2' });
});
afterAll(() => server[Symbol.asyncDispose]());

async function checksOf(url: string): Promise<ReadonlyMap<string, Check>> {
  const checks = await examine({ url, from: '--db' });
  return new Map(checks.map((check) => [check.name, check]));
}

/** A schema of its own, migrated. */
async function newQueue(): Promise<{ url: string; schema: string }> {
  const schema = newSchema();
  await (await PostgresStore.open({ url: server.url, schema })).close();
  return { url: `${server.url}?schema=${schema}`, schema };
}

/** A session in a transaction that goes on until this is disposed of. */
async function inTransaction(...statements: string[]): Promise<AsyncDisposable> {
  const client = new pg.Client({ connectionString: server.url, application_name: 'forgetful' });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  return { [Symbol.asyncDispose]: () => client.end() };
}

describe('a PostgreSQL server', () => {
  it('that is sound has nothing bad about it, and every check is listed', async () => {
    const { url, schema } = await newQueue();
    const checks = await checksOf(url);
    // On a machine that is loaded a round trip may be slow.
    const others = [...checks.values()].filter(({ name }) => name !== 'connection');
    expect(others.filter(({ health }) => health !== 'ok')).toEqual([]);
    expect(Object.fromEntries([...checks.values()].map(({ name, found }) => [name, found]))).toMatchObject({
      connection: expect.stringMatching(/^postgres:.* as postgres, without TLS; a round trip takes [\d.]+ms$/),
      pooler: 'none in between',
      'wake-ups': expect.stringMatching(/^LISTEN and NOTIFY work/),
      clock: expect.stringContaining('agree'),
      server: expect.stringMatching(/^PostgreSQL \d+/),
      durability: 'fsync on, full_page_writes on, synchronous_commit on',
      autovacuum: 'on',
      schema: `${schema}, version ${migrations.length}`,
      rights: 'all that is needed; this role may also migrate',
      'table live': expect.stringMatching(/^about 0 rows and 0 dead ones/),
      jobs: 'none yet',
      waiting: 'no job is due',
    });
  });

  it('is named when it is one of several, and is bad when its role only reads', async () => {
    const { schema } = await newQueue();
    const role = `role_${schema}`;
    await server.query(`CREATE ROLE ${role} LOGIN`);
    await server.query(`ALTER ROLE ${role} SET default_transaction_read_only = on`);
    const several = `postgres://postgres@127.0.0.1:1,127.0.0.1:${server.port}/postgres?schema=${schema}`;
    expect((await checksOf(several)).get('connection')?.found).toContain(` on 127.0.0.1:${server.port} as postgres`);
    const reading = await checksOf(server.url.replace('postgres@', `${role}@`));
    expect(reading.get('server')).toMatchObject({ health: 'bad', found: expect.stringContaining('only reads') });
  });

  it('that is not there is one bad check', async () => {
    const [only, ...others] = await examine({ url: 'postgres://me:secret@127.0.0.1:1/db', from: '--db' });
    expect(only).toMatchObject({ name: 'connection', health: 'bad', found: expect.stringContaining('ECONNREFUSED') });
    expect(others).toEqual([]);
    expect(JSON.stringify(only)).not.toContain('secret');
  });

  it('with settings that lose jobs or make claims fail is warned of', async () => {
    await server.query(`ALTER ROLE postgres SET synchronous_commit = off`);
    await server.query(`ALTER ROLE postgres SET default_transaction_isolation = 'serializable'`);
    try {
      const checks = await checksOf((await newQueue()).url);
      expect(checks.get('durability')).toMatchObject({ health: 'warn', found: 'synchronous_commit is off' });
      expect(checks.get('isolation')).toMatchObject({ health: 'warn', found: expect.stringContaining('serializable') });
    } finally {
      await server.query('ALTER ROLE postgres RESET ALL');
    }
  });
});

describe('transactions that are left open', () => {
  it('are seen, with who holds them', async () => {
    const { url } = await newQueue();
    await using _ = await inTransaction('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM pg_class');
    const checks = await checksOf(url);
    const holder = /by pid \d+ \(idle in transaction, forgetful as postgres from 127\.0\.0\.1\)/;
    expect(checks.get('snapshots')?.found).toMatch(holder);
    expect(checks.get('idle transactions')?.found).toMatch(/^1 session, .*forgetful/);
  });

  it('are warned of after a minute, and bad after an hour', () => {
    expect([0, 59_999, 60_000, 3_599_999, 3_600_000].map(healthOf)).toEqual(['ok', 'ok', 'warn', 'warn', 'bad']);
  });

  it('are seen when they are prepared, or held by a replication slot', async () => {
    const { url, schema } = await newQueue();
    await server.query(`SELECT pg_create_physical_replication_slot('${schema}', true)`);
    await using _ = await inTransaction('BEGIN', `CREATE TABLE ${schema}.t (i int)`, `PREPARE TRANSACTION '${schema}'`);
    try {
      const checks = await checksOf(url);
      expect(checks.get('prepared transactions')?.found).toMatch(new RegExp(`^1, .*'${schema}' of postgres`));
      expect(checks.get('replication slots')?.found).toContain(`${schema} (inactive`);
    } finally {
      await server.query(`ROLLBACK PREPARED '${schema}'`);
      await server.query(`SELECT pg_drop_replication_slot('${schema}')`);
    }
  });
});

describe('a schema', () => {
  it('that is not there, or of a newer version, is bad', async () => {
    const missing = await checksOf(`${server.url}?schema=${newSchema()}`);
    expect(missing.get('schema')).toMatchObject({ health: 'bad', found: expect.stringContaining('is not there yet') });
    expect(missing.get('rights')).toMatchObject({ health: 'ok' });
    const { url, schema } = await newQueue();
    await server.query(`UPDATE ${schema}.schema_identity SET version = 99, minimum_reader = 99`);
    expect((await checksOf(url)).get('schema')).toMatchObject({ health: 'bad', found: expect.stringContaining('99') });
  });

  it('needs the rights that docs/postgres.md names, and no more', async () => {
    const { schema } = await newQueue();
    const role = `role_${schema}`;
    await server.query(`CREATE ROLE ${role} LOGIN`);
    const url = `${server.url.replace('postgres@', `${role}@`)}?schema=${schema}`;
    expect((await checksOf(url)).get('rights')).toMatchObject({ health: 'bad' });
    await server.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role}`);
    expect((await checksOf(url)).get('rights')?.found).toMatch(
      new RegExp(`^missing: SELECT ON ${schema}\\.\\w+.* more$`),
    );
    await server.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`);
    expect((await checksOf(url)).get('rights')?.found).toMatch(
      new RegExp(`^missing: (USAGE ON SEQUENCE ${schema}\\.\\w+(, )?)+( and \\d+ more)?$`),
    );
    await server.query(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${schema} TO ${role}`);
    const checks = await checksOf(url);
    expect(checks.get('rights')).toMatchObject({
      health: 'ok',
      found: expect.stringContaining('another role migrates'),
    });
    expect(checks.get('snapshots')?.found).toContain('without pg_read_all_stats');

    const job = defineJob({ name: 'a', run: (_: number, context) => context.once('x', () => 1) });
    await using mulligan = await Mulligan.open(await PostgresStore.open({ url, migrate: false }), { jobs: [job] });
    await mulligan.enqueue(job, 1, { key: 'k' });
    await mulligan.work().whenIdle();
    expect((await mulligan.stats()).states).toMatchObject({ completed: 1 });
  });

  it('is migrated by the role that owns it, without the right to create others', async () => {
    const schema = newSchema();
    const role = `role_${schema}`;
    await server.query(`CREATE ROLE ${role} LOGIN`);
    const url = `${server.url.replace('postgres@', `${role}@`)}?schema=${schema}`;
    expect((await checksOf(url)).get('rights')).toMatchObject({ health: 'bad' });
    await server.query(`CREATE SCHEMA ${schema} AUTHORIZATION ${role}`);
    await (await PostgresStore.open({ url })).close();
    expect((await checksOf(url)).get('rights')?.found).toContain('this role may also migrate');
  });
});

describe('a pooler', () => {
  it('is found, and notifications pass through it', async () => {
    await using pooler = await FakePooler.before((await newQueue()).url, 'session');
    const checks = await checksOf(pooler.url);
    expect(checks.get('pooler')?.found).toBe('one is in between, where a statement may take 30s');
    expect(checks.get('wake-ups')?.found).toMatch(/^LISTEN and NOTIFY work/);
  });

  it('that refuses settings of a session has workers poll', async () => {
    await using pooler = await FakePooler.before((await newQueue()).url, 'transaction');
    const checks = await checksOf(pooler.url);
    expect(checks.get('pooler')?.found).toBe('one is in between, without a limit to the time of a statement');
    expect(checks.get('wake-ups')).toMatchObject({ health: 'ok', found: expect.stringContaining('polling') });
    expect(worst([...checks.values()])).not.toBe('bad');
  });

  it('that loses notifications is warned of', async () => {
    await using pooler = await FakePooler.before((await newQueue()).url, 'silent');
    expect((await checksOf(pooler.url)).get('wake-ups')).toMatchObject({
      health: 'warn',
      found: expect.stringMatching(/^no notification arrived .*polling/),
    });
  });
});

describe('jobs', () => {
  it('are counted, and so are those that no worker runs or rescues', async () => {
    const { url, schema } = await newQueue();
    await using mulligan = await Mulligan.open(url);
    for (const queue of ['a', 'b', 'c']) await mulligan.enqueue('x', null, { queue });
    await mulligan.queues.pause('c');
    await server.query(`UPDATE ${schema}.live SET due_at = due_at - 120000`);
    const lease = `worker = 1, lease_ends_at = ${schema}.now_ms() - 90000`;
    await server.query(
      `UPDATE ${schema}.live SET ${lease} WHERE partition = (SELECT id FROM ${schema}.partitions WHERE queue = 'b')`,
    );
    const checks = await checksOf(url);
    expect(checks.get('jobs')?.found).toBe('2 ready, 1 running');
    expect(checks.get('waiting')).toMatchObject({
      health: 'warn',
      found: expect.stringMatching(
        /^the oldest due jobs have waited for 2m.* in a \(x\); 1 due job in paused queues: c \(1 job\)$/,
      ),
    });
    expect(checks.get('workers')).toMatchObject({ health: 'warn', found: 'none is alive, and jobs wait: x (2 jobs)' });
    expect(checks.get('leases')).toMatchObject({
      health: 'warn',
      found: expect.stringMatching(/^1 lease has expired/),
    });
    expect(checks.get('paused queues')).toMatchObject({ health: 'warn', found: 'c' });
  });

  it('that wait are counted by what holds them', async () => {
    const { url } = await newQueue();
    await using mulligan = await Mulligan.open(url);
    await holdJobs(mulligan);
    expect((await checksOf(url)).get('waiting')).toMatchObject({ health: 'warn', found: heldWords });
  });
});

describe('a table', () => {
  const sound = { name: 'live', rows: 100, dead: 2_000, bytes: 1_000_000, vacuumed: 60_000, unattended: false };

  it.each([
    ['is ok while dead rows are few', {}, 'ok', ''],
    ['is warned of when dead rows are many', { dead: 60_000 }, 'warn', 'then VACUUM s.live'],
    ['is warned of when it is far larger than its rows', { bytes: 1e9 }, 'warn', 'VACUUM FULL s.live'],
    ['may be large when it holds much', { bytes: 1e9, rows: 5e6 }, 'ok', ''],
    ['is warned of when autovacuum leaves it out', { unattended: true }, 'warn', 'RESET (autovacuum_enabled)'],
  ])('%s', (_, change, health, advice) => {
    const check = judge('s', { ...sound, ...change });
    expect(check.health).toBe(health);
    expect(check.advice ?? '').toContain(advice);
  });
});
