import assert from 'node:assert/strict';
import {
  bury,
  complete,
  die,
  discard,
  enqueueOne,
  fenceOf,
  idsOf,
  MINUTE,
  newJob,
  redrive,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

export const discardCases: readonly StoreCase[] = cases('discard', {
  'a discarded job is gone with its ledger and its memos': async ({ store }) => {
    const job = await startOne(store);
    await store.remember(fenceOf(job), 'a', '1');
    await settleOne(store, job, die());
    assert.deepEqual(await discard(store, { ids: [job.id] }), [job.id]);
    assert.deepEqual(await store.get([job.id]), []);
    assert.deepEqual(await store.runs(job.id), []);
    assert.equal((await store.recall(job.id)).size, 0);
    assert.deepEqual(await store.list({ limit: 10 }), []);
  },

  'only dead jobs are discarded': async ({ store }) => {
    const waiting = await enqueueOne(store, { queue: 'other' });
    const running = await startOne(store);
    const done = await startOne(store);
    await settleOne(store, done, complete);
    const cancelled = await enqueueOne(store);
    await store.cancel([cancelled]);
    const ids = [waiting, running.id, done.id, cancelled];
    assert.deepEqual(await discard(store, { ids: [...ids, 'unknown'] }), []);
    assert.deepEqual(idsOf(await store.get(ids)), ids);
  },

  'a discard selects like a redrive: conditions add up, oldest first': async ({ store, advance }) => {
    const ids: string[] = [];
    for (let made = 0; made < 3; made++) {
      ids.push(await bury(store, { name: 'a' }, 'poison'));
      await advance(MINUTE);
    }
    await bury(store, { name: 'a' }, 'deadline');
    await bury(store, { name: 'b' }, 'poison');
    assert.deepEqual(await discard(store, { name: 'a', reason: 'poison', limit: 2 }), ids.slice(0, 2));
    assert.deepEqual(await discard(store, { name: 'a', reason: 'poison', queue: 'elsewhere' }), []);
    assert.deepEqual(await discard(store, { name: 'a', reason: 'poison', queue: 'default' }), ids.slice(2));
    assert.equal((await store.list({ limit: 10 })).length, 2);
  },

  'a discard may be sent again': async ({ store }) => {
    const id = await bury(store);
    await discard(store, { ids: [id] });
    assert.deepEqual(await discard(store, { ids: [id] }), []);
  },

  'the id of a discarded job may be used again': async ({ store }) => {
    const id = await bury(store, { key: 'k', keyLife: 'pruned' });
    await discard(store, { ids: [id] });
    assert.deepEqual(await store.enqueue([newJob({ id, key: 'k' })]), [{ id, existed: false }]);
    assert.deepEqual(await store.runs(id), []);
  },

  'of a discard and a redrive at once exactly one gets the job': async ({ store }) => {
    const id = await bury(store);
    const [discarded, redriven] = await Promise.all([discard(store, { ids: [id] }), redrive(store, { ids: [id] })]);
    assert.equal(discarded.length + redriven.ids.length, 1);
    assert.equal((await store.get([id])).length, redriven.ids.length);
  },
});
