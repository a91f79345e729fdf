import pg from 'pg';
import { describe, expect, inject, it } from 'vitest';
import { expectSoundTables, TestDatabase } from '../../../test/support/postgres-database.ts';
import { runSql } from '../../../test/support/postgres-schema.ts';
import { Two } from '../../../test/support/two-processes.ts';
import { StoreBusyError } from '../../errors.ts';
import type { LimitAction } from '../../limit/limit.ts';
import {
  claimRequest,
  complete,
  HOUR,
  jobOf,
  newJob,
  pruneWith,
  settlement,
  settleOne,
  startOne,
} from '../conformance/builders.ts';
import type { NewJob, Store } from '../store.ts';
import { PostgresStore } from './store.ts';

/* Jobs that do not wait behind a full key, and throttled ones, when processes meet. */

const url = inject('postgresUrl');
const SHOP = { limit: 'shop', key: 'a' };

function job(action: LimitAction['action'], changes: Partial<NewJob> = {}): NewJob {
  return newJob({ limits: [SHOP], onLimit: [{ ...SHOP, action }], ...changes });
}

/** At most one job of the key is live, and both processes know where it waits. */
async function openTwo(): Promise<Two> {
  const two = await Two.open(url);
  const settings = { concurrency: 1, total: null, rate: null };
  await two.other.writeLimits([{ limit: SHOP.limit, key: null, source: 'code', settings }]);
  for (const store of [two.late, two.other]) {
    const first = job('cancel-newest');
    expect(await store.enqueue([first])).toEqual([{ id: first.id, existed: false }]);
    await store.cancel([first.id]);
  }
  return two;
}

async function client(schema: string, isolation: string): Promise<pg.Client> {
  const connected = new pg.Client({ connectionString: url });
  await connected.connect();
  await connected.query(`BEGIN ISOLATION LEVEL ${isolation}`);
  await connected.query(`SELECT count(*) FROM ${schema}.live`);
  return connected;
}

const inside = (store: Store, tx: pg.Client, jobs: readonly NewJob[]) =>
  (store.transactions as NonNullable<Store['transactions']>).enqueue(tx, jobs);

describe('a key of a limit', () => {
  it('that another enqueue is filling is full for the next, once that is committed', async () => {
    await using two = await openTwo();
    const first = job('cancel-newest');
    const open = await two.begin(/enqueue/, (store) => store.enqueue([first]));
    const answer = await two.commitWhenBlocked(open, (store) => store.enqueue([job('cancel-newest')]));
    expect(await open.answer).toEqual([{ id: first.id, existed: false }]);
    expect(answer).toEqual([{ id: first.id, existed: true }]);
  });

  it('that a transaction of the caller fills is free again when that is rolled back', async () => {
    await using two = await openTwo();
    const tx = await client(two.schema, 'READ COMMITTED');
    const [first, second] = [job('cancel-newest'), job('cancel-newest')];
    expect(await inside(two.other, tx, [first])).toEqual([{ id: first.id, existed: false }]);
    expect((await inside(two.other, tx, [job('cancel-newest')]))[0]).toEqual({ id: first.id, existed: true });
    await tx.query('ROLLBACK');
    await tx.end();
    expect(await two.other.enqueue([second])).toEqual([{ id: second.id, existed: false }]);
  });

  it.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    'that was filled after a %s transaction began is a conflict for it',
    async (isolation) => {
      await using two = await openTwo();
      const tx = await client(two.schema, isolation);
      await two.other.enqueue([job('cancel-newest')]);
      await expect(inside(two.other, tx, [job('cancel-newest')])).rejects.toThrow(StoreBusyError);
      await tx.query('ROLLBACK');
      await tx.end();
      await expectSoundTables(url, two.schema);
    },
  );

  it('whose oldest job is being claimed lets that one run', async () => {
    await using two = await openTwo();
    const [first, second] = [job('cancel-oldest'), job('cancel-oldest')];
    await two.other.enqueue([first]);
    const open = await two.begin(/claim_limited/, (store) => store.claimLimited(claimRequest()));
    expect(await two.other.enqueue([second])).toEqual([{ id: second.id, existed: false }]);
    open.commit();
    expect((await open.answer).jobs.map(({ id }) => id)).toEqual([first.id]);
    const { state, cancelRequested } = await jobOf(two.other, first.id);
    expect([state, cancelRequested]).toEqual(['running', false]);
    await expectSoundTables(url, two.schema);
  });
});

describe.each(['read committed', 'repeatable read'])('on a server whose transactions are %s', (isolation) => {
  it('many processes that fill the same keys in different orders never exceed one, and hear of no conflict', async () => {
    await using database = await TestDatabase.create(url);
    await database.sql(`ALTER DATABASE ${database.name} SET default_transaction_isolation = '${isolation}'`);
    const stores = await Promise.all([1, 2, 3].map(() => PostgresStore.open({ url: database.url, wakeUps: false })));
    const settings = { concurrency: 2, total: null, rate: null };
    await stores[0]?.writeLimits([{ limit: SHOP.limit, key: null, source: 'code', settings }]);
    const batch = (): NewJob[] =>
      Array.from({ length: 8 }, (_, n) => {
        const at = { limit: SHOP.limit, key: `key ${n}` };
        return newJob({ limits: [at], onLimit: [{ ...at, action: 'cancel-newest' }] });
      });
    for (let round = 0; round < 6; round++) {
      await Promise.all(
        stores.map(async (store, index) => {
          await store.enqueue(index === 0 ? batch() : batch().toReversed());
          const { jobs } = await store.claimLimited(claimRequest({ worker: `w${index}`, limit: 4 }));
          await store.settle(jobs.map((one) => settlement(one, complete)));
        }),
      );
      const live = await database.sql('SELECT count(*)::int AS n FROM mulligan.live GROUP BY limits');
      expect(Math.max(...live.map((row) => (row as { n: number }).n))).toBeLessThanOrEqual(2);
    }
    for (const store of stores) await store.close();
    await expectSoundTables(database.url);
  });
});

describe('a throttled key', () => {
  const throttled = (): NewJob => newJob({ key: 'k', keyLife: 'window', windowMs: HOUR });

  it('whose window is over goes to one of two that want it at once', async () => {
    await using two = await openTwo();
    await two.other.enqueue([throttled()]);
    await two.advance(HOUR);
    const next = throttled();
    const open = await two.begin(/enqueue/, (store) => store.enqueue([next]));
    const answer = await two.commitWhenBlocked(open, (store) => store.enqueue([throttled()]));
    expect(answer).toEqual([{ id: next.id, existed: true }]);
  });

  it('is pruned when its window is over, and not with its job', async () => {
    await using two = await openTwo();
    const keys = async (): Promise<number> => (await runSql(url, `SELECT FROM ${two.schema}.keys`)).length;
    await settleOne(two.other, await startOne(two.other, throttled()), complete);
    const retention = { completedMs: 1, deadMs: null, cancelledMs: null };
    await two.advance(HOUR / 2);
    await pruneWith(two.other, retention, 10);
    expect(await keys()).toBe(1);
    await two.advance(HOUR / 2);
    expect((await pruneWith(two.other, retention, 10)).isDone).toBe(true);
    expect(await keys()).toBe(0);
  });
});
