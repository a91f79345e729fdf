import { expect, inject, it } from 'vitest';
import { TestDatabase } from '../../../test/support/postgres-database.ts';
import { defineJob, Mulligan } from '../../index.ts';
import { PostgresStore } from './store.ts';

const url = inject('postgresUrl');

it('advice needs no lock that conflicts with those of workers, nor do workers wait for the locks that it holds', async () => {
  await using database = await TestDatabase.create(url);
  const store = await PostgresStore.open({ url: database.url });
  let fails = true;
  const job = defineJob<number>({
    name: 'a',
    retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: '1ms' } },
    resource: false,
    run() {
      fails = !fails;
      if (!fails) throw new Error('once');
    },
  });
  await using mulligan = await Mulligan.open(store, { jobs: [job], log: () => {} });
  const { id } = await mulligan.enqueue(job, 1);
  mulligan.work({ poll: 20 });
  await mulligan.result(id, { timeout: '60s' });
  const client = await database.connect();
  // Conflicts with every lock but that of a plain read.
  await client.query('BEGIN');
  await client.query('LOCK TABLE mulligan.live, mulligan.finished, mulligan.runs, mulligan.errors IN EXCLUSIVE MODE');
  const drawn = await store.ledger({ since: 0, limit: 100, draw: 1 });
  const { names } = await mulligan.advise();
  await client.query('ROLLBACK');
  await client.end();
  await store.close();
  expect(drawn.jobs.map(({ runs }) => runs.length)).toEqual([2]);
  expect(names).toMatchObject([{ name: 'a', jobs: 1, retries: { runs: 1, recovered: 1 } }]);
});
