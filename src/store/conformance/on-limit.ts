import assert from 'node:assert/strict';
import type { LimitAction, LimitCode, LimitKey } from '../../limit/limit.ts';
import type { ClaimedJob, LimitOverride, NewJob, Store } from '../store.ts';
import {
  claimRequest,
  complete,
  HOUR,
  hostileTexts,
  idsOf,
  jobOf,
  newJob,
  newJobs,
  only,
  retryIn,
  settleOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const SHOP = { limit: 'shop', key: 'a' };
const TENANT = { limit: 'tenant', key: 't' };

/** A job behind this key which does not wait when the key is full. */
function job(action: LimitAction['action'] | 'wait', changes: Partial<NewJob> = {}, at: LimitKey = SHOP): NewJob {
  const onLimit = action === 'wait' ? {} : { onLimit: [{ ...at, action }] };
  return newJob({ limits: [at], ...onLimit, ...changes });
}

const newest = (changes: Partial<NewJob> = {}, at = SHOP): NewJob => job('cancel-newest', changes, at);
const oldest = (changes: Partial<NewJob> = {}, at = SHOP): NewJob => job('cancel-oldest', changes, at);

async function allow(store: Store, settings: LimitOverride, limit = SHOP.limit): Promise<void> {
  const all = { concurrency: null, total: null, rate: null, ...settings };
  await store.writeLimits([{ limit, key: null, source: 'code', settings: all }]);
}

async function start(store: Store): Promise<ClaimedJob> {
  return only((await store.claimLimited(claimRequest({ limit: 1 }))).jobs);
}

async function statesOf(store: Store, jobs: readonly { readonly id: string }[]): Promise<string[]> {
  return Promise.all(jobs.map(async ({ id }) => (await jobOf(store, id)).state));
}

/** How many of these are stored, one after the other. */
async function countStored(store: Store, jobs: readonly NewJob[]): Promise<number> {
  let stored = 0;
  for (const one of jobs) if (!only(await store.enqueue([one])).existed) stored++;
  return stored;
}

export const onLimitCases: readonly StoreCase[] = cases('enqueue', {
  async 'cancel-newest: a job of a full key is not stored, and yields a live one'({ store }) {
    await allow(store, { concurrency: 2 });
    const [first, second] = await store.enqueue([newest(), newest()]);
    const live = [first?.id, second?.id];
    const running = await start(store);
    const refused = newest({ tags: ['tag'] });
    const answer = only(await store.enqueue([refused]));
    assert.ok(answer.existed && live.includes(answer.id));
    assert.deepEqual(await store.get([refused.id]), []);
    assert.deepEqual(await store.list({ tag: 'tag', limit: 5 }), []);
    assert.equal(only((await store.stats()).rows).totals.enqueued, 2);
    assert.equal(await countStored(store, [newest({}, { limit: 'shop', key: 'b' })]), 1);
    await settleOne(store, running, complete);
    assert.equal(await countStored(store, [newest(), newest()]), 1);
  },

  async 'cancel-newest: jobs of one batch fill a key in their order'({ store }) {
    await allow(store, { concurrency: 2 });
    const other = newest({}, { limit: 'shop', key: 'b' });
    const jobs = [job('wait'), newest(), newest(), other, job('wait'), newest()];
    const answers = await store.enqueue(jobs);
    assert.deepEqual(
      answers.map(({ existed }) => existed),
      [false, false, true, false, false, true],
    );
    const live = [jobs[0], jobs[1], jobs[4]].map((one) => one?.id);
    assert.ok(live.includes(answers[2]?.id) && live.includes(answers[5]?.id));
  },

  async 'cancel-newest: of many at once no more are stored than may run'({ store }) {
    await allow(store, { concurrency: 3 });
    const calls = Array.from({ length: 12 }, () => store.enqueue([newest(), newest()]));
    const answers = (await Promise.all(calls)).flat();
    assert.equal(answers.filter(({ existed }) => !existed).length, 3);
    const live = idsOf(await store.list({ limit: 50 }));
    assert.equal(live.length, 3);
    for (const { id } of answers) assert.ok(live.includes(id));
  },

  async 'cancel-oldest: the oldest that never started makes way for the new job'({ store }) {
    await allow(store, { concurrency: 2 });
    const [first, second, third, fourth] = [oldest(), oldest(), oldest(), oldest()];
    await store.enqueue([first]);
    const running = await start(store);
    assert.equal(await countStored(store, [second, third]), 2);
    assert.deepEqual(await statesOf(store, [first, second, third]), ['running', 'cancelled', 'ready']);
    assert.deepEqual(await store.runs(second.id), []);
    assert.deepEqual(
      (await store.ended([second.id], null)).map(({ id, state }) => [id, state]),
      [[second.id, 'cancelled']],
    );
    await store.enqueue([fourth]);
    assert.deepEqual(await statesOf(store, [third, fourth]), ['cancelled', 'ready']);
    assert.equal((await jobOf(store, running.id)).cancelRequested, false);
    assert.equal((await start(store)).id, fourth.id);
  },

  async 'cancel-oldest: when all have started, the new job waits'({ store }) {
    await allow(store, { concurrency: 1 });
    const [first, second, third] = [oldest(), oldest(), oldest()];
    await store.enqueue([first]);
    await settleOne(store, await start(store), retryIn(HOUR));
    await store.enqueue([second]);
    assert.deepEqual(await statesOf(store, [first, second]), ['retrying', 'ready']);
    await store.enqueue([third]);
    assert.deepEqual(await statesOf(store, [first, second, third]), ['retrying', 'cancelled', 'ready']);
  },

  async 'cancel-oldest: the oldest is the one accepted first, wherever it waits and whenever it is due'({ store }) {
    await allow(store, { concurrency: 3 });
    const jobs = [
      oldest({ delayMs: HOUR, queue: 'b', resource: 'x' }),
      oldest({ priority: 9 }),
      oldest({ priority: 1, name: 'other' }),
    ];
    await countStored(store, jobs);
    const [fourth, fifth] = [oldest(), oldest({ delayMs: HOUR })];
    await store.enqueue([fourth]);
    assert.deepEqual(await statesOf(store, jobs), ['cancelled', 'ready', 'ready']);
    await store.enqueue([fifth]);
    assert.deepEqual(await statesOf(store, [...jobs, fourth]), ['cancelled', 'cancelled', 'ready', 'ready']);
  },

  async 'cancel-oldest: of a batch the last are left'({ store }) {
    await allow(store, { concurrency: 2 });
    const jobs = [oldest({ tags: ['tag'] }), oldest(), oldest(), oldest({}, { limit: 'shop', key: 'b' }), oldest()];
    const answers = await store.enqueue(jobs);
    assert.deepEqual(
      answers,
      jobs.map(({ id }) => ({ id, existed: false })),
    );
    assert.deepEqual(await statesOf(store, jobs), ['cancelled', 'cancelled', 'ready', 'ready', 'ready']);
    assert.deepEqual(idsOf(await store.list({ tag: 'tag', limit: 5 })), [jobs[0]?.id]);
    const { totals, states } = only((await store.stats()).rows);
    assert.deepEqual([totals.enqueued, states.cancelled, states.ready], [5, 2, 3]);
  },

  async 'a job that waits when its key is full neither cancels nor is refused, and counts'({ store }) {
    await allow(store, { concurrency: 1 });
    const waits = [job('wait'), job('wait')];
    assert.equal(await countStored(store, waits), 2);
    assert.equal(await countStored(store, [newest()]), 0);
    assert.deepEqual(await statesOf(store, waits), ['ready', 'ready']);
    await store.enqueue([oldest()]);
    assert.deepEqual(await statesOf(store, waits), ['cancelled', 'ready'], 'one makes way, not all');
  },

  async 'what is computed for a key fills it, or what held before that, unless code gives one concurrency for all'({
    store,
  }) {
    const code = (settings: LimitCode): Promise<void> =>
      store.writeLimits([{ limit: SHOP.limit, key: null, source: 'code', settings }]);
    await code({ total: null, rate: null, concurrencyBefore: 1 });
    assert.equal(await countStored(store, [newest(), newest()]), 1);
    await store.writeLimits([{ ...SHOP, source: 'code', settings: { concurrency: 2 } }]);
    assert.equal(await countStored(store, [newest(), newest()]), 1);
    await allow(store, { concurrency: 3 });
    assert.equal(await countStored(store, [newest(), newest()]), 1);
    await allow(store, { total: 1 });
    assert.equal(await countStored(store, [newest(), newest()]), 2, 'no bound');
  },

  async 'how many fill a key is what its stored settings say'({ store }) {
    assert.equal(await countStored(store, [newest(), newest()]), 2, 'nothing is stored: no bound');
    await allow(store, { concurrency: 3 });
    assert.equal(await countStored(store, [newest(), newest()]), 1);
    const set = (key: string | null, concurrency: number | null): Promise<void> =>
      store.writeLimits([{ limit: SHOP.limit, key, source: 'set', settings: { concurrency } }]);
    await set(null, 4);
    assert.equal(await countStored(store, [newest(), newest()]), 1);
    await store.writeLimits([{ ...SHOP, source: 'code', settings: { concurrency: 9 } }]);
    assert.equal(await countStored(store, [newest()]), 0, 'the operator comes before code');
    await set(SHOP.key, 5);
    assert.equal(await countStored(store, [newest(), newest()]), 1);
    await set(SHOP.key, null);
    assert.equal(await countStored(store, [newest(), newest()]), 2);
    await store.writeLimits([{ limit: SHOP.limit, key: 'b', source: 'set', settings: { rate: null } }]);
    assert.equal(
      await countStored(
        store,
        newJobs(5).map(({ id }) => newest({ id }, { limit: 'shop', key: 'b' })),
      ),
      4,
    );
  },

  async 'with a concurrency of 0 one job of a key waits'({ store }) {
    await allow(store, { concurrency: 0 });
    const [first, second] = [newest(), newest()];
    assert.deepEqual(await store.enqueue([first]), [{ id: first.id, existed: false }]);
    assert.deepEqual(await store.enqueue([second]), [{ id: first.id, existed: true }]);
  },

  async 'a job that is sent again is neither refused nor cancels'({ store }) {
    await allow(store, { concurrency: 1 });
    const [first, last] = [oldest(), oldest()];
    await store.enqueue([first]);
    await store.enqueue([last]);
    assert.deepEqual(await store.enqueue([first]), [{ id: first.id, existed: false }]);
    assert.deepEqual(await statesOf(store, [first, last]), ['cancelled', 'ready']);
    const full = newest({}, TENANT);
    await allow(store, { concurrency: 1 }, TENANT.limit);
    await store.enqueue([full]);
    assert.deepEqual(await store.enqueue([full]), [{ id: full.id, existed: false }]);
  },

  async 'a job whose key is held yields the holder, and cancels none'({ store }) {
    await allow(store, { concurrency: 1 });
    const holder = job('wait', { key: 'k' });
    const other = job('wait');
    await store.enqueue([other, holder]);
    assert.deepEqual(await store.enqueue([newest({ key: 'k' })]), [{ id: holder.id, existed: true }]);
    assert.deepEqual(await store.enqueue([oldest({ key: 'k' })]), [{ id: holder.id, existed: true }]);
    assert.deepEqual(await statesOf(store, [other, holder]), ['ready', 'ready']);
  },

  async 'a job that is not stored holds no key'({ store }) {
    await allow(store, { concurrency: 1 });
    await store.enqueue([newest()]);
    const throttle = { keyLife: 'window', windowMs: HOUR } as const;
    const refused = [newest({ key: 'k' }), newest({ key: 'k' }), newest({ key: 'l', ...throttle })];
    const answers = await store.enqueue(refused);
    assert.ok(answers.every(({ existed }) => existed));
    for (const { id } of answers) assert.equal((await jobOf(store, id)).state, 'ready');
    assert.equal(await countStored(store, [newJob({ key: 'k' }), newJob({ key: 'l' })]), 2);
  },

  async 'a debounced job that is not stored supersedes none'({ store }) {
    await allow(store, { concurrency: 1 });
    const debounced = { key: 'k', keyLife: 'started', debounce: { maxWaitMs: null } } as const;
    const first = newest(debounced);
    await store.enqueue([first]);
    await settleOne(store, await start(store), retryIn(HOUR));
    assert.deepEqual(await store.enqueue([newest(debounced)]), [{ id: first.id, existed: true }]);
    assert.deepEqual(await statesOf(store, [first]), ['retrying']);
  },

  async 'jobs count in each of their limits, and in all of their lanes'({ store }) {
    await allow(store, { concurrency: 2 });
    await allow(store, { concurrency: 1 }, TENANT.limit);
    const both = job('wait', { limits: [SHOP, TENANT] });
    await store.enqueue([both]);
    assert.equal(await countStored(store, [newest({}, TENANT)]), 0);
    assert.equal(await countStored(store, [newest()]), 1);
    assert.equal(await countStored(store, [newest()]), 0);
    await settleOne(store, await start(store), retryIn(HOUR, 'suspect'));
    assert.equal(await countStored(store, [newest(), newest({}, TENANT)]), 0, 'a suspect counts');
    await store.cancel([both.id]);
    assert.equal(await countStored(store, [newest({}, TENANT)]), 1);
  },

  async 'a job that keeps its turn counts once'({ store }) {
    await allow(store, { concurrency: 1 });
    await store.enqueue([newest()]);
    await settleOne(store, await start(store), retryIn(HOUR));
    await allow(store, { concurrency: 2 });
    assert.equal(await countStored(store, [newest(), newest()]), 1);
  },

  async 'of several limits, one that refuses the job keeps the others from cancelling'({ store }) {
    await allow(store, { concurrency: 1 });
    await allow(store, { concurrency: 1 }, TENANT.limit);
    const [shop, tenant] = [job('wait'), job('wait', {}, TENANT)];
    await store.enqueue([shop, tenant]);
    const rules = (ofShop: LimitAction['action'], ofTenant: LimitAction['action']): NewJob =>
      newJob({
        limits: [SHOP, TENANT],
        onLimit: [
          { ...SHOP, action: ofShop },
          { ...TENANT, action: ofTenant },
        ],
      });
    const refused = only(await store.enqueue([rules('cancel-oldest', 'cancel-newest')]));
    assert.deepEqual(refused, { id: tenant.id, existed: true });
    assert.deepEqual(await statesOf(store, [shop, tenant]), ['ready', 'ready']);
    const stored = rules('cancel-oldest', 'cancel-oldest');
    await store.enqueue([stored]);
    assert.deepEqual(await statesOf(store, [shop, tenant, stored]), ['cancelled', 'cancelled', 'ready']);
    await store.enqueue([rules('cancel-oldest', 'cancel-oldest')]);
    assert.deepEqual(await statesOf(store, [stored]), ['cancelled']);
  },

  async 'limits and keys that are full may have any name'({ store }) {
    for (const text of hostileTexts) {
      const at = { limit: text, key: text };
      await allow(store, { concurrency: 1 }, text);
      const first = newest({}, at);
      assert.deepEqual(await store.enqueue([first, newest({}, at)]), [
        { id: first.id, existed: false },
        { id: first.id, existed: true },
      ]);
      await store.enqueue([oldest({}, at)]);
      assert.deepEqual(await statesOf(store, [first]), ['cancelled']);
    }
  },
});
