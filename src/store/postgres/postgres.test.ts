import { describe, expect, inject, it } from 'vitest';
import { expectSoundTables } from '../../../test/support/postgres-database.ts';
import { movableTime, newSchema, runSql } from '../../../test/support/postgres-schema.ts';
import { claimRequest, complete, newJobs, quota, retryIn, settlement } from '../conformance/builders.ts';
import { type StoreHarness, storeConformance } from '../conformance/index.ts';
import { PostgresStore } from './store.ts';

const url = inject('postgresUrl');

async function open(schema = newSchema()): Promise<StoreHarness> {
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
  for (const { verb, name, skip, run } of storeConformance(() => open())) {
    it.skipIf(skip !== null)(`${verb}: ${name}`, run);
  }
});

describe('what PostgreSQL keeps beside the jobs', () => {
  const error = { name: 'Error', message: 'away', code: null, status: null, stack: 'at x' };

  it('is one error for all runs of a settlement, which goes with the last of them', async () => {
    const schema = newSchema();
    const { store, advance, close } = await open(schema);
    const errors = (): Promise<unknown[]> => runSql(url, `SELECT uses, error FROM ${schema}.errors ORDER BY id`);
    await store.enqueue(newJobs(3));
    const request = claimRequest({ limit: 3, queues: [quota({ share: 3, retry: 3 })] });
    const first = await store.claim(request);
    const other = { ...error, message: 'gone' };
    await store.settle(
      first.jobs.map((job, index) => ({
        ...settlement(job, retryIn(0)),
        outcome: 'failed',
        error: index === 2 ? other : error,
      })),
    );
    expect(await errors()).toEqual([
      { uses: 2, error: JSON.stringify(error) },
      { uses: 1, error: JSON.stringify(other) },
    ]);
    const second = await store.claim(request);
    expect(second.jobs.map(({ lastError }) => lastError?.message).sort()).toEqual(['away', 'away', 'gone']);
    await expectSoundTables(url, schema);
    const [one, ...rest] = second.jobs;
    await store.settle([settlement(one as (typeof rest)[number], complete)]);
    await advance(1_000);
    expect(await store.prune({ completedMs: 1, deadMs: null, cancelledMs: null }, 10)).toBe(1);
    expect((await errors()).length).toBeGreaterThan(0);
    await expectSoundTables(url, schema);
    await store.settle(rest.map((job) => settlement(job, complete)));
    await advance(1_000);
    expect(await store.prune({ completedMs: 1, deadMs: null, cancelledMs: null }, 10)).toBe(2);
    expect(await errors()).toEqual([]);
    await close();
  });

  it('is one row of leases per claim, which is gone once somebody has looked and nothing of it is held', async () => {
    const schema = newSchema();
    const { store, advance, close } = await open(schema);
    const watched = async (): Promise<number[]> =>
      (await runSql(url, `SELECT cardinality(jobs) AS jobs FROM ${schema}.leases`)).map(
        (row) => (row as { jobs: number }).jobs,
      );
    await store.enqueue(newJobs(4));
    const request = claimRequest({ limit: 4, leaseMs: 10_000, queues: [quota({ share: 4 })] });
    const { jobs } = await store.claim(request);
    expect(await watched()).toEqual([4]);
    await store.settle(jobs.slice(0, 2).map((job) => settlement(job, complete)));
    expect(await watched()).toEqual([4]);
    const [, , third, fourth] = jobs as [never, never, (typeof jobs)[number], (typeof jobs)[number]];
    const fence = ({ id, run, worker }: typeof third) => ({ id, run, worker });
    await store.heartbeat([{ ...fence(third), leaseMs: 60_000 }]);
    await expectSoundTables(url, schema);
    await advance(11_000);
    expect((await store.expired(10)).map(({ id }) => id)).toEqual([fourth.id]);
    expect(await watched()).toEqual([2]);
    await store.settle([{ ...settlement(fourth, retryIn(0)), outcome: 'crashed' }]);
    expect(await store.expired(10)).toEqual([]);
    expect(await watched()).toEqual([1]);
    // A lease that a heartbeat shortens is looked after sooner.
    await store.heartbeat([{ ...fence(third), leaseMs: 1_000 }]);
    await expectSoundTables(url, schema);
    await advance(2_000);
    expect((await store.expired(10)).map(({ id }) => id)).toEqual([third.id]);
    await close();
  });
});
