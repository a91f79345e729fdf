import pg from 'pg';
import { describe, expect, inject, it } from 'vitest';
import { expectSoundTables } from '../../../test/support/postgres-database.ts';
import { movableTime, newSchema, runSql } from '../../../test/support/postgres-schema.ts';
import { Two } from '../../../test/support/two-processes.ts';
import type { LimitKey } from '../../limit/limit.ts';
import {
  claim,
  claimRequest,
  complete,
  HOUR,
  newJobs,
  pruneWith,
  retryIn,
  settlement,
  settleOne,
} from '../conformance/builders.ts';
import type { ClaimedJob, ClaimRequest, LimitOverride, NewJob, Store } from '../store.ts';
import { functions } from './schema/functions.ts';
import { RECHECK_MS } from './sql/limits.ts';
import { PostgresStore } from './store.ts';

/* Limits, when processes meet, and what they cost: see sql/limits.ts. */

const url = inject('postgresUrl');

async function allow(store: Store, settings: LimitOverride, limit = 'shop'): Promise<void> {
  const all = { concurrency: null, total: null, rate: null, ...settings };
  await store.writeLimits([{ limit, key: null, source: 'code', settings: all }]);
}

function behind(key: string, limit = 'shop'): LimitKey {
  return { limit, key };
}

function jobs(count: number, limits: readonly LimitKey[]): NewJob[] {
  return newJobs(count, { limits });
}

async function claimLimited(store: Store, changes: Partial<ClaimRequest> = {}): Promise<ClaimedJob[]> {
  return (await store.claimLimited(claimRequest(changes))).jobs;
}

async function settleAll(store: Store, claimed: readonly ClaimedJob[]): Promise<void> {
  if (claimed.length === 0) return;
  await store.settle(claimed.map((job) => settlement(job, complete)));
}

async function count(schema: string, from: string): Promise<number> {
  const [row] = await runSql(url, `SELECT count(*)::int AS count FROM ${schema}.${from}`);
  return (row as { count: number }).count;
}

/** A schema of its own, and as many processes on it as the test opens. */
class Queue implements AsyncDisposable {
  readonly schema: string = newSchema();
  readonly #stores: Store[] = [];

  static async open(): Promise<Queue> {
    const queue = new Queue();
    await queue.process();
    await movableTime(url, queue.schema);
    return queue;
  }

  get store(): Store {
    return this.#stores[0] as Store;
  }

  async process(): Promise<Store> {
    const store = await PostgresStore.open({ url, schema: this.schema, wakeUps: false });
    this.#stores.push(store);
    return store;
  }

  async advance(ms: number): Promise<void> {
    await runSql(url, `UPDATE ${this.schema}.test_time SET shift = shift + $1`, [ms]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()));
    await runSql(url, `DROP SCHEMA ${this.schema} CASCADE`);
  }
}

describe('processes that claim behind one limit at once', () => {
  it('never exceed it, also when one of them goes in the middle', async () => {
    await using queue = await Queue.open();
    const { store, schema } = queue;
    await allow(store, { concurrency: 2, total: 7 });
    const keys = Array.from({ length: 6 }, (_, index) => `key ${index}`);
    for (const key of keys) await store.enqueue(jobs(20, [behind(key)]));
    const stores = [await queue.process(), await queue.process(), await queue.process()];
    const exceeded: unknown[] = [];
    const watcher = new pg.Pool({ connectionString: url, max: 2 });
    const check = async (): Promise<void> => {
      const sql = `SELECT limits, count(*)::int AS count FROM ${schema}.live WHERE worker IS NOT NULL GROUP BY ROLLUP (limits)`;
      const rows = (await watcher.query(sql)).rows as { limits: string | null; count: number }[];
      exceeded.push(...rows.filter((row) => row.count > (row.limits === null ? 7 : 2)));
    };
    let left = 120;
    const leftBehind: ClaimedJob[] = [];
    const work = async (one: Store, worker: string, until: () => boolean): Promise<void> => {
      while (left > 0 && !until()) {
        const claimed = await claimLimited(one, { worker, limit: 3 });
        await check();
        if (until()) leftBehind.push(...claimed);
        else {
          await settleAll(one, claimed);
          left -= claimed.length;
        }
      }
    };
    const [first, second, third] = stores as [Store, Store, Store];
    let isGone = false;
    const going = work(first, 'going', () => isGone || left < 60).then(async () => {
      isGone = true;
      await first.close();
      // Its jobs are ended by another one.
      await settleAll(second, leftBehind);
      left -= leftBehind.length;
    });
    const staying = [second, third].flatMap((one, process) =>
      [0, 1].map((n) => work(one, `worker ${process} ${n}`, () => false)),
    );
    await Promise.all([going, ...staying]);
    await watcher.end();
    expect(exceeded).toEqual([]);
    expect(left).toBe(0);
    expect(await count(schema, 'finished')).toBe(120);
    expect(await count(schema, 'limit_slots')).toBe(0);
    await expectSoundTables(url, schema);
  });

  it('one that has read what is free, and then stops, keeps none waiting, and takes only what is left', async () => {
    await using two = await Two.open(url);
    await allow(two.other, { concurrency: 3 });
    await two.other.enqueue(jobs(10, [behind('a')]));
    // It learns where these jobs wait, so that the first call of the next claim is the one that reads what is free.
    await claim(two.late);
    const open = await two.begin(/limited_demand/, (store) => claimLimited(store, { limit: 3 }));
    expect(await claimLimited(two.other, { limit: 2 })).toHaveLength(2);
    open.commit();
    expect(await open.answer).toHaveLength(1);
    expect(await claimLimited(two.other)).toEqual([]);
    await expectSoundTables(url, two.schema);
  });

  it('one that has read what is free does not read again when others have left it enough', async () => {
    await using two = await Two.open(url);
    await allow(two.other, { concurrency: 5, total: 5 });
    await two.other.enqueue(jobs(10, [behind('a')]));
    await claim(two.late);
    const open = await two.begin(/limited_demand/, (store) => claimLimited(store, { limit: 3 }));
    expect(await claimLimited(two.other, { limit: 2 })).toHaveLength(2);
    // A claim that reads again would find this one first.
    await two.other.enqueue(newJobs(1, { limits: [behind('a')], priority: 0 }));
    open.commit();
    expect((await open.answer).map(({ priority }) => priority)).toEqual([5, 5, 5]);
    expect(await claimLimited(two.other)).toEqual([]);
    await expectSoundTables(url, two.schema);
  });

  it('one whose jobs another one has taken takes others that are due', async () => {
    await using two = await Two.open(url);
    await allow(two.other, { concurrency: 9 });
    await two.other.enqueue([
      ...newJobs(3, { limits: [behind('a')], priority: 0 }),
      ...newJobs(3, { limits: [behind('b')], priority: 9 }),
    ]);
    await claim(two.late);
    const open = await two.begin(/limited_demand/, (store) => claimLimited(store, { limit: 3 }));
    expect((await claimLimited(two.other, { limit: 3 })).map(({ priority }) => priority)).toEqual([0, 0, 0]);
    open.commit();
    expect((await open.answer).map(({ priority }) => priority)).toEqual([9, 9, 9]);
  });

  it('one that has read a rate takes no start that another one has taken', async () => {
    await using two = await Two.open(url);
    await allow(two.other, { rate: { limit: 10, perMs: 10 * HOUR, burst: 1 } });
    await two.other.enqueue(jobs(10, [behind('a')]));
    const open = await two.begin(/read_uses/, (store) => store.permit({ limit: 'shop', key: 'a', cost: 1 }));
    expect(await claimLimited(two.other)).toHaveLength(1);
    open.commit();
    expect((await open.answer).startsAt).toBeGreaterThan(0);
  });

  it('one that has read the rules takes nothing by them when they were changed', async () => {
    await using two = await Two.open(url);
    await allow(two.other, { concurrency: 3 });
    await two.other.enqueue(jobs(10, [behind('a')]));
    // It learns where these jobs wait, so that the first call of the next claim is the one that reads what is free.
    await claim(two.late);
    const open = await two.begin(/limited_demand/, (store) => claimLimited(store));
    await two.other.writeLimits([{ limit: 'shop', key: 'a', source: 'set', settings: { concurrency: 1 } }]);
    open.commit();
    expect(await open.answer).toHaveLength(1);
  });

  it('wait for one that has taken jobs and is not committed', async () => {
    await using two = await Two.open(url);
    await allow(two.other, { total: 3 });
    await two.other.enqueue([...jobs(2, [behind('a')]), ...jobs(2, [behind('b')])]);
    const open = await two.begin(/claim_limited/, (store) => claimLimited(store, { limit: 2 }));
    const second = await two.commitWhenBlocked(open, (store) => claimLimited(store, { worker: 'other' }));
    expect([(await open.answer).length, second.length]).toEqual([2, 1]);
  });

  it('count what others have taken meanwhile of other keys', async () => {
    await using two = await Two.open(url);
    await allow(two.other, { total: 2 });
    await two.other.enqueue(jobs(2, [behind('a')]));
    const open = await two.begin(/claim_limited/, (store) => claimLimited(store));
    await two.other.enqueue(jobs(2, [behind('b')]));
    const second = await two.commitWhenBlocked(open, (store) => claimLimited(store, { worker: 'other', limit: 2 }));
    expect([(await open.answer).length, second.length]).toEqual([2, 0]);
  });
});

describe('a partition whose key has no room', () => {
  /** One job of the key runs, and others wait. */
  async function full(two: Two): Promise<ClaimedJob> {
    await allow(two.other, { concurrency: 1 });
    await two.other.enqueue(jobs(3, [behind('a')]));
    const [job] = await claimLimited(two.other, { limit: 1 });
    await runSql(url, `UPDATE ${two.schema}.partitions SET admissible_at = 0`);
    return job as ClaimedJob;
  }

  it('is not parked while the run that holds the key is ending', async () => {
    await using two = await Two.open(url);
    const job = await full(two);
    const open = await two.begin(/complete_/, (store) => settleOne(store, job, complete));
    expect(await claimLimited(two.other)).toEqual([]);
    open.commit();
    await open.answer;
    expect(await claimLimited(two.other)).toHaveLength(1);
  });

  it('is woken by a run that ends while it is being parked', async () => {
    await using two = await Two.open(url);
    const job = await full(two);
    const open = await two.begin(/claim_limited/, (store) => claimLimited(store));
    await two.commitWhenBlocked(open, (store) => settleOne(store, job, complete));
    expect(await open.answer).toEqual([]);
    expect(await claimLimited(two.other)).toHaveLength(1);
  });

  it('is read again after a while when a version without limits has ended the run', async () => {
    await using queue = await Queue.open();
    const { store, schema } = queue;
    await allow(store, { concurrency: 1 });
    await store.enqueue(jobs(2, [behind('a')]));
    const [job] = await claimLimited(store);
    expect(await claimLimited(store)).toEqual([]);
    await runSql(url, `DELETE FROM ${schema}.live WHERE id = $1`, [job?.id]);
    await queue.advance(RECHECK_MS + 1_000);
    expect(await claimLimited(store)).toHaveLength(1);
    await pruneWith(store, { completedMs: null, deadMs: null, cancelledMs: null }, 100);
    expect(await count(schema, 'limit_slots')).toBe(1);
  });

  it('is woken when there is room, however many others of the key have no use for it', async () => {
    await using queue = await Queue.open();
    const { store, schema } = queue;
    await allow(store, { concurrency: 1 });
    await allow(store, { concurrency: 1 }, 'tenant');
    const shops = Array.from({ length: 30 }, (_, index) => `shop ${index}`);
    for (const shop of shops) await store.enqueue(jobs(1, [behind(shop), behind('t', 'tenant')]));
    let done = 0;
    for (let tries = 0; tries < 60 && done < 30; tries++) {
      const claimed = await claimLimited(store, { limit: 1 });
      await settleAll(store, claimed);
      done += claimed.length;
      // Of some shops all jobs are cancelled, and of some the shop itself is in use.
      if (tries === 1) {
        const waiting = await store.list({ state: 'ready', limit: 10 });
        await store.cancel(waiting.map(({ id }) => id));
        done += waiting.length;
      }
    }
    expect(done).toBe(30);
    await expectSoundTables(url, schema);
  });

  it('is woken first when the job that keeps the turn of its key waits in it, however many others there are', async () => {
    await using queue = await Queue.open();
    const { store } = queue;
    await allow(store, { concurrency: 1 });
    for (let priority = 0; priority < 10; priority++) {
      await store.enqueue(newJobs(1, { limits: [behind('a')], priority }));
    }
    const [first] = await claimLimited(store, { limit: 1 });
    expect(await claimLimited(store)).toEqual([]);
    let job = first as ClaimedJob;
    for (let runs = 0; runs < 4; runs++) {
      await settleOne(store, job, retryIn(0));
      const claimed = await claimLimited(store);
      expect(claimed.map(({ id }) => id)).toEqual([job.id]);
      job = claimed[0] as ClaimedJob;
    }
  });

  it('wakes workers when a run ends', async () => {
    await using queue = await Queue.open();
    const { store } = queue;
    await allow(store, { concurrency: 1 });
    await store.enqueue(jobs(2, [behind('a')]));
    const [job] = await claimLimited(store);
    await claimLimited(store);
    let hints = 0;
    store.onWork(() => hints++);
    await settleOne(store, job as ClaimedJob, complete);
    expect(hints).toBeGreaterThan(0);
  });
});

describe('limited partitions', () => {
  /** How many rows the first call of a claim reads among so many keys of which one job runs and one waits, and what it finds. */
  async function readAmong(keys: number, freed: number): Promise<{ readonly rows: number; readonly found: number }> {
    await using queue = await Queue.open();
    const { store, schema } = queue;
    await allow(store, { concurrency: 1 });
    await store.enqueue(Array.from({ length: keys }, (_, index) => jobs(2, [behind(`key ${index}`)])).flat());
    const running: ClaimedJob[] = [];
    while (running.length < keys) running.push(...(await claimLimited(store, { limit: 100 })));
    expect(await claimLimited(store)).toEqual([]);
    await settleAll(store, running.slice(0, freed));
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`BEGIN; SET LOCAL search_path = ${schema}`);
    const known = 'ARRAY (SELECT -id FROM limited_queues), 64, 10, 8';
    const demand = `SELECT json_array_length(waiting::json) AS found
      FROM @.limited_demand(ARRAY['default'], ARRAY[NULL]::int[], ARRAY (SELECT under FROM limited_queues), ${known})`;
    const answer = await client.query<{ found: number | null }>(functions.resolve(demand, schema));
    const read = await client.query<{ rows: number }>(
      `SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::int AS rows FROM pg_stat_xact_user_tables
       WHERE schemaname = current_schema()`,
    );
    await client.end();
    return { rows: read.rows[0]?.rows as number, found: answer.rows[0]?.found ?? 0 };
  }

  it('are not read by claims as long as their keys have no room, however many there are', async () => {
    const few = await readAmong(20, 0);
    expect(few.found).toBe(0);
    expect(await readAmong(2_000, 0)).toEqual(few);
  });

  it('cost a claim the same among many full keys as among few when one of them has room', async () => {
    const few = await readAmong(20, 1);
    expect(few.found).toBe(1);
    expect(await readAmong(2_000, 1)).toEqual(few);
  });

  it('leave no row behind once pruning has looked at them', async () => {
    await using queue = await Queue.open();
    const { store, schema } = queue;
    await allow(store, { concurrency: 1, rate: { limit: 10, perMs: 1_000, burst: 2 } });
    await store.enqueue(Array.from({ length: 300 }, (_, index) => jobs(1, [behind(`key ${index}`)])).flat());
    for (let done = 0; done < 300; ) {
      const claimed = await claimLimited(store, { limit: 50 });
      expect(claimed.length).toBeGreaterThan(0);
      const retried = done === 0 ? claimed.slice(0, 5) : [];
      await store.settle(claimed.map((job) => settlement(job, retried.includes(job) ? retryIn(0) : complete)));
      done += claimed.length - retried.length;
      await queue.advance(1_000);
    }
    expect(await count(schema, 'limit_keys')).toBe(300);
    await queue.advance(HOUR);
    await pruneWith(store, { completedMs: null, deadMs: null, cancelledMs: null }, 100);
    for (const table of ['partitions', 'limit_partitions', 'limit_slots', 'limit_keys', 'limited_queues', 'live']) {
      expect([table, await count(schema, table)]).toEqual([table, 0]);
    }
    expect((await claim(store)).limited).toBe(false);
  });
});
