import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { TestDatabase } from '../../../../test/support/postgres-database.ts';
import { newSchema, runSql } from '../../../../test/support/postgres-schema.ts';
import { examine } from '../../../cli/doctor/examine.ts';
import { defineJob, Mulligan } from '../../../index.ts';
import { PostgresStore } from '../store.ts';

const url = inject('postgresUrl');
const role = newSchema();
const schema = newSchema();

beforeAll(() => runSql(url, `CREATE ROLE ${role} LOGIN PASSWORD 'x'; CREATE SCHEMA ${schema}`));
afterAll(() => runSql(url, `DROP SCHEMA ${schema} CASCADE; DROP ROLE ${role}`));

it('refuses a schema that the role may not use, instead of making the tables where nobody finds them', async () => {
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
  expect(checks.find(({ name }) => name === 'schema')?.found).toBe(`${word}, version 1`);
  expect(checks.find(({ name }) => name === 'jobs')?.found).toBe('1 completed');
});
