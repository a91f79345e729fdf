import pg from 'pg';
import { afterAll, describe, expect, inject, it, vi } from 'vitest';
import { expectSoundTables } from '../../../test/support/postgres-database.ts';
import { movableTime, newSchema, ReusedSchemas, runSql } from '../../../test/support/postgres-schema.ts';
import { expectErrorsStoredOnce } from '../../../test/support/stored-errors.ts';
import { systemClock } from '../../clock.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { STATE } from '../codes.ts';
import {
  claimRequest,
  complete,
  die,
  giveBack,
  newJob,
  newJobs,
  pruneWith,
  quota,
  redrive,
  retryIn,
  settlement,
} from '../conformance/builders.ts';
import { type StoreHarness, storeConformance } from '../conformance/index.ts';
import type { ClaimedJob, NewJob } from '../store.ts';
import { Database } from './connection/database.ts';
import { functions } from './schema/functions.ts';
import { IDENTITY } from './schema/identity.ts';
import { PostgresStore } from './store.ts';

const url = inject('postgresUrl');

async function open(
  schema = newSchema(),
  clock = systemClock,
): Promise<StoreHarness & { readonly store: PostgresStore }> {
  const store = await PostgresStore.open({ url, schema, clock });
  await movableTime(url, schema);
  return harness(store, schema, () => runSql(url, `DROP SCHEMA ${schema} CASCADE`));
}

function harness(
  store: PostgresStore,
  schema: string,
  done: () => Promise<unknown>,
): StoreHarness & { readonly store: PostgresStore } {
  return {
    store,
    async advance(ms) {
      await runSql(url, `UPDATE ${schema}.test_time SET shift = shift + $1`, [ms]);
    },
    async close() {
      await store.close();
      await done();
    },
  };
}

describe('the PostgreSQL store keeps the contract', () => {
  const schemas = new ReusedSchemas(url);
  afterAll(() => schemas.drop());

  async function openEmpty(): Promise<StoreHarness> {
    const schema = await schemas.take(async (name) => (await PostgresStore.open({ url, schema: name })).close());
    return harness(await PostgresStore.open({ url, schema }), schema, () => schemas.giveBack(schema));
  }

  for (const { verb, name, run } of storeConformance(openEmpty)) {
    it(`${verb}: ${name}`, run);
  }
});

describe('lease expiry after an outage', () => {
  /** Jobs that count as expired, their leases having ended a second ago, when this process could not reach the server. */
  async function expiredAfter(awayMs: number, lookedAgoMs: number): Promise<number> {
    const schema = newSchema();
    const { store, advance, close } = await open(schema);
    await store.enqueue([newJob()]);
    await store.claim(claimRequest({ leaseMs: 30_000 }));
    await advance(31_000);
    await runSql(url, `UPDATE ${schema}.expiry SET looked_at = ${schema}.now_ms() - $1`, [lookedAgoMs]);
    const takeAwayMs = vi.spyOn(Database.prototype, 'takeAwayMs').mockReturnValueOnce(awayMs);
    const found = (await store.expired(10)).length;
    takeAwayMs.mockRestore();
    if (found === 0) {
      // Three seconds and a third of the lease.
      await advance(12_000);
      expect(await store.expired(10)).toEqual([]);
      await advance(1_001);
      expect(await store.expired(10)).toHaveLength(1);
    }
    await close();
    return found;
  }

  it('is suspended until workers have had time to renew, and then goes on', async () => {
    expect(await expiredAfter(40_000, 60_000)).toBe(0);
  });

  it('is not suspended when another process looked meanwhile', async () => {
    expect(await expiredAfter(40_000, 10_000)).toBe(1);
  });

  it('is not suspended when the server could be reached', async () => {
    expect(await expiredAfter(0, 60_000)).toBe(1);
  });

  it('is suspended by a search that had to wait, which finds nothing itself and is no sign of life', async () => {
    const schema = newSchema();
    const { store, advance, close } = await open(schema);
    await store.enqueue([newJob()]);
    await store.claim(claimRequest({ leaseMs: 30_000 }));
    await advance(31_000);
    const locker = new pg.Client({ connectionString: url });
    await locker.connect();
    await locker.query(`BEGIN; SELECT 1 FROM ${schema}.expiry FOR UPDATE`);
    const waiting = store.expired(10);
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await locker.end();
    expect(await waiting).toEqual([]);
    expect(await store.expired(10)).toEqual([]);
    await advance(13_001);
    expect(await store.expired(10)).toHaveLength(1);
    await close();
  });
});

describe('a claim that was answered', () => {
  it('is kept when the connection breaks before its job types are read', async () => {
    const schema = newSchema();
    const setUp = await PostgresStore.open({ url, schema });
    await setUp.enqueue([newJob()]);
    await setUp.close();
    const pool = new pg.Pool({ connectionString: url, max: 4 });
    let breaks = 2;
    pool.on('connect', (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
      Object.assign(client, {
        query: (...args: [{ text?: string }]) =>
          args[0].text?.includes('.job_types WHERE id = ANY') && breaks-- > 0
            ? Promise.reject(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
            : query(...args),
      });
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

  it('is one row of leases per claim, which is deleted when it is checked and none of its jobs is held', async () => {
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
    // A lease that a heartbeat shortens is checked sooner.
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
      return (rows[0] as { fetched: number }).fetched;
    };
    const [known] = await runSql(url, `SELECT ${IDENTITY} AS identity FROM ${schema}.schema_identity`);
    const identity = `'${(known as { identity: string }).identity}'`;
    const id = `ARRAY['${job.id}']::uuid[]`;
    const none = `'{}'::bigint[]`;
    const calls = [
      `SELECT @.complete(${identity}, ${id}, '{1}', 1, '{}', '{1}', '{1}', ${none}, NULL, NULL, '{}', '{}', '{}',
         '{1}', '{log}')`,
      `SELECT @.heartbeat(${id}, '{1}', '{1}', '{1000}', '{NULL}', '{NULL}')`,
      `SELECT @.settle(${identity}, ${id}, '{1}', '{1}', '{1}', '{2}', '{t}', '{9}', '{1}', '{9}', '{NULL}', '{1}', '{1}',
         '{1}', '{1}', '{"{}"}', '{"{}"}', ${none}, ${none}, NULL, NULL, NULL, '{e1}', NULL, NULL, '{}', '{}', '{}',
         '{1}', '{log}')`,
      `SELECT @.claim(${identity}, 1, 1000, 1, 9999, '{default}', '{f}', '{NULL}', '{1}', 1, '{1}', '{1}', '{0}', '{t}', '{0}',
         '{0}', '{9999999999999}', '{0}', '{1}', '{1}', '{default}', '{}', '{}')`,
    ].map((call) => functions.resolve(call, schema));
    for (const call of calls) {
      const count = await fetched(call);
      expect(count).toBeGreaterThan(0);
      expect(count).toBeLessThan(20);
    }
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
        functions.resolve(
          `SELECT pg_stat_force_next_flush(), p.* FROM @.prune(${STATE.completed}::smallint, ${keepMs}, 0, '00000000-0000-0000-0000-000000000000', '{}', true, 10, 10) p`,
          schema,
        ),
      );
    await prune(60_000);
    expect(await read()).toEqual({ read: 0 });
    await prune(-1);
    expect(await read()).toEqual({ read: 10 });
    await close();
  });
});

describe('a job that lies where claims have passed', () => {
  /** A store whose back-scans run only when the test says so. */
  async function openStill(
    schema = newSchema(),
  ): Promise<StoreHarness & { claim(): Promise<string[]>; pass(ms: number): void }> {
    let time = 0;
    const harness = await open(schema, { ...systemClock, monotonic: () => time });
    return {
      ...harness,
      claim: async () => {
        const { jobs } = await harness.store.claim(claimRequest({ limit: 9, queues: [quota({ share: 9 })] }));
        return jobs.map(({ id }) => id);
      },
      pass: (ms) => {
        time += ms;
      },
    };
  }

  /** A job that is written, then so much time, then another, which is claimed, and only then the commit. */
  async function commitLate(ms: number): Promise<{ readonly foundAtOnce: boolean }> {
    const { store, advance, claim, pass, close } = await openStill();
    await store.enqueue(newJobs(1));
    await claim();
    const [late, early] = newJobs(2) as [NewJob, NewJob];
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('BEGIN');
    await store.transactions?.enqueue(client, [late]);
    await advance(ms);
    await store.enqueue([early]);
    expect(await claim()).toEqual([early.id]);
    expect(await claim()).toEqual([]);
    await client.query('COMMIT');
    await client.end();
    const found = await claim();
    pass(1_000);
    expect([...found, ...(await claim())]).toEqual([late.id]);
    await close();
    return { foundAtOnce: found.length > 0 };
  }

  it('is claimed at once when it was committed late by a short transaction', async () => {
    expect(await commitLate(2_000)).toEqual({ foundAtOnce: true });
  });

  it('is claimed after the next back-scan when it was committed late by a long transaction', async () => {
    expect(await commitLate(10_000)).toEqual({ foundAtOnce: false });
  });

  it('is claimed at once when its worker gave it back', async () => {
    const { store, advance, claim, close } = await openStill();
    await store.enqueue(newJobs(3));
    const { jobs } = await store.claim(claimRequest({ limit: 9 }));
    const [first, second] = jobs as [ClaimedJob, ClaimedJob];
    await advance(10_000);
    expect(await claim()).toEqual([]);
    await store.settle([settlement(first, giveBack('release')), settlement(second, complete)]);
    expect(await claim()).toEqual([first.id]);
    await close();
  });

  it('is claimed at once when this process enqueued it with a due time in the past', async () => {
    const { store, claim, close } = await openStill();
    await store.enqueue(newJobs(1));
    await claim();
    expect(await claim()).toEqual([]);
    const past = newJob({ dueAt: Date.now() - 3_600_000 });
    const present = newJob();
    await store.enqueue([present, past]);
    expect((await claim()).sort()).toEqual([past.id, present.id].sort());
    await close();
  });

  /** A second process, which does its work after the claims of the first have passed, and which the first listens to. */
  async function hearOther(
    prepare: (other: PostgresStore) => Promise<void>,
    work: (other: PostgresStore) => Promise<unknown>,
  ): Promise<string[]> {
    const schema = newSchema();
    const { store, advance, claim, close } = await openStill(schema);
    const other = await PostgresStore.open({ url, schema });
    await prepare(other);
    const hints: (() => void)[] = [];
    store.onWork(() => hints.shift()?.());
    const listens = `SELECT 1 FROM pg_stat_activity WHERE query = 'LISTEN mulligan_${schema}' AND state = 'idle'`;
    await expect.poll(async () => (await runSql(url, listens)).length).toBe(1);
    await store.enqueue(newJobs(1));
    expect(await claim()).toHaveLength(1);
    await advance(10_000);
    expect(await claim()).toEqual([]);
    const hint = new Promise<void>((resolve) => hints.push(resolve));
    await work(other);
    await hint;
    const found = await claim();
    await other.close();
    await close();
    return found;
  }

  it('is claimed at once when another process enqueued it with a due time in the past, and notified this one', async () => {
    const past = newJob({ dueAt: Date.now() - 3_600_000 });
    const found = await hearOther(
      async () => {},
      (other) => other.enqueue([past]),
    );
    expect(found).toEqual([past.id]);
  });

  it('is claimed at once when a worker of another process gave it back', async () => {
    let held: ClaimedJob | undefined;
    const found = await hearOther(
      async (other) => {
        await other.enqueue(newJobs(1));
        held = (await other.claim(claimRequest())).jobs[0];
      },
      (other) => other.settle([settlement(held as ClaimedJob, giveBack('release'))]),
    );
    expect(found).toEqual([held?.id]);
  });

  it('is claimed when it was due before 1970', async () => {
    const { store, claim, close } = await openStill();
    const ancient = newJob({ dueAt: Date.UTC(1400, 0, 1) });
    await store.enqueue([ancient]);
    expect(await claim()).toEqual([ancient.id]);
    await close();
  });
});

describe('partitions', () => {
  const hosts = (count: number): NewJob[] =>
    Array.from({ length: count }, (_, index) => newJob({ resource: `host-${index}` }));
  const claimAll = async (store: PostgresStore, limit = 1_000): Promise<string[]> =>
    (await store.claim(claimRequest({ limit, queues: [quota({ share: limit })] }))).jobs.map(({ id }) => id);
  const parked = async (schema: string): Promise<number> => {
    const sql = `SELECT count(*)::int AS parked FROM ${schema}.partitions WHERE admissible_at > ${schema}.now_ms()`;
    return ((await runSql(url, sql))[0] as { parked: number }).parked;
  };

  it('that another process made are read by the next claim that has room', async () => {
    const schema = newSchema();
    const { store, close } = await open(schema);
    const other = await PostgresStore.open({ url, schema });
    await store.enqueue(newJobs(1));
    expect(await claimAll(store)).toHaveLength(1);
    const job = newJob({ priority: 1, resource: 'smtp' });
    await other.enqueue([job]);
    expect(await claimAll(store)).toEqual([job.id]);
    await other.close();
    await close();
  });

  it('are all read by a claim of several queues, also when a claim of one of them is offered only some', async () => {
    const schema = newSchema();
    const { store, close } = await open(schema);
    await store.enqueue(hosts(75));
    const claimFrom = async (limit: number, ...queues: string[]): Promise<number> =>
      (await store.claim(claimRequest({ limit, queues: queues.map((queue) => quota({ queue, share: limit })) }))).jobs
        .length;
    expect(await claimFrom(1, 'default', 'other')).toBe(1);
    expect(await claimFrom(1, 'default')).toBe(1);
    expect(await claimFrom(1_000, 'default', 'other')).toBe(73);
    await close();
  });

  it('that are few are never written by claims', async () => {
    const schema = newSchema();
    const { store, close } = await open(schema);
    await store.enqueue(hosts(20));
    const written = async (): Promise<unknown> =>
      runSql(url, `SELECT id, xmin::text FROM ${schema}.partitions ORDER BY id`);
    const before = await written();
    expect(await claimAll(store)).toHaveLength(20);
    expect(await claimAll(store)).toEqual([]);
    expect(await written()).toEqual(before);
    await close();
  });

  it('that are many are parked when they have no due job, and a job ends that', async () => {
    const schema = newSchema();
    const { store, close } = await open(schema);
    await store.enqueue(hosts(200));
    expect(await claimAll(store)).toHaveLength(200);
    expect(await claimAll(store)).toEqual([]);
    expect(await parked(schema)).toBe(200);
    const job = newJob({ resource: 'host-123' });
    await store.enqueue([job]);
    expect(await parked(schema)).toBe(199);
    expect(await claimAll(store)).toEqual([job.id]);
    await close();
  });

  it('are not parked while an open transaction has put a job into them', async () => {
    const schema = newSchema();
    const { store, close } = await open(schema);
    await store.enqueue(hosts(200));
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('BEGIN');
    const job = newJob({ resource: 'host-123' });
    await store.transactions.enqueue(client, [job]);
    expect(await claimAll(store)).toHaveLength(200);
    expect(await claimAll(store)).toEqual([]);
    expect(await parked(schema)).toBe(199);
    await client.query('COMMIT');
    await client.end();
    expect(await claimAll(store)).toEqual([job.id]);
    await close();
  });

  it('without due jobs that an open transaction keeps from being parked do not hide another one', async () => {
    const schema = newSchema();
    const { store, close } = await open(schema);
    await store.enqueue(hosts(200));
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('BEGIN');
    await store.transactions.enqueue(client, hosts(100));
    expect(await claimAll(store)).toHaveLength(200);
    expect(await claimAll(store)).toEqual([]);
    expect(await parked(schema)).toBe(100);
    const job = newJob({ resource: 'host-150' });
    await store.enqueue([job]);
    expect(await claimAll(store, 10)).toEqual([job.id]);
    await client.query('ROLLBACK');
    await client.end();
    await close();
  });

  const KEEP_ALL = { completedMs: null, deadMs: null, cancelledMs: null };
  const count = async (schema: string): Promise<number> => {
    const sql = `SELECT count(*)::int AS count FROM ${schema}.partitions WHERE resource <> ''`;
    return ((await runSql(url, sql))[0] as { count: number }).count;
  };
  /** Pruning looks as often as the test asks: in this clock nothing takes time. */
  const openStill = (schema: string) => open(schema, { ...systemClock, monotonic: () => 0 });

  it('with a resource are deleted by pruning when no job waits or runs in them', async () => {
    const schema = newSchema();
    const { store, close } = await openStill(schema);
    await store.enqueue([...hosts(5_000), newJob()]);
    const claimed: ClaimedJob[] = [];
    while (claimed.length < 5_001) {
      const { jobs } = await store.claim(claimRequest({ limit: 1_000, queues: [quota({ share: 1_000 })] }));
      claimed.push(...jobs);
    }
    const running = claimed.find(({ resource }) => resource !== null) as ClaimedJob;
    await store.settle(claimed.filter((job) => job !== running).map((job) => settlement(job, complete)));
    const waiting = newJob({ resource: 'host-waiting', delayMs: 60_000 });
    await store.enqueue([waiting]);
    for (let n = 0; n < 6; n++) await pruneWith(store, KEEP_ALL, 10);
    expect(await count(schema)).toBe(2);
    await store.settle([settlement(running, complete)]);
    await store.cancel([waiting.id]);
    for (let n = 0; n < 2; n++) await pruneWith(store, KEEP_ALL, 10);
    expect(await count(schema)).toBe(0);
    expect(await runSql(url, `SELECT resource FROM ${schema}.partitions`)).toEqual([{ resource: '' }]);
    await expectSoundTables(url, schema);
    await close();
  });

  it('that were deleted are made again by whatever puts a job into them, as held as before', async () => {
    const schema = newSchema();
    const { store, close } = await openStill(schema);
    const resource = 'smtp';
    const pruneAll = async (): Promise<void> => {
      await pruneWith(store, KEEP_ALL, 10);
      expect(await count(schema)).toBe(0);
    };
    const start = async (): Promise<ClaimedJob> => {
      const { jobs } = await store.claim(
        claimRequest({ limit: 9, queues: [quota({ share: 9, retry: 9, redrive: 9 })] }),
      );
      expect(jobs).toHaveLength(1);
      return jobs[0] as ClaimedJob;
    };
    for (let round = 0; round < 2; round++) {
      await store.enqueue([newJob({ resource })]);
      const first = await start();
      // In the second round, the number of the retry partition is known, and the partition is gone.
      await runSql(
        url,
        `DELETE FROM ${schema}.partitions p WHERE resource <> '' AND NOT EXISTS (
        SELECT 1 FROM ${schema}.live l WHERE l.partition = p.id)`,
      );
      expect(await store.settle([settlement(first, retryIn(0))])).toEqual(['settled']);
      const retried = await start();
      expect(retried.id).toBe(first.id);
      await store.settle([settlement(retried, die())]);
      await pruneAll();
      expect((await redrive(store, { ids: [first.id] })).ids).toEqual([first.id]);
      await store.settle([settlement(await start(), complete)]);
      await pruneAll();
    }
    await store.hold({ resource }, null);
    const held = newJob({ resource });
    await store.enqueue([held]);
    expect((await store.claim(claimRequest())).jobs).toEqual([]);
    await store.cancel([held.id]);
    await pruneAll();
    await store.enqueue([newJob({ resource })]);
    expect((await store.claim(claimRequest())).jobs).toEqual([]);
    await store.release({ resource });
    await start();
    await expectSoundTables(url, schema);
    await close();
  });

  it.each([
    ['READ COMMITTED', 0],
    ['REPEATABLE READ', 1_001],
    ['SERIALIZABLE', 1_001],
  ])(
    'that were deleted or parked do not disturb a %s transaction of the caller, and its jobs start %i ms after it at the latest',
    async (isolation, latestMs) => {
      const schema = newSchema();
      const { store, advance, close } = await openStill(schema);
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await store.enqueue(hosts(201));
      // The numbers of all are known. One is deleted, the others are parked, after the transaction took its snapshot.
      await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
      await client.query(`SELECT count(*) FROM ${schema}.partitions`);
      const { jobs } = await store.claim(claimRequest({ limit: 300, queues: [quota({ share: 300 })] }));
      await store.settle(jobs.map((job) => settlement(job, complete)));
      expect(jobs).toHaveLength(201);
      expect(await claimAll(store)).toEqual([]);
      expect(await parked(schema)).toBe(201);
      await runSql(url, `DELETE FROM ${schema}.partitions WHERE resource = 'host-7'`);
      const added = ['host-7', 'host-8', 'host-new'].map((resource) => newJob({ resource }));
      expect(await store.transactions.enqueue(client, added)).toHaveLength(3);
      // Neither pruning nor parking gets in between.
      await pruneWith(store, KEEP_ALL, 10);
      expect(await claimAll(store)).toEqual([]);
      await client.query('COMMIT');
      await client.end();
      await expectSoundTables(url, schema);
      const ids = added.map(({ id }) => id).sort();
      await advance(latestMs);
      expect((await claimAll(store)).sort()).toEqual(ids);
      await close();
    },
  );

  it('are taken out of their parking also when another transaction that did so is rolled back', async () => {
    const schema = newSchema();
    const { store, close } = await openStill(schema);
    await store.enqueue(hosts(200));
    expect(await claimAll(store)).toHaveLength(200);
    expect(await claimAll(store)).toEqual([]);
    expect(await parked(schema)).toBe(200);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('BEGIN');
    await store.transactions.enqueue(client, [newJob({ resource: 'host-123' })]);
    const job = newJob({ resource: 'host-123' });
    await store.enqueue([job]);
    await client.query('ROLLBACK; BEGIN');
    await client.query(`UPDATE ${schema}.partitions SET admissible_at = 0 WHERE resource = 'host-124'`);
    const next = newJob({ resource: 'host-124' });
    const answer = store.enqueue([next]);
    const waits = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${schema}%'`;
    await expect.poll(async () => (await runSql(url, waits)).length).toBe(1);
    await client.query('ROLLBACK');
    await answer;
    await client.end();
    expect((await claimAll(store)).sort()).toEqual([job.id, next.id].sort());
    await close();
  });

  it('of a queue are held when they are made beside the hold', async () => {
    const schema = newSchema();
    const { store, close } = await open(schema);
    for (let round = 0; round < 20; round++) {
      const queue = `q${round}`;
      await Promise.all([store.enqueue([newJob({ queue })]), store.hold({ queue }, null)]);
      const { jobs } = await store.claim(claimRequest({ queues: [quota({ queue })] }));
      expect(jobs).toEqual([]);
    }
    await close();
  });
});

describe('a batch of settlements', () => {
  it('is settled except for the row that cannot be stored', async () => {
    const { store, close } = await open();
    await store.enqueue(newJobs(10));
    const { jobs } = await store.claim(claimRequest({ limit: 10, queues: [quota({ share: 10 })] }));
    const settlements = jobs.map((job, index) => ({
      ...settlement(job, index % 2 === 0 ? complete : retryIn(60_000)),
      ...(index === 3 ? { startedAt: 0.5 } : {}),
    }));
    await expect(store.settle(settlements)).rejects.toThrow('cannot hold this value');
    const states = (await store.get(jobs.map(({ id }) => id))).map(({ state }) => state);
    expect(states.map((state, index) => [index, state]).filter(([, state]) => state === 'running')).toEqual([
      [3, 'running'],
    ]);
    await close();
  });
});

describe('totals', () => {
  it('are kept by queue and name, however many policies there are', async () => {
    const schema = newSchema();
    const { store, close } = await open(schema);
    const base = newJob().policy;
    await store.enqueue(Array.from({ length: 30 }, (_, n) => newJob({ policy: { ...base, deadlineMs: 1_000 + n } })));
    const { jobs } = await store.claim(claimRequest({ limit: 30, queues: [quota({ share: 30 })] }));
    await store.settle(jobs.map((job) => settlement(job, complete)));
    await pruneWith(store, { completedMs: null, deadMs: null, cancelledMs: null }, 10);
    expect(await runSql(url, `SELECT enqueued::int, completed::int FROM ${schema}.counts`)).toEqual([
      { enqueued: 30, completed: 30 },
    ]);
    const { rows } = await store.stats();
    expect(rows).toMatchObject([{ queue: 'default', name: 'email.send', totals: { enqueued: 30 } }]);
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
    const heard: string[] = [];
    listener.on('notification', ({ payload }) => heard.push(payload ?? ''));
    await listener.query(`LISTEN mulligan_${schema}`);
    /** What was sent before a query is heard before its answer. */
    const hear = async (count: number): Promise<number> => {
      for (let tries = 0; tries < 100 && heard.length < count; tries++) await listener.query('SELECT pg_sleep(0.02)');
      await listener.query('SELECT 1');
      return heard.length;
    };
    for (let sent = 0; sent < 8; sent++) await store.enqueue([newJob({ dueAt: sent === 6 ? 0 : null })]);
    expect(await hear(5)).toBe(5);
    await clock.advance(10);
    expect(await hear(6)).toBe(6);
    // One of those that it stands for lies in the past.
    expect(heard.map((payload) => payload.endsWith(' past'))).toEqual([false, false, false, false, false, true]);
    await clock.advance(100);
    await store.enqueue([newJob()]);
    expect(await hear(7)).toBe(7);
    expect(heard[6]?.endsWith(' past')).toBe(false);
    await listener.end();
    await close();
  });
});
