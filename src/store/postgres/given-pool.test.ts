import pg from 'pg';
import { describe, expect, inject, it } from 'vitest';
import { newSchema, runSql } from '../../../test/support/postgres-schema.ts';
import { PostgresStore } from './store.ts';

const url = inject('postgresUrl');

describe('a pool of the caller', () => {
  it.each([1, 2])('with room for %i is refused: statements would wait for each other for ever', async (max) => {
    const pool = new pg.Pool({ connectionString: url, max });
    await expect(PostgresStore.open({ pool })).rejects.toThrow(
      `PostgreSQL: pool: expected a max of at least 3 connections, came ${max}. `,
    );
    await pool.end();
  });

  it('is left as it was when the store is closed', async () => {
    const schema = newSchema();
    const pool = new pg.Pool({ connectionString: url, max: 3 });
    await (await PostgresStore.open({ pool, schema })).close();
    expect(pool.listenerCount('error')).toBe(0);
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await pool.end();
    await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
  });
});
