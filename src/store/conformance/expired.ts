import assert from 'node:assert/strict';
import {
  assertUntouched,
  claim,
  claimOne,
  complete,
  crash,
  enqueueOne,
  fenceOf,
  idsOf,
  LEASE,
  MINUTE,
  newJob,
  newJobs,
  only,
  retryIn,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

export const expiredCases: readonly StoreCase[] = cases('expired', {
  'a job is expired from the end of its lease on': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(LEASE / 2);
    assert.deepEqual(await store.expired(10), []);
    await advance(LEASE / 2);
    assert.deepEqual(idsOf(await store.expired(10)), [job.id]);
  },

  'an expired job is handed out as its dead worker claimed it': async ({ store, advance }) => {
    await enqueueOne(store, { key: 'k', resource: 'smtp', priority: 1 });
    const claimed = await claimOne(store, { worker: 'dead-worker' });
    await advance(LEASE);
    assert.deepEqual(await store.expired(10), [claimed]);
  },

  'the oldest lease comes first, and the limit holds': async ({ store, advance }) => {
    await store.enqueue(newJobs(3));
    const long = await claimOne(store, { leaseMs: 9 * MINUTE });
    const short = await claimOne(store, { leaseMs: 3 * MINUTE });
    const middle = await claimOne(store, { leaseMs: 6 * MINUTE });
    await advance(10 * MINUTE);
    assert.deepEqual(idsOf(await store.expired(10)), [short.id, middle.id, long.id]);
    assert.deepEqual(idsOf(await store.expired(2)), [short.id, middle.id]);
  },

  'leases that ended at once come in the order the jobs were accepted': async ({ store, advance }) => {
    const ids = idsOf(await store.enqueue([newJob({ priority: 9 }), newJob({ priority: 5 }), newJob({ priority: 0 })]));
    const { jobs } = await claim(store);
    assert.deepEqual(idsOf(jobs), ids.toReversed());
    await advance(LEASE);
    assert.deepEqual(idsOf(await store.expired(10)), ids);
  },

  'jobs that wait or have ended are not expired': async ({ store, advance }) => {
    await settleOne(store, await startOne(store), complete);
    await settleOne(store, await startOne(store), retryIn(0));
    await enqueueOne(store);
    await advance(2 * LEASE);
    assert.deepEqual(await store.expired(10), []);
  },

  'looking at expired jobs changes nothing': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(2 * LEASE);
    await assertUntouched(store, job.id, async () => {
      assert.deepEqual(await store.expired(10), await store.expired(10));
    });
  },

  'a rescued job runs again, and its crash is on record': async ({ store, advance }) => {
    const lost = await startOne(store);
    await advance(2 * LEASE);
    const found = only(await store.expired(10));
    assert.deepEqual(await store.settle([crash(found)]), ['settled']);
    assert.deepEqual(await store.expired(10), []);
    const next = await claimOne(store, { worker: 'worker-2' });
    assert.partialDeepStrictEqual(next, { id: lost.id, run: 2, attempts: 2, crashes: 1 });
    assert.partialDeepStrictEqual(only(await store.runs(lost.id)), { run: 1, outcome: 'crashed', worker: lost.worker });
  },

  'an expired job that should stop says so': async ({ store, advance }) => {
    const job = await startOne(store);
    await store.cancel([job.id]);
    await advance(2 * LEASE);
    assert.equal(only(await store.expired(10)).cancelRequested, true);
  },

  'of many rescuers at once each crash is counted once': async ({ store, advance }) => {
    await store.enqueue(newJobs(10));
    await claim(store);
    await advance(2 * LEASE);
    const rescue = async (): Promise<unknown> => store.settle((await store.expired(100)).map((job) => crash(job)));
    await Promise.all([rescue(), rescue(), rescue()]);
    const jobs = await store.list({ limit: 100 });
    for (const job of jobs) {
      assert.partialDeepStrictEqual(job, { state: 'ready', runs: 1, attempts: 1, crashes: 1 });
      assert.equal((await store.runs(job.id)).length, 1);
    }
    assert.equal(jobs.length, 10);
  },

  'a second crash is told apart from the first': async ({ store, advance }) => {
    const first = await startOne(store);
    await advance(2 * LEASE);
    await store.settle([crash(first)]);
    const second = await claimOne(store);
    await advance(2 * LEASE);
    assert.deepEqual(fenceOf(only(await store.expired(10))), fenceOf(second));
    assert.deepEqual(await store.settle([crash(first), crash(second)]), ['stale', 'settled']);
    assert.equal((await store.runs(first.id)).length, 2);
  },
});
