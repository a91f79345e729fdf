import assert from 'node:assert/strict';
import type { LimitKey, LimitSettings } from '../../limit/limit.ts';
import type { ClaimedJob, LimitedClaim, LimitedClaimRequest, LimitOverride, NewJob, Store } from '../store.ts';
import {
  changeAll,
  claim,
  claimRequest,
  complete,
  crash,
  die,
  giveBack,
  HOUR,
  hostileTexts,
  idsOf,
  jobOf,
  LEASE,
  MINUTE,
  newJob,
  newJobs,
  only,
  quota,
  redrive,
  retryIn,
  settlement,
  settleOne,
} from './builders.ts';
import { claimGated, trip } from './gate-builders.ts';
import { cases, type StoreCase } from './suite.ts';

const SHOP = 'shop';

/** The limits of a job that counts under this key. */
function behind(key: string, limit = SHOP): readonly LimitKey[] {
  return [{ limit, key }];
}

async function allow(store: Store, settings: LimitOverride, limit = SHOP): Promise<void> {
  const all: LimitSettings = { concurrency: null, total: null, rate: null, ...settings };
  await store.writeLimits([{ limit, key: null, source: 'code', settings: all }]);
}

async function enqueue(
  store: Store,
  count: number,
  limits: readonly LimitKey[],
  changes: Partial<NewJob> = {},
): Promise<string[]> {
  return idsOf(await store.enqueue(newJobs(count, { limits, ...changes })));
}

export function claimLimited(store: Store, changes: Partial<LimitedClaimRequest> = {}): Promise<LimitedClaim> {
  const { ahead, ...rest } = changes;
  return store.claimLimited({ ...claimRequest(rest), ...(ahead !== undefined && { ahead }) });
}

/** How many jobs of each key there are. */
function countKeys(jobs: readonly ClaimedJob[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { limits } of jobs) {
    const key = limits.map((one) => one.key).join();
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

function oneOf(jobs: readonly ClaimedJob[], key: string): ClaimedJob {
  const found = jobs.find(({ limits }) => limits.some((one) => one.key === key));
  assert.ok(found, `no job of ${key}`);
  return found;
}

/** So long apart that the time a slow machine takes does not matter: 10 starts per 1,000 minutes, one in 100. */
const SPACE = 100 * MINUTE;
const rate = { limit: 10, perMs: 10 * SPACE, burst: 1 };

const claims: StoreCase[] = cases('claimLimited', {
  'an ordinary claim leaves jobs behind limits alone, and says that they wait': async ({ store }) => {
    await allow(store, { concurrency: 10 });
    const plain = only(await store.enqueue([newJob()])).id;
    assert.equal((await claim(store, { limit: 1 })).limited, false);
    const ids = await enqueue(store, 2, behind('a'));
    const { jobs, limited, nextDueAt } = await claim(store);
    assert.deepEqual([jobs, limited, nextDueAt], [[], true, null]);
    assert.equal((await claim(store, { queues: [quota({ queue: 'other' })] })).limited, false);
    const taken = await claimLimited(store);
    assert.deepEqual(idsOf(taken.jobs), ids);
    assert.deepEqual(
      taken.jobs.map(({ limits, lane, attempts }) => [limits, lane, attempts]),
      [
        [behind('a'), 'fresh', 1],
        [behind('a'), 'fresh', 1],
      ],
    );
    assert.equal((await jobOf(store, plain)).state, 'running');
    assert.deepEqual((await jobOf(store, ids[0] as string)).limits, behind('a'));
  },

  'a limited claim takes nothing else, and none that is not due': async ({ store, advance }) => {
    await allow(store, { concurrency: 10 });
    await store.enqueue([newJob()]);
    const [id] = await enqueue(store, 1, behind('a'), { delayMs: HOUR });
    const early = await claimLimited(store);
    assert.deepEqual(early.jobs, []);
    assert.ok(early.nextAt !== null && early.nextAt > early.now && early.nextAt <= early.now + HOUR);
    await advance(HOUR);
    assert.deepEqual(idsOf((await claimLimited(store)).jobs), [id]);
  },

  'no more jobs of a key run than its concurrency, over all workers': async ({ store }) => {
    await allow(store, { concurrency: 2 });
    await enqueue(store, 5, behind('a'));
    await enqueue(store, 5, behind('b'));
    const first = await claimLimited(store, { worker: 'worker-1', limit: 3 });
    const second = await claimLimited(store, { worker: 'worker-2' });
    assert.deepEqual(countKeys([...first.jobs, ...second.jobs]), { a: 2, b: 2 });
    const third = await claimLimited(store, { worker: 'worker-3' });
    assert.deepEqual([third.jobs, third.nextAt], [[], null]);
    await settleOne(store, oneOf([...first.jobs, ...second.jobs], 'b'), complete);
    assert.deepEqual(countKeys((await claimLimited(store)).jobs), { b: 1 });
  },

  'jobs that are claimed ahead take no more than half of the places of a key': async ({ store }) => {
    await allow(store, { concurrency: 6 });
    await enqueue(store, 12, behind('a'));
    await enqueue(store, 12, behind('b'));
    assert.deepEqual(countKeys((await claimLimited(store, { limit: 100, ahead: 100 })).jobs), { a: 3, b: 3 });
    assert.deepEqual((await claimLimited(store, { limit: 100, ahead: 100 })).jobs, []);
    assert.equal((await claimLimited(store, { limit: 10, ahead: 8 })).jobs.length, 2);
    const rest = (await claimLimited(store, { limit: 10 })).jobs;
    assert.equal(rest.length, 4);
    for (const job of rest) await settleOne(store, job, complete);
    assert.equal((await claimLimited(store, { limit: 100 })).jobs.length, 4);
  },

  'jobs that are claimed ahead take no more than half of the total': async ({ store }) => {
    await allow(store, { total: 6 });
    for (const key of ['a', 'b', 'c']) await enqueue(store, 4, behind(key));
    assert.equal((await claimLimited(store, { limit: 100, ahead: 100 })).jobs.length, 3);
    assert.equal((await claimLimited(store, { limit: 100, ahead: 99 })).jobs.length, 1);
    assert.equal((await claimLimited(store, { limit: 100 })).jobs.length, 2);
  },

  'none are claimed ahead where a rate counts starts': async ({ store }) => {
    await allow(store, { rate: { limit: 10, perMs: HOUR, burst: 4 } });
    await enqueue(store, 8, behind('a'));
    assert.deepEqual((await claimLimited(store, { limit: 100, ahead: 100 })).jobs, []);
    assert.equal((await claimLimited(store, { limit: 100, ahead: 98 })).jobs.length, 2);
    assert.equal((await claimLimited(store, { limit: 100 })).jobs.length, 2);
  },

  'jobs are claimed ahead of many keys, as many as there are places': async ({ store }) => {
    await allow(store, { concurrency: 1_000 });
    for (const key of ['a', 'b', 'c']) await enqueue(store, 100, behind(key));
    const first = (await claimLimited(store, { limit: 240, ahead: 230 })).jobs;
    const second = (await claimLimited(store, { limit: 240, ahead: 230 })).jobs;
    assert.deepEqual([first.length, second.length], [240, 60]);
    assert.deepEqual(countKeys([...first, ...second]), { a: 100, b: 100, c: 100 });
  },

  'no more jobs of all keys run than the total': async ({ store }) => {
    await allow(store, { concurrency: 2, total: 3 });
    for (const key of ['a', 'b', 'c']) await enqueue(store, 4, behind(key));
    const first = (await claimLimited(store)).jobs;
    assert.equal(first.length, 3);
    assert.equal((await claimLimited(store)).jobs.length, 0);
    await settleOne(store, first[0] as ClaimedJob, complete);
    assert.equal((await claimLimited(store)).jobs.length, 1);
  },

  'a limit without settings holds nothing back': async ({ store }) => {
    await enqueue(store, 20, behind('a', 'without settings'));
    assert.equal((await claimLimited(store)).jobs.length, 20);
  },

  'jobs of one key start as its rate allows, and the claim says when the next may': async ({ store, advance }) => {
    await allow(store, { rate });
    await enqueue(store, 4, behind('a'));
    await enqueue(store, 1, behind('b'));
    assert.deepEqual(countKeys((await claimLimited(store)).jobs), { a: 1, b: 1 });
    const next = await claimLimited(store);
    assert.deepEqual(next.jobs, []);
    assert.ok(next.nextAt !== null && next.nextAt > next.now && next.nextAt <= next.now + SPACE);
    await advance(SPACE);
    assert.deepEqual(countKeys((await claimLimited(store)).jobs), { a: 1 });
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await advance(10 * SPACE);
    assert.deepEqual(countKeys((await claimLimited(store)).jobs), { a: 1 });
  },

  'a burst starts at once after a pause': async ({ store, advance }) => {
    await allow(store, { rate: { ...rate, burst: 4 } });
    await enqueue(store, 20, behind('a'));
    assert.equal((await claimLimited(store)).jobs.length, 4);
    assert.equal((await claimLimited(store)).jobs.length, 0);
    await advance(2 * SPACE);
    assert.equal((await claimLimited(store)).jobs.length, 1);
  },

  'retries pay the rate too': async ({ store, advance }) => {
    await allow(store, { rate });
    await enqueue(store, 1, behind('a'));
    await settleOne(store, only((await claimLimited(store)).jobs), retryIn(0));
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await advance(SPACE);
    assert.equal(only((await claimLimited(store)).jobs).lane, 'retry');
  },

  'a job that is handed back gives its place and its start back': async ({ store }) => {
    await allow(store, { concurrency: 1, rate });
    const [first] = await enqueue(store, 2, behind('a'));
    await settleOne(store, only((await claimLimited(store)).jobs), giveBack('release'));
    assert.deepEqual(idsOf((await claimLimited(store)).jobs), [first]);
  },

  'with several limits all must have room': async ({ store }) => {
    await allow(store, { concurrency: 3 }, 'tenant');
    await allow(store, { concurrency: 2 });
    const both = (shop: string, tenant: string): LimitKey[] => [...behind(shop), ...behind(tenant, 'tenant')];
    await enqueue(store, 5, both('a', 't'));
    await enqueue(store, 5, both('b', 't'));
    await enqueue(store, 5, both('c', 'u'));
    const { jobs } = await claimLimited(store);
    const ofTenant = jobs.filter(({ limits }) => limits[1]?.key === 't');
    assert.equal(ofTenant.length, 3);
    assert.equal(jobs.length, 5);
    await settleOne(store, oneOf(jobs, 't'), complete);
    assert.equal((await claimLimited(store)).jobs.length, 1);
  },

  'the least recently served key comes first, however much the others have': async ({ store }) => {
    await allow(store, { concurrency: 100 });
    await enqueue(store, 30, behind('big'));
    await enqueue(store, 2, behind('a'));
    await enqueue(store, 2, behind('b'));
    const served: string[] = [];
    for (let n = 0; n < 6; n++) {
      served.push((only((await claimLimited(store, { limit: 1 })).jobs).limits[0] as LimitKey).key);
    }
    assert.deepEqual(served.slice(0, 3).sort(), ['a', 'b', 'big']);
    assert.deepEqual(served.slice(3), served.slice(0, 3));
  },

  'the places of a claim are shared among the keys': async ({ store }) => {
    await allow(store, { concurrency: 100 });
    await enqueue(store, 50, behind('big'));
    await enqueue(store, 2, behind('a'));
    await enqueue(store, 1, behind('b'));
    assert.deepEqual(countKeys((await claimLimited(store, { limit: 9 })).jobs), { big: 6, a: 2, b: 1 });
  },

  'a key without room hides no other, however many there are': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    const keys = Array.from({ length: 150 }, (_, index) => `key ${index}`);
    for (const key of keys) await store.enqueue(newJobs(2, { limits: behind(key) }));
    const first: ClaimedJob[] = [];
    for (let left = 50; left > 0 && first.length < 150; left--) {
      first.push(...(await claimLimited(store, { limit: 40 })).jobs);
    }
    assert.equal(new Set(first.map(({ limits }) => limits[0]?.key)).size, 150);
    await settleOne(store, oneOf(first, 'key 149'), complete);
    assert.deepEqual(countKeys((await claimLimited(store)).jobs), { 'key 149': 1 });
  },

  'a crash frees the place': async ({ store, advance }) => {
    await allow(store, { concurrency: 2 });
    await enqueue(store, 4, behind('a'));
    assert.equal((await claimLimited(store)).jobs.length, 2);
    await advance(LEASE + MINUTE);
    // Before anyone has settled the crash, the runs may still go on.
    assert.equal((await claimLimited(store)).jobs.length, 0);
    const expired = await store.expired(10);
    assert.deepEqual(await store.settle(expired.map((job) => crash(job, retryIn(HOUR)))), ['settled', 'settled']);
    assert.equal((await claimLimited(store)).jobs.length, 2);
  },

  'a suspect keeps its place until its trial, which asks no limit': async ({ store, advance }) => {
    await allow(store, { concurrency: 2, total: 2 });
    await enqueue(store, 4, behind('a'));
    assert.equal((await claimLimited(store)).jobs.length, 2);
    await advance(LEASE + MINUTE);
    const expired = await store.expired(10);
    await store.settle(expired.map((job) => crash(job, retryIn(0, 'suspect'))));
    assert.equal((await claimLimited(store)).jobs.length, 0);
    const { jobs } = await claim(store, { limit: 1, queues: [quota({ suspect: 1 })] });
    assert.deepEqual(only(jobs).limits, behind('a'));
    await settleOne(store, only(jobs), complete);
    assert.equal((await claimLimited(store)).jobs.length, 1);
  },

  'the trial of a suspect counts by the rate that holds then': async ({ store, advance }) => {
    await enqueue(store, 1, behind('a'));
    assert.equal((await claimLimited(store)).jobs.length, 1);
    await advance(LEASE + MINUTE);
    await store.settle((await store.expired(10)).map((job) => crash(job, retryIn(0, 'suspect'))));
    await allow(store, { rate: { limit: 1, perMs: MINUTE, burst: 1 } });
    await enqueue(store, 1, behind('a'));
    assert.equal((await claim(store, { limit: 1, queues: [quota({ suspect: 1 })] })).jobs.length, 1);
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await advance(MINUTE);
    assert.equal((await claimLimited(store)).jobs.length, 1);
  },

  'a job that is handed back and cancelled has started, as far as its rate is concerned': async ({
    store,
    advance,
  }) => {
    await allow(store, { rate: { limit: 1, perMs: MINUTE, burst: 1 } });
    const [first] = await enqueue(store, 2, behind('a'));
    const { jobs } = await claimLimited(store);
    await store.cancel([first as string]);
    assert.deepEqual(await store.settle([settlement(only(jobs), giveBack('release'))]), ['cancelled']);
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await advance(MINUTE);
    assert.equal((await claimLimited(store)).jobs.length, 1);
  },

  'a retry does not take the place that a suspect keeps': async ({ store, advance }) => {
    await allow(store, { concurrency: 2 });
    const [first, second] = await enqueue(store, 2, behind('a'));
    const jobs = (await claimLimited(store)).jobs;
    await settleOne(store, jobs.find(({ id }) => id === first) as ClaimedJob, retryIn(0));
    await advance(LEASE + MINUTE);
    await store.settle((await store.expired(10)).map((job) => crash(job, retryIn(0, 'suspect'))));
    await enqueue(store, 1, behind('a'));
    const [other] = (await claimLimited(store, { limit: 1 })).jobs;
    assert.ok(other !== undefined && other.id !== second);
    assert.deepEqual((await claimLimited(store)).jobs, []);
    const { jobs: tried } = await claim(store, { limit: 1, queues: [quota({ suspect: 1 })] });
    assert.deepEqual(idsOf(tried), [second]);
  },

  'with a concurrency of one, a retry that is handed back keeps its turn': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    const [first] = await enqueue(store, 2, behind('a'));
    await settleOne(store, only((await claimLimited(store)).jobs), retryIn(0));
    await settleOne(store, only((await claimLimited(store)).jobs), giveBack('release', HOUR));
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await changeAll(store, 'runNow', { ids: [first as string] });
    assert.deepEqual(idsOf((await claimLimited(store)).jobs), [first]);
  },

  'with a concurrency of one, a job that snoozes lets the others go first': async ({ store, advance }) => {
    await allow(store, { concurrency: 1 });
    const [first, second] = await enqueue(store, 2, behind('a'));
    await settleOne(store, only((await claimLimited(store)).jobs), giveBack('snooze', HOUR));
    const next = only((await claimLimited(store)).jobs);
    assert.equal(next.id, second);
    await settleOne(store, next, complete);
    await advance(HOUR);
    assert.deepEqual(idsOf((await claimLimited(store)).jobs), [first]);
  },

  'with a concurrency of one, a job that has failed keeps its turn when it snoozes': async ({ store, advance }) => {
    await allow(store, { concurrency: 1 });
    const [first] = await enqueue(store, 2, behind('a'));
    await settleOne(store, only((await claimLimited(store)).jobs), retryIn(0));
    await settleOne(store, only((await claimLimited(store)).jobs), giveBack('snooze', HOUR));
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await advance(HOUR);
    assert.deepEqual(idsOf((await claimLimited(store)).jobs), [first]);
  },

  'what time has given back, a job that is handed back late does not give back again': async ({ store, advance }) => {
    await allow(store, { rate });
    await enqueue(store, 3, behind('a'));
    const late = only((await claimLimited(store, { leaseMs: 10 * SPACE })).jobs);
    await advance(SPACE);
    assert.equal((await claimLimited(store)).jobs.length, 1);
    await advance(SPACE / 2);
    await settleOne(store, late, giveBack('release'));
    assert.deepEqual((await claimLimited(store)).jobs, []);
  },

  'with a concurrency of one, jobs of a key run in order, also through retries': async ({ store, advance }) => {
    await allow(store, { concurrency: 1 });
    const [first, second, third] = await enqueue(store, 3, behind('a'));
    await enqueue(store, 1, behind('b'));
    const both = (await claimLimited(store)).jobs;
    assert.equal(both.length, 2);
    await settleOne(store, oneOf(both, 'a'), retryIn(HOUR));
    const waits = await claimLimited(store);
    assert.deepEqual(waits.jobs, []);
    assert.ok(waits.nextAt !== null && waits.nextAt > waits.now && waits.nextAt <= waits.now + HOUR);
    await advance(HOUR);
    const again = only((await claimLimited(store)).jobs);
    assert.equal(again.id, first);
    await settleOne(store, again, complete);
    const next = only((await claimLimited(store)).jobs);
    assert.equal(next.id, second);
    await settleOne(store, next, die());
    assert.deepEqual(idsOf((await claimLimited(store)).jobs), [third]);
  },

  'a cancel of the job that keeps the turn passes the turn on': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    const [first, second] = await enqueue(store, 2, behind('a'));
    await settleOne(store, only((await claimLimited(store)).jobs), retryIn(HOUR));
    assert.deepEqual((await claimLimited(store)).jobs, []);
    assert.deepEqual(await store.cancel([first as string]), [{ id: first, result: 'cancelled' }]);
    assert.deepEqual(idsOf((await claimLimited(store)).jobs), [second]);
  },

  'a retry of a key with more room keeps no turn': async ({ store }) => {
    await allow(store, { concurrency: 2 });
    await enqueue(store, 4, behind('a'));
    const { jobs } = await claimLimited(store);
    await store.settle(jobs.map((job) => settlement(job, retryIn(HOUR))));
    assert.equal((await claimLimited(store)).jobs.length, 2);
  },

  'a redriven job stands behind its limits again': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    const [first, second] = await enqueue(store, 2, behind('a'));
    await settleOne(store, only((await claimLimited(store)).jobs), die());
    const running = only((await claimLimited(store)).jobs);
    assert.equal(running.id, second);
    await redrive(store, { ids: [first as string] });
    assert.deepEqual((await claim(store)).jobs, []);
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await settleOne(store, running, complete);
    assert.deepEqual(idsOf((await claimLimited(store)).jobs), [first]);
    assert.deepEqual((await jobOf(store, first as string)).limits, behind('a'));
  },

  'a bulk cancel of what waits leaves nothing behind': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    await enqueue(store, 5, behind('a'));
    const running = only((await claimLimited(store)).jobs);
    assert.equal((await changeAll(store, 'cancel', { state: 'ready' })).ids.length, 4);
    await settleOne(store, running, complete);
    assert.deepEqual((await claimLimited(store)).jobs, []);
    assert.equal((await claim(store)).limited, false);
    const [id] = await enqueue(store, 1, behind('a'));
    assert.deepEqual(idsOf((await claimLimited(store)).jobs), [id]);
  },

  'jobs that are run now wait for their limit': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    const ids = await enqueue(store, 2, behind('a'), { delayMs: HOUR });
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await changeAll(store, 'runNow', { ids });
    assert.equal((await claimLimited(store)).jobs.length, 1);
  },

  'a raised limit lets more start, and a lowered one drains': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    await enqueue(store, 10, behind('a'));
    const jobs = (await claimLimited(store)).jobs;
    await store.writeLimits([{ limit: SHOP, key: null, source: 'set', settings: { concurrency: 3 } }]);
    jobs.push(...(await claimLimited(store)).jobs);
    assert.equal(jobs.length, 3);
    await store.writeLimits([{ limit: SHOP, key: null, source: 'set', settings: { concurrency: 2 } }]);
    await settleOne(store, jobs[0] as ClaimedJob, complete);
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await settleOne(store, jobs[1] as ClaimedJob, complete);
    assert.equal((await claimLimited(store)).jobs.length, 1);
    await store.writeLimits([{ limit: SHOP, key: null, source: 'set', settings: null }]);
    assert.deepEqual((await claimLimited(store)).jobs, []);
  },

  'a raised rate lets the next job start by its own space, and a rate that is removed owes nothing': async ({
    store,
    advance,
  }) => {
    const set = (key: string | null, settings: Omit<LimitOverride, 'total'>): Promise<void> =>
      store.writeLimits([{ limit: SHOP, key, source: 'set', settings }]);
    await allow(store, { rate });
    for (const key of ['a', 'b', 'c']) await enqueue(store, 4, behind(key));
    assert.deepEqual(countKeys((await claimLimited(store)).jobs), { a: 1, b: 1, c: 1 });
    // One start in 2 minutes, of one key and then of all.
    await set('a', { rate: { limit: 10, perMs: 20 * MINUTE, burst: 1 } });
    await advance(3 * MINUTE);
    assert.deepEqual(countKeys((await claimLimited(store)).jobs), { a: 1 });
    await set(null, { rate: { limit: 10, perMs: 20 * MINUTE, burst: 1 } });
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await advance(3 * MINUTE);
    assert.deepEqual(countKeys((await claimLimited(store)).jobs), { a: 1, b: 1, c: 1 });
    await set('b', { rate });
    await advance(3 * MINUTE);
    assert.deepEqual(countKeys((await claimLimited(store)).jobs), { a: 1, b: 1, c: 1 });
    await set('b', { rate: null });
    await set('b', { rate });
    assert.deepEqual(countKeys((await claimLimited(store)).jobs), { b: 1 });
  },

  'a concurrency of 0 lets no job of the key start until it is changed': async ({ store }) => {
    await allow(store, { concurrency: 1, total: 5 });
    const set = (settings: LimitOverride | null, key: string | null): Promise<void> =>
      store.writeLimits([{ limit: SHOP, key, source: 'set', settings }]);
    await set({ concurrency: 0 }, 'a');
    const [first] = await enqueue(store, 2, behind('a'));
    await enqueue(store, 2, behind('b'));
    const ofB = only((await claimLimited(store)).jobs);
    assert.deepEqual(ofB.limits, behind('b'));
    assert.deepEqual([(await claimLimited(store)).jobs, (await claimLimited(store)).nextAt], [[], null]);
    await set(null, 'a');
    const ofA = only((await claimLimited(store)).jobs);
    assert.equal(ofA.id, first);
    // What runs goes on, and its retry waits too.
    await set({ total: 0 }, null);
    await settleOne(store, ofA, retryIn(0));
    await settleOne(store, ofB, complete);
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await set({ total: 5 }, null);
    assert.deepEqual(countKeys((await claimLimited(store)).jobs), { a: 1, b: 1 });
  },

  'a key has settings of its own before those of its limit': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    await store.writeLimits([{ limit: SHOP, key: 'gold', source: 'set', settings: { concurrency: 3 } }]);
    await enqueue(store, 5, behind('gold'));
    await enqueue(store, 5, behind('a'));
    assert.deepEqual(countKeys((await claimLimited(store)).jobs), { gold: 3, a: 1 });
    await store.writeLimits([{ limit: SHOP, key: 'gold', source: 'set', settings: null }]);
    assert.deepEqual((await claimLimited(store)).jobs, []);
  },

  'what an operator says comes before what code says, and what is said of a key first': async ({ store }) => {
    await store.writeLimits([
      { limit: SHOP, key: null, source: 'code', settings: { total: null, rate: null, concurrencyBefore: 1 } },
    ]);
    await enqueue(store, 9, behind('a'));
    const settings = async (): Promise<number | null | undefined> =>
      (await store.limitKeys(SHOP, { keys: ['a'], limit: 1 }))[0]?.settings.concurrency;
    assert.equal(await settings(), 1);
    await store.writeLimits([{ limit: SHOP, key: 'a', source: 'code', settings: { concurrency: 4 } }]);
    assert.equal(await settings(), 4);
    await store.writeLimits([{ limit: SHOP, key: null, source: 'set', settings: { concurrency: 2 } }]);
    assert.equal(await settings(), 2);
    await store.writeLimits([{ limit: SHOP, key: 'a', source: 'set', settings: { concurrency: 3 } }]);
    assert.equal(await settings(), 3);
    assert.equal((await claimLimited(store)).jobs.length, 3);
  },

  'a write that merges keeps what it does not name, and one that does not replaces the rule': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    const write = (key: string | null, settings: Omit<LimitOverride, 'total'>, merge = true): Promise<void> =>
      store.writeLimits([{ limit: SHOP, key, source: 'set', settings, ...(merge && { merge }) }]);
    for (const key of [null, 'a']) {
      await Promise.all([write(key, { concurrency: 3 }), write(key, { rate })]);
      await write(key, { concurrency: null });
    }
    const merged = { concurrency: null, rate };
    assert.deepEqual(only(await store.limits({ limit: 10 })).set, merged);
    assert.deepEqual(only(await store.limitKeys(SHOP, { limit: 10 })).set, merged);
    await write('a', { concurrency: 2 }, false);
    assert.deepEqual(only(await store.limitKeys(SHOP, { limit: 10 })).set, { concurrency: 2 });
  },

  'what code computes for a key counts only while code gives no concurrency for all': async ({ store }) => {
    await store.writeLimits([{ limit: SHOP, key: 'a', source: 'code', settings: { concurrency: 4 } }]);
    await allow(store, { concurrency: 1 });
    await enqueue(store, 9, behind('a'));
    assert.equal((await claimLimited(store)).jobs.length, 1);
    await store.writeLimits([{ limit: SHOP, key: null, source: 'code', settings: { total: null, rate: null } }]);
    assert.equal((await claimLimited(store)).jobs.length, 3);
    await allow(store, { total: 5 });
    assert.equal((await claimLimited(store)).jobs.length, 1);
  },

  'a higher priority comes first, and retries have their kept places': async ({ store }) => {
    await allow(store, { concurrency: 100 });
    await enqueue(store, 4, behind('a'));
    await store.settle((await claimLimited(store)).jobs.map((job) => settlement(job, retryIn(0))));
    await enqueue(store, 4, behind('a'), { priority: 7 });
    await enqueue(store, 2, behind('b'), { priority: 1 });
    const { jobs } = await claimLimited(store, { limit: 4, queues: [quota({ share: 4, retry: 1 })] });
    assert.deepEqual(
      jobs.map(({ lane, priority }) => [lane, priority]),
      [
        ['retry', 5],
        ['fresh', 1],
        ['fresh', 1],
        ['fresh', 7],
      ],
    );
  },

  'maxRetriesInFlight holds behind limits too': async ({ store }) => {
    await allow(store, { concurrency: 100 });
    await enqueue(store, 4, behind('a'));
    await store.settle((await claimLimited(store)).jobs.map((job) => settlement(job, retryIn(0))));
    const queues = [quota({ maxRetriesInFlight: 2 })];
    assert.equal((await claimLimited(store, { queues })).jobs.length, 2);
    assert.equal((await claimLimited(store, { queues })).jobs.length, 0);
  },

  'a maxRetriesInFlight that no queue can reach caps nothing behind limits either': async ({ store }) => {
    await allow(store, { concurrency: 100 });
    await enqueue(store, 4, behind('a'));
    await store.settle((await claimLimited(store)).jobs.map((job) => settlement(job, retryIn(0))));
    const queues = [quota({ maxRetriesInFlight: 2 ** 31 })];
    assert.equal((await claimLimited(store, { queues })).jobs.length, 4);
  },

  'retries of a name with many keys do not take the turns of a name with one': async ({ store }) => {
    await allow(store, { concurrency: 100 });
    for (let key = 0; key < 40; key++) await enqueue(store, 1, behind(`a ${key}`), { name: 'many' });
    await enqueue(store, 40, behind('b'), { name: 'one' });
    const taken = [...(await claimLimited(store)).jobs, ...(await claimLimited(store)).jobs];
    assert.equal(taken.length, 80);
    await store.settle(taken.map((job) => settlement(job, retryIn(0))));
    const names: string[] = [];
    for (let claims = 0; claims < 3; claims++) {
      names.push(...(await claimLimited(store, { limit: 10 })).jobs.map(({ name }) => name));
    }
    const ofOne = names.filter((name) => name === 'one').length;
    assert.ok(Math.abs(ofOne - 15) <= 3, `${ofOne} of 30 are of the name with one key`);
  },

  'a held queue holds its jobs behind limits': async ({ store }) => {
    await allow(store, { concurrency: 100 });
    await enqueue(store, 1, behind('a'));
    await store.hold({ queue: 'default' }, null);
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await enqueue(store, 1, behind('b'));
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await store.release({ queue: 'default' });
    assert.equal((await claimLimited(store)).jobs.length, 2);
  },

  'a gate and a limit both hold': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    await enqueue(store, 3, behind('a'), { resource: 'smtp' });
    await trip(store, 'smtp');
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await store.changeGate({ kind: 'resource', name: 'smtp' }, 'close', 'ann');
    const running = only((await claimLimited(store)).jobs);
    await store.changeGate({ kind: 'resource', name: 'smtp' }, 'open', 'ann');
    assert.deepEqual((await claimGated(store, 'smtp')).jobs, []);
    await settleOne(store, running, complete);
    assert.deepEqual((await claimLimited(store)).jobs, []);
    await store.changeGate({ kind: 'resource', name: 'smtp' }, 'close', 'ann');
    assert.equal((await claimLimited(store)).jobs.length, 1);
  },

  'a probe asks its limit': async ({ store, advance }) => {
    await allow(store, { concurrency: 1 });
    await enqueue(store, 3, behind('a'), { resource: 'smtp' });
    const running = only((await claimLimited(store)).jobs);
    await trip(store, 'smtp');
    await advance(2 * MINUTE);
    assert.deepEqual((await claimGated(store, 'smtp')).jobs, []);
    await settleOne(store, running, complete);
    assert.equal((await claimGated(store, 'smtp')).jobs.length, 1);
  },

  'jobs aside are left to workers that know them': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    await enqueue(store, 2, behind('a'), { name: 'new' });
    const job = only((await claimLimited(store)).jobs);
    const aside = { version: 1, isRejected: false };
    await settleOne(store, job, { kind: 'release', delayMs: 0, rule: 'no-handler', aside });
    const knows = new Map([['new', 1]]);
    const stranger = (await claimLimited(store)).jobs;
    assert.equal(only(stranger).id === job.id, false);
    await settleOne(store, only(stranger), complete);
    assert.deepEqual((await claimLimited(store)).jobs, []);
    assert.equal(only((await claimLimited(store, { knows })).jobs).id, job.id);
  },

  'keys and names may be any text': async ({ store }) => {
    for (const text of hostileTexts) {
      await allow(store, { concurrency: 1 }, text);
      await enqueue(store, 2, behind(text, text));
    }
    const { jobs } = await claimLimited(store);
    assert.deepEqual(jobs.map(({ limits }) => only(limits).key).sort(), [...hostileTexts].sort());
  },

  'jobs of other queues are left alone': async ({ store }) => {
    await allow(store, { concurrency: 10 });
    const [id] = await enqueue(store, 1, behind('a'), { queue: 'other' });
    assert.deepEqual((await claimLimited(store)).jobs, []);
    assert.deepEqual(idsOf((await claimLimited(store, { queues: [quota({ queue: 'other' })] })).jobs), [id]);
  },

  'two claims at once never exceed a limit': async ({ store }) => {
    await allow(store, { concurrency: 2, total: 10 });
    for (let key = 0; key < 20; key++) await enqueue(store, 5, behind(`key ${key}`));
    const claims = await Promise.all(
      Array.from({ length: 8 }, (_, n) => claimLimited(store, { worker: `worker-${n}`, limit: 5 })),
    );
    const jobs = claims.flatMap((one) => one.jobs);
    assert.equal(new Set(idsOf(jobs)).size, jobs.length);
    assert.ok(jobs.length <= 10, `${jobs.length} jobs run, of 10 in total`);
    assert.ok(Object.values(countKeys(jobs)).every((count) => count <= 2));
    for (let n = 0; n < 5; n++) jobs.push(...(await claimLimited(store)).jobs);
    assert.equal(jobs.length, 10);
  },
});

const limits: StoreCase[] = cases('limits', {
  'they are listed with what runs and what waits, and so are their keys': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    await store.writeLimits([{ limit: SHOP, key: null, source: 'set', settings: { total: 7 } }]);
    await store.writeLimits([{ limit: SHOP, key: 'gold', source: 'set', settings: { concurrency: 3 } }]);
    await enqueue(store, 3, behind('a'));
    await enqueue(store, 1, behind('b'));
    await claimLimited(store);
    await enqueue(store, 1, behind('b'), { delayMs: HOUR });
    const code = { concurrency: 1, total: null, rate: null };
    assert.deepEqual(await store.limits({ limit: 10 }), [
      { name: SHOP, code, set: { total: 7 }, running: 2, waiting: 3, keysSet: 1 },
    ]);
    assert.deepEqual(await store.limits({ names: ['none'], limit: 10 }), []);
    const common = {
      limit: SHOP,
      code: null,
      set: null,
      settings: { concurrency: 1, total: 7, rate: null },
      startsAt: null,
    };
    assert.deepEqual(await store.limitKeys(SHOP, { keys: ['a', 'b'], limit: 10 }), [
      { ...common, key: 'a', running: 1, waiting: 2, due: 2 },
      { ...common, key: 'b', running: 1, waiting: 1, due: 0 },
    ]);
    const gold = only(await store.limitKeys(SHOP, { keys: ['gold'], limit: 10 }));
    assert.deepEqual([gold.set, gold.settings], [{ concurrency: 3 }, { concurrency: 3, total: 7, rate: null }]);
    assert.equal((await store.limitKeys(SHOP, { limit: 1 })).length, 1);
  },

  'keys with a rule of an operator are listed first, then those with the most waiting jobs': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    await store.writeLimits([
      { limit: SHOP, key: 'gold', source: 'set', settings: { concurrency: 3 } },
      { limit: SHOP, key: 'free', source: 'code', settings: { concurrency: 2 } },
      { limit: SHOP, key: 'iron', source: 'set', settings: { concurrency: 0 } },
      { limit: 'other', key: 'a', source: 'set', settings: { concurrency: 3 } },
    ]);
    await enqueue(store, 1, behind('iron'));
    await enqueue(store, 1, behind('b'));
    await enqueue(store, 3, behind('a'));
    const keys = async (limit: number): Promise<string[]> =>
      (await store.limitKeys(SHOP, { limit })).map(({ key }) => key);
    assert.deepEqual(await keys(10), ['iron', 'gold', 'a', 'b', 'free']);
    assert.deepEqual(await keys(2), ['iron', 'gold']);
    const keysSet = async (): Promise<(number | undefined)[]> =>
      (await store.limits({ limit: 10 })).map((one) => one.keysSet);
    assert.deepEqual(await keysSet(), [1, 2]);
    await store.writeLimits([{ limit: SHOP, key: 'iron', source: 'set', settings: null }]);
    assert.deepEqual(await keysSet(), [1, 1]);
    assert.deepEqual(await keys(1), ['gold']);
  },
});

const permits: StoreCase[] = cases('permit', {
  'it is granted as the rate of the key allows, and is paid by the jobs of the key': async ({ store, advance }) => {
    await allow(store, { rate: { ...rate, burst: 3 } });
    const asked = { limit: SHOP, key: 'a', cost: 2 };
    const first = await store.permit(asked);
    assert.deepEqual([first.startsAt, first.burst], [null, 3]);
    const second = await store.permit(asked);
    assert.ok(second.startsAt !== null && second.startsAt > second.now && second.startsAt <= second.now + 2 * SPACE);
    assert.equal((await store.permit({ ...asked, cost: 1 })).startsAt, null);
    await enqueue(store, 1, behind('a'));
    assert.deepEqual((await claimLimited(store)).jobs, []);
    assert.equal((await store.permit({ ...asked, key: 'b' })).startsAt, null);
    await advance(4 * SPACE);
    assert.equal((await store.permit(asked)).startsAt, null);
  },

  'without a rate it is always granted': async ({ store }) => {
    await allow(store, { concurrency: 1 });
    const { startsAt, burst } = await store.permit({ limit: SHOP, key: 'a', cost: 1_000 });
    assert.deepEqual([startsAt, burst], [null, null]);
  },
});

export const limitCases: readonly StoreCase[] = [...claims, ...limits, ...permits];
