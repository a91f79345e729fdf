import assert from 'node:assert/strict';
import {
  bury,
  claim,
  complete,
  enqueueOne,
  HOUR,
  idsOf,
  type KeptFor,
  MINUTE,
  newJobs,
  pruneWith,
  redrive,
  settlement,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const forEver: KeptFor = { completedMs: null, deadMs: null, cancelledMs: null };
const oneHour: KeptFor = { completedMs: HOUR, deadMs: HOUR, cancelledMs: HOUR };

export const pruneCases: readonly StoreCase[] = cases('prune', {
  'a finished job is pruned once its retention is over, with its ledger': async ({ store, advance }) => {
    const job = await startOne(store);
    await settleOne(store, job, complete);
    await advance(30 * MINUTE);
    assert.equal((await pruneWith(store, oneHour, 10)).jobs, 0);
    await advance(30 * MINUTE);
    assert.equal((await pruneWith(store, oneHour, 10)).jobs, 1);
    assert.deepEqual(await store.get([job.id]), []);
    assert.deepEqual(await store.runs(job.id), []);
  },

  'each end has a retention of its own': async ({ store, advance }) => {
    const done = await startOne(store);
    await settleOne(store, done, complete);
    const dead = await bury(store);
    const cancelled = await enqueueOne(store);
    await store.cancel([cancelled]);
    await advance(2 * HOUR);
    assert.equal((await pruneWith(store, { ...forEver, cancelledMs: HOUR }, 10)).jobs, 1);
    assert.deepEqual(idsOf(await store.get([done.id, dead, cancelled])), [done.id, dead]);
    assert.equal((await pruneWith(store, { ...forEver, completedMs: HOUR }, 10)).jobs, 1);
    assert.deepEqual(idsOf(await store.get([done.id, dead])), [dead]);
    assert.equal((await pruneWith(store, { ...forEver, deadMs: HOUR }, 10)).jobs, 1);
    assert.deepEqual(await store.list({ limit: 10 }), []);
  },

  'without a retention everything is kept': async ({ store, advance }) => {
    const id = await bury(store);
    await advance(10_000 * HOUR);
    assert.equal((await pruneWith(store, forEver, 10)).jobs, 0);
    assert.deepEqual(idsOf(await store.get([id])), [id]);
  },

  'a retention of nothing prunes what has just ended': async ({ store }) => {
    await settleOne(store, await startOne(store), complete);
    assert.equal((await pruneWith(store, { ...forEver, completedMs: 0 }, 10)).jobs, 1);
  },

  'jobs that wait or run are never pruned': async ({ store, advance }) => {
    const running = await startOne(store);
    const waiting = await enqueueOne(store);
    const scheduled = await enqueueOne(store, { delayMs: 1_000 * HOUR });
    await advance(100 * HOUR);
    assert.equal((await pruneWith(store, { completedMs: 0, deadMs: 0, cancelledMs: 0 }, 10)).jobs, 0);
    assert.equal((await store.get([running.id, waiting, scheduled])).length, 3);
  },

  'the retention of a redriven job starts anew': async ({ store, advance }) => {
    const id = await bury(store);
    await advance(2 * HOUR);
    await redrive(store, { ids: [id] });
    assert.equal((await pruneWith(store, oneHour, 10)).jobs, 0);
    assert.equal((await claim(store)).jobs.length, 1);
  },

  'a prune takes no more than its limit, and the next one goes on': async ({ store, advance }) => {
    await store.enqueue(newJobs(25));
    const { jobs } = await claim(store);
    await store.settle(jobs.map((job) => settlement(job, complete)));
    await advance(2 * HOUR);
    const pruned: number[] = [];
    for (let turn = 0; turn < 4; turn++) pruned.push((await pruneWith(store, oneHour, 10)).jobs);
    assert.deepEqual(pruned, [10, 10, 5, 0]);
  },

  'concurrent prunes count each job once': async ({ store, advance }) => {
    await store.enqueue(newJobs(20));
    await store.cancel(idsOf(await store.list({ limit: 20 })));
    await advance(2 * HOUR);
    const answers = await Promise.all(Array.from({ length: 5 }, () => pruneWith(store, oneHour, 7)));
    const counts = answers.map(({ jobs }) => jobs);
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      20,
    );
  },
});
