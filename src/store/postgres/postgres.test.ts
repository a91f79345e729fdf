import { describe, inject, it } from 'vitest';
import { movableTime, newSchema, runSql } from '../../../test/support/postgres-schema.ts';
import { type StoreHarness, storeConformance } from '../conformance/index.ts';
import { PostgresStore } from './store.ts';

const url = inject('postgresUrl');

async function open(): Promise<StoreHarness> {
  const schema = newSchema();
  const store = await PostgresStore.open({ url, schema });
  await movableTime(url, schema);
  return {
    store,
    async advance(ms) {
      await runSql(url, `UPDATE ${schema}.test_time SET shift = shift + $1`, [ms]);
    },
    async close() {
      await store.close();
      await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
    },
  };
}

describe('the PostgreSQL store keeps the contract', () => {
  for (const { verb, name, skip, run } of storeConformance(open)) {
    it.skipIf(skip !== null)(`${verb}: ${name}`, run);
  }
});
