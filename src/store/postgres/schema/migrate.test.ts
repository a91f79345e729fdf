import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { TestDatabase } from '../../../../test/support/postgres-database.ts';
import { newSchema, runSql } from '../../../../test/support/postgres-schema.ts';
import { examine } from '../../../cli/doctor/examine.ts';
import { systemClock } from '../../../clock.ts';
import { defineJob, Mulligan, StoreIncompatibleError } from '../../../index.ts';
import { claimRequest, newJob } from '../../conformance/builders.ts';
import { connect } from '../connection/connect.ts';
import { Database } from '../connection/database.ts';
import { HERE } from '../sql/shared.ts';
import { PostgresStore } from '../store.ts';
import { functionSet, functions } from './functions.ts';
import { dropFunctions, migrate, planMigration } from './migrate.ts';
import { migrations } from './tables.ts';

const url = inject('postgresUrl');
const role = newSchema();
const schema = newSchema();

beforeAll(() => runSql(url, `CREATE ROLE ${role} LOGIN PASSWORD 'x'; CREATE SCHEMA ${schema}`));
afterAll(() => runSql(url, `DROP SCHEMA ${schema} CASCADE; DROP ROLE ${role}`));

it('refuses a schema that the role may not use, and makes no tables in another one', async () => {
  const own = new URL(url);
  own.username = role;
  own.password = 'x';
  const opened = PostgresStore.open({ url: `${own}`, schema });
  await expect(opened).rejects.toThrow(`permission denied for schema ${schema}`);
  expect(await runSql(url, 'SELECT 1 FROM pg_tables WHERE schemaname = $1', [schema])).toEqual([]);
});

it('refuses the schema of the catalog', async () => {
  await expect(PostgresStore.open({ url, schema: 'information_schema' })).rejects.toThrow('schema: expected');
});

it.each(['user', 'select'])('takes %s as the name of a schema, though it is a word of SQL', async (word) => {
  await using database = await TestDatabase.create(url);
  const address = `${database.url}?schema=${word}`;
  const job = defineJob({ name: 'a', run: (_: number, context) => context.once('x', () => 1) });
  await using mulligan = await Mulligan.open(address, { jobs: [job], log: () => {} });
  const { id } = await mulligan.enqueue(job, 1, { key: 'k' });
  await mulligan.work({ poll: 50 }).whenIdle();
  expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'completed' });
  const checks = await examine({ url: address, from: '--db' });
  expect(checks.find(({ name }) => name === 'schema')?.found).toBe(`${word}, version ${migrations.length}`);
  expect(checks.find(({ name }) => name === 'jobs')?.found).toBe('1 completed');
});

/** What another version of this program would install. */
const other = functionSet(`
  CREATE TYPE answer AS (n int);
  CREATE FUNCTION heartbeat(p_n int) RETURNS answer LANGUAGE sql ${HERE} AS $$ SELECT ROW(p_n + 1)::answer $$;`);

describe('the functions of a version', () => {
  it('are installed beside those of another version, once, and both can be called', async () => {
    await using database = await TestDatabase.create(url);
    const { hosts, schema } = await connect({ url: database.url });
    const made = { from: 0, to: migrations.length, functions: other.version, installed: true };
    expect(await migrate(hosts, schema, other)).toEqual(made);
    expect(await migrate(hosts, schema, other)).toEqual({ ...made, from: migrations.length, installed: false });
    const store = await PostgresStore.open({ url: database.url });
    await store.enqueue([newJob()]);
    expect((await store.claim(claimRequest())).jobs).toHaveLength(1);
    expect(await database.sql(other.resolve('SELECT n FROM @.heartbeat(1)', schema))).toEqual([{ n: 2 }]);
    const sets = await database.sql('SELECT version FROM mulligan.function_sets ORDER BY installed_at');
    expect(sets).toEqual([{ version: other.version }, { version: functions.version }]);
    await store.close();
    await hosts.close();
  });

  it('all have its version in their names, so that no two versions share one', async () => {
    await using database = await TestDatabase.create(url);
    await (await PostgresStore.open({ url: database.url })).close();
    const unversioned = await database.sql(
      `SELECT proname AS name FROM pg_proc WHERE pronamespace = 'mulligan'::regnamespace AND right(proname, 9) <> $1
       UNION ALL SELECT relname FROM pg_class
         WHERE relnamespace = 'mulligan'::regnamespace AND relkind = 'c' AND right(relname, 9) <> $1`,
      [`_${functions.version}`],
    );
    // Every version asks the same store for its time.
    expect(unversioned).toEqual([{ name: 'now_ms' }]);
  });

  it('are required, also where tables are up to date and another process migrates', async () => {
    await using database = await TestDatabase.create(url);
    const { hosts, schema } = await connect({ url: database.url });
    await migrate(hosts, schema, other);
    await expect(PostgresStore.open({ url: database.url, migrate: false })).rejects.toThrow(
      `schema mulligan: expected functions ${functions.version}, found other ones; run \`mulligan migrate\``,
    );
    const { from, to, sql } = await planMigration(hosts, schema);
    expect([from, to]).toEqual([migrations.length, migrations.length]);
    await database.sql(sql);
    await (await PostgresStore.open({ url: database.url, migrate: false })).close();
    expect((await planMigration(hosts, schema)).sql).toBe('');
    await hosts.close();
  });

  it('can be dropped when no process uses them any more, but not by a program of that version', async () => {
    await using database = await TestDatabase.create(url);
    const { hosts, schema } = await connect({ url: database.url });
    await migrate(hosts, schema, other);
    await migrate(hosts, schema);
    expect(await dropFunctions(hosts, schema, other.version)).toBe(2);
    expect(await dropFunctions(hosts, schema, other.version)).toBe(0);
    await expect(dropFunctions(hosts, schema, functions.version)).rejects.toThrow(StoreIncompatibleError);
    expect(await database.sql('SELECT version FROM mulligan.function_sets')).toEqual([{ version: functions.version }]);
    const store = await PostgresStore.open({ url: database.url, migrate: false });
    await store.enqueue([newJob()]);
    await store.close();
    await hosts.close();
  });
});

describe('tables of a newer version', () => {
  it('are used, and left as they are, when they say that this version can use them', async () => {
    await using database = await TestDatabase.create(url);
    await (await PostgresStore.open({ url: database.url })).close();
    const later = migrations.length + 1;
    await database.sql(`UPDATE mulligan.schema_identity SET version = ${later}`);
    for (const migrates of [true, false]) {
      const store = await PostgresStore.open({ url: database.url, migrate: migrates });
      await store.enqueue([newJob()]);
      expect((await store.claim(claimRequest())).jobs).toHaveLength(1);
      await store.close();
    }
    expect(await database.sql('SELECT version FROM mulligan.schema_identity')).toEqual([{ version: later }]);
    const checks = await examine({ url: database.url, from: '--db' });
    expect(checks.find(({ name }) => name === 'schema')).toMatchObject({
      health: 'ok',
      found: `mulligan, version ${later}; this program knows ${migrations.length}`,
    });
  });
});

describe('the identity of the tables', () => {
  it('changes when they are dropped and made again, and when they are restored from a dump', async () => {
    await using database = await TestDatabase.create(url);
    const { hosts, schema } = await connect({ url: database.url });
    const db = new Database(hosts, schema, systemClock);
    const identity = async (): Promise<string> => {
      await db.readFacts();
      return db.identity;
    };
    await migrate(hosts, schema);
    const first = await identity();
    expect(first).toMatch(/^[0-9a-f-]{36}$/);
    expect(await identity()).toBe(first);
    await database.sql('DROP SCHEMA mulligan CASCADE');
    await migrate(hosts, schema);
    const second = await identity();
    expect(second).not.toBe(first);
    // A dump holds the rows of the table, and is restored into a new one.
    await database.sql(
      `CREATE TABLE mulligan.restored AS SELECT * FROM mulligan.schema_identity; DROP TABLE mulligan.schema_identity;
       ALTER TABLE mulligan.restored RENAME TO schema_identity`,
    );
    expect(await identity()).not.toBe(second);
    await db.close();
  });
});

describe("a role's statement_timeout", () => {
  it('is known to the store, and does not end a migration', async () => {
    await using database = await TestDatabase.create(url);
    const pool = new pg.Pool({ connectionString: database.url, max: 4, statement_timeout: 400 });
    const { hosts, schema } = await connect({ pool });
    const holder = await database.connect();
    await holder.query("SELECT pg_advisory_lock(hashtext('mulligan: migrate'), hashtext('mulligan'))");
    const done = migrate(hosts, schema);
    const late = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'
      AND clock_timestamp() - query_start > interval '800 ms'`;
    const waited = expect.poll(() => database.sql(late), { timeout: 30_000 }).toHaveLength(1);
    await Promise.race([done, waited]);
    await holder.end();
    await done;
    const db = new Database(hosts, schema, systemClock);
    await db.readFacts();
    expect(db.statementTimeoutMs).toBe(400);
    await pool.end();
  });
});
