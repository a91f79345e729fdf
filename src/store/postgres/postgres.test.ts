import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, inject, it } from 'vitest';
import { expectSoundTables } from '../../../test/support/postgres-database.ts';
import { movableTime, newSchema, runSql } from '../../../test/support/postgres-schema.ts';
import { expectErrorsStoredOnce } from '../../../test/support/stored-errors.ts';
import { systemClock } from '../../clock.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { STATE } from '../codes.ts';
import {
  claimRequest,
  complete,
  giveBack,
  newJob,
  newJobs,
  quota,
  retryIn,
  settlement,
} from '../conformance/builders.ts';
import { type StoreHarness, storeConformance } from '../conformance/index.ts';
import type { ClaimedJob, NewJob } from '../store.ts';
import { PostgresStore } from './store.ts';

const url = inject('postgresUrl');

async function open(
  schema = newSchema(),
  clock = systemClock,
): Promise<StoreHarness & { readonly store: PostgresStore }> {
  const store = await PostgresStore.open({ url, schema, clock });
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
  for (const { verb, name, run } of storeConformance(() => open())) {
    it(`${verb}: ${name}`, run);
  }
});

describe('a pardon after an outage', () => {
  /** For how long no lease counts as expired, in ms, when the store was away for 40 s. */
  async function pardonFor(leaseEndsIn: number, { lookedAgo = 60_000 } = {}): Promise<number> {
    const schema = newSchema();
    const { store, close } = await open(schema);
    await store.enqueue([newJob()]);
    await store.claim(claimRequest());
    await runSql(url, `UPDATE ${schema}.live SET lease_ends_at = ${schema}.now_ms() + $1`, [leaseEndsIn]);
    await runSql(url, `UPDATE ${schema}.rescues SET looked_at = ${schema}.now_ms() - $1`, [lookedAgo]);
    await runSql(url, `SELECT ${schema}.pardon(40000)`);
    const [row] = await runSql(url, `SELECT none_until - ${schema}.now_ms() AS ms FROM ${schema}.rescues`);
    await close();
    return Math.round(Number((row as { ms: unknown }).ms) / 1_000);
  }

  it.each<[string, number, number]>([
    ['a moment when no lease was in danger', 2 * 3_600_000, 3],
    ['half of what was left of a lease that has ended meanwhile', -20_000, 13],
    ['half of what was left of one that is about to end', 10_000, 28],
  ])('lasts %s, whoever returns first', async (_, leaseEndsIn, seconds) => {
    expect(await pardonFor(leaseEndsIn)).toBe(seconds);
  });

  it('is not given when somebody looked meanwhile', async () => {
    expect(await pardonFor(-20_000, { lookedAgo: 10_000 })).toBeLessThan(0);
  });
});

describe('a claim that was answered', () => {
  it('is not thrown away because the connection breaks before all names are read', async () => {
    const schema = newSchema();
    const setUp = await PostgresStore.open({ url, schema });
    await setUp.enqueue([newJob()]);
    await setUp.close();
    const pool = new pg.Pool({ connectionString: url, max: 3 });
    let breaks = 2;
    const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>;
    Object.assign(pool, {
      query: (...args: [{ text?: string }]) =>
        args[0].text?.includes('.kinds WHERE id = ANY') && breaks-- > 0
          ? Promise.reject(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
          : query(...args),
    });
    const store = await PostgresStore.open({ pool, schema, migrate: false });
    expect((await store.claim(claimRequest())).jobs).toHaveLength(1);
    expect(breaks).toBeLessThanOrEqual(0);
    await store.close();
    await pool.end();
    await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
  });
});

describe('what PostgreSQL keeps beside the jobs', () => {
  it('is one error for all runs of a settlement, which goes with the last of them', async () => {
    const schema = newSchema();
    const harness = await open(schema);
    await expectErrorsStoredOnce(harness, {
      read: async () =>
        (await runSql(url, `SELECT uses, error FROM ${schema}.errors ORDER BY id`)) as {
          uses: number;
          error: string;
        }[],
      expectSound: () => expectSoundTables(url, schema),
    });
    await harness.close();
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

  it('is no lease of a claim whose jobs have all ended', async () => {
    const schema = newSchema();
    const { store, advance, close } = await open(schema);
    const watched = async (): Promise<unknown> => (await runSql(url, `SELECT jobs FROM ${schema}.leases`)).length;
    const claim = async (): Promise<ClaimedJob[]> => {
      const request = claimRequest({ limit: 3, leaseMs: 10_000, queues: [quota({ share: 3, retry: 3 })] });
      return [...(await store.claim(request)).jobs];
    };
    const settle = (jobs: readonly ClaimedJob[], decision = complete): Promise<unknown> =>
      store.settle(jobs.map((job) => settlement(job, decision)));
    await store.enqueue(newJobs(9));
    const first = await claim();
    await settle(first.slice(0, 2));
    await settle(first.slice(2));
    const second = await claim();
    expect(await watched()).toBe(2);
    // The next settlement takes along what has ended before.
    await settle(second.slice(0, 1), retryIn(0));
    expect(await watched()).toBe(1);
    const third = await claim();
    const again = third.filter(({ id }) => id === second[0]?.id);
    expect(again).toHaveLength(1);
    await settle(second.slice(1));
    // Late, and about a run that is over: the job runs again, and its new lease stays.
    await settle(second.slice(0, 1));
    await settle(second.slice(0, 1), retryIn(0));
    const others = third.filter((job) => !again.includes(job));
    await settle(others);
    await settle(others);
    await expectSoundTables(url, schema);
    expect(await watched()).toBe(1);
    await advance(11_000);
    expect((await store.expired(10)).map(({ id }) => id)).toEqual(again.map(({ id }) => id));
    await close();
  });

  it('is the lease of a run whose transaction was rolled back', async () => {
    const schema = newSchema();
    const { store, close } = await open(schema);
    await store.enqueue(newJobs(2));
    const { jobs } = await store.claim(claimRequest({ limit: 2, queues: [quota({ share: 2 })] }));
    const [inTransaction, other] = jobs as [ClaimedJob, ClaimedJob];
    const work = store.transactions.settleWith(
      async (client) => {
        await client.query('CREATE TEMPORARY TABLE effects (at int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)', []);
        await client.query('INSERT INTO effects VALUES (1), (1)', []);
      },
      () => settlement(inTransaction, complete),
    );
    await expect(work).rejects.toThrow('duplicate key');
    await store.settle([settlement(other, complete)]);
    await store.settle([settlement(other, complete)]);
    await expectSoundTables(url, schema);
    await close();
  });

  describe('is a job that was committed after claims had passed its place', () => {
    /** A job that is written, then so much time, then another, which is claimed, and only then the commit. */
    async function commitLate(ms: number): Promise<{ readonly foundAtOnce: boolean }> {
      let time = 0;
      const { store, advance, close } = await open(newSchema(), { ...systemClock, monotonic: () => time });
      const claim = async (): Promise<string[]> => {
        const { jobs } = await store.claim(claimRequest({ limit: 9, queues: [quota({ share: 9 })] }));
        return jobs.map(({ id }) => id);
      };
      await store.enqueue(newJobs(1));
      await claim();
      const [late, early] = newJobs(2) as [NewJob, NewJob];
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query('BEGIN');
      await store.transactions.enqueue(client, [late]);
      await advance(ms);
      await store.enqueue([early]);
      expect(await claim()).toEqual([early.id]);
      expect(await claim()).toEqual([]);
      await client.query('COMMIT');
      await client.end();
      const found = await claim();
      time += 1_000;
      expect([...found, ...(await claim())]).toEqual([late.id]);
      await close();
      return { foundAtOnce: found.length > 0 };
    }

    it('which is found at once when the transaction was short', async () => {
      expect(await commitLate(2_000)).toEqual({ foundAtOnce: true });
    });

    it('which is found within a second when it was long', async () => {
      expect(await commitLate(10_000)).toEqual({ foundAtOnce: false });
    });
  });

  it('is a place for each job, where one that was given back is found at once', async () => {
    const { store, advance, close } = await open(newSchema(), { ...systemClock, monotonic: () => 0 });
    const claim = async (): Promise<ClaimedJob[]> => {
      const { jobs } = await store.claim(claimRequest({ limit: 9, queues: [quota({ share: 9 })] }));
      return [...jobs];
    };
    await store.enqueue(newJobs(3));
    const [first, second] = (await claim()) as [ClaimedJob, ClaimedJob];
    await advance(10_000);
    expect(await claim()).toEqual([]);
    await store.settle([settlement(first, giveBack('release')), settlement(second, complete)]);
    expect((await claim()).map(({ id, run }) => [id, run])).toEqual([[first.id, 2]]);
    await close();
  });

  it('is lines that may be opened while a claim is under way, which loses nothing by it', async () => {
    const { store, close } = await open();
    for (let round = 0; round < 30; round++) {
      const [here, there] = [`here-${round}`, `there-${round}`];
      const [job] = await store.enqueue([newJob({ queue: here })]);
      const opened = store.enqueue([newJob({ queue: there })]);
      await sleep(round % 3);
      const { jobs } = await store.claim(claimRequest({ queues: [quota({ queue: here, share: 9 })] }));
      expect(jobs.map(({ id, run }) => [id, run])).toEqual([[job?.id, 1]]);
      await opened;
    }
    await close();
  });

  describe('is numbers for names, which are learnt anew when the tables were made anew', () => {
    /** A store that knows the names of a schema which was made anew since, and has other numbers for them now. */
    async function replaced(use: (before: PostgresStore, after: PostgresStore) => Promise<void>): Promise<void> {
      const schema = newSchema();
      const before = await PostgresStore.open({ url, schema });
      await before.enqueue([named('alpha'), named('beta')]);
      await before.claim(request);
      await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
      const after = await PostgresStore.open({ url, schema });
      await after.enqueue([named('beta')]);
      await use(before, after);
      await before.close();
      await after.close();
      await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
    }
    const named = (name: string): NewJob => newJob({ name, queue: name });
    const request = claimRequest({ limit: 9, queues: [quota({ queue: 'alpha' }), quota({ queue: 'beta' })] });

    it('by an enqueue', () =>
      replaced(async (before, after) => {
        const jobs = [named('alpha'), named('beta')];
        await before.enqueue(jobs);
        const stored = await after.get(jobs.map(({ id }) => id));
        expect(stored.map(({ name, queue }) => [name, queue])).toEqual([
          ['alpha', 'alpha'],
          ['beta', 'beta'],
        ]);
      }));

    it('by an enqueue in a transaction, for the next one', () =>
      replaced(async (before, after) => {
        const client = new pg.Client({ connectionString: url });
        await client.connect();
        await client.query('BEGIN');
        await expect(before.transactions.enqueue(client, [named('alpha')])).rejects.toMatchObject({
          code: 'STORE_BUSY',
        });
        await client.query('ROLLBACK; BEGIN');
        const job = named('alpha');
        await before.transactions.enqueue(client, [job]);
        await client.query('COMMIT');
        await client.end();
        expect((await after.get([job.id])).map(({ name }) => name)).toEqual(['alpha']);
      }));

    it('by a claim', () =>
      replaced(async (before) => {
        expect((await before.claim(request)).jobs.map(({ name }) => name)).toEqual(['beta']);
      }));
  });

  it('is what a transaction of the caller cannot see yet', async () => {
    const { store, close } = await open();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    for (const isolation of ['REPEATABLE READ', 'SERIALIZABLE']) {
      await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
      await client.query('SELECT count(*) FROM pg_class');
      const job = newJob({ name: isolation, queue: isolation, key: 'once', priority: 3 });
      expect(await store.transactions.enqueue(client, [job])).toEqual([{ id: job.id, existed: false }]);
      await client.query('COMMIT');
      const [stored] = await store.get([job.id]);
      expect(stored).toMatchObject({ name: isolation, queue: isolation, priority: 3 });
    }
    await client.end();
    await close();
  });

  it('is looked up job by job, even when the statistics say that hardly one is left', async () => {
    const schema = newSchema();
    const { store, close } = await open(schema);
    await store.enqueue(newJobs(500));
    const [job] = (await store.claim(claimRequest({ limit: 1 }))).jobs as [ClaimedJob];
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`SET search_path = ${schema}`);
    // As after a vacuum of a large table whose jobs have nearly all ended.
    await client.query(`UPDATE pg_class SET reltuples = 1, relpages = 60000 WHERE oid = 'live'::regclass`);
    const fetched = async (call: string): Promise<number> => {
      await client.query('BEGIN');
      await client.query(call);
      const { rows } = await client.query<{ fetched: number }>(
        `SELECT idx_tup_fetch::int AS fetched FROM pg_stat_xact_user_tables WHERE relid = 'live'::regclass`,
      );
      await client.query('ROLLBACK');
      return rows[0]?.fetched ?? 0;
    };
    const id = `ARRAY['${job.id}']::uuid[]`;
    const none = `'{}'::bigint[]`;
    const calls = [
      `SELECT complete(${id}, '{1}', 1, '{}', '{1}', '{1}', ${none})`,
      `SELECT heartbeat(${id}, '{1}', '{1}', '{1000}', '{NULL}')`,
      `SELECT settle(${id}, '{1}', '{1}', '{1}', '{2}', '{t}', '{9}', '{1}', '{9}', '{NULL}', '{NULL}', '{1}', '{1}',
         '{1}', '{}', '{"{}"}', ${none})`,
      `SELECT claim(1, 1000, 1, '{default}', '{1}', '{0}', '{0}', '{0}', '{NULL}', '{1}', '{1}', '{0}', '{5}', '{0}',
         '{0}', '{9999999999999}', '{0}', 1)`,
    ];
    for (const call of calls) expect(await fetched(call)).toBeLessThan(10);
    await client.end();
    await close();
  });

  it('is not read by pruning while it is too young', async () => {
    const schema = newSchema();
    const { store, close } = await open(schema);
    await store.enqueue(newJobs(100));
    const { jobs } = await store.claim(claimRequest({ limit: 100, queues: [quota({ share: 100 })] }));
    await store.settle(jobs.map((job) => settlement(job, complete)));
    const read = async (): Promise<unknown> => {
      const [counted] = await runSql(
        url,
        `SELECT idx_tup_read::int AS read FROM pg_stat_user_indexes
         WHERE schemaname = '${schema}' AND indexrelname = 'finished_by_age'`,
      );
      return counted;
    };
    const prune = (keepMs: number): Promise<unknown> =>
      runSql(
        url,
        `SELECT pg_stat_force_next_flush(), p.*
         FROM ${schema}.prune(${STATE.completed}::smallint, 0, ${keepMs}, 10) p`,
      );
    await prune(60_000);
    expect(await read()).toEqual({ read: 0 });
    await prune(-1);
    expect(await read()).toEqual({ read: 10 });
    await close();
  });
});

describe('notices to other processes', () => {
  it('come one per enqueue as long as there are few, and then together', async () => {
    const schema = newSchema();
    const clock = new VirtualClock();
    const { store, close } = await open(schema, clock);
    const listener = new pg.Client(url);
    await listener.connect();
    let heard = 0;
    listener.on('notification', () => heard++);
    await listener.query(`LISTEN mulligan_${schema}`);
    /** What was sent before a query is heard before its answer. */
    const hear = async (count: number): Promise<number> => {
      for (let tries = 0; tries < 100 && heard < count; tries++) await listener.query('SELECT pg_sleep(0.02)');
      await listener.query('SELECT 1');
      return heard;
    };
    for (let sent = 0; sent < 8; sent++) await store.enqueue([newJob()]);
    expect(await hear(5)).toBe(5);
    await clock.advance(10);
    expect(await hear(6)).toBe(6);
    await clock.advance(100);
    await store.enqueue([newJob()]);
    expect(await hear(7)).toBe(7);
    await listener.end();
    await close();
  });
});
