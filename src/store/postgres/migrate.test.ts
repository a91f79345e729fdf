import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { newSchema, runSql } from '../../../test/support/postgres-schema.ts';
import { PostgresStore } from './store.ts';

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
