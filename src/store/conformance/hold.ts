import assert from 'node:assert/strict';
import {
  claim,
  complete,
  enqueueInLane,
  enqueueOne,
  fenceOf,
  hostileTexts,
  idsOf,
  LEASE,
  MINUTE,
  newJob,
  only,
  quota,
  retryIn,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

export const holdCases: readonly StoreCase[] = cases('hold', {
  'nothing is claimed from a paused queue until it is resumed': async ({ store }) => {
    const id = await enqueueOne(store);
    await store.hold({ queue: 'default' }, null);
    assert.deepEqual((await claim(store)).jobs, []);
    await store.release({ queue: 'default' });
    assert.deepEqual(idsOf((await claim(store)).jobs), [id]);
  },

  'a paused queue gives its places to the others': async ({ store }) => {
    await store.enqueue([newJob({ queue: 'a' }), newJob({ queue: 'b' }), newJob({ queue: 'b' })]);
    await store.hold({ queue: 'a' }, null);
    const queues = [quota({ queue: 'a', share: 2 }), quota({ queue: 'b', share: 0 })];
    assert.equal((await claim(store, { limit: 2, queues })).jobs.length, 2);
  },

  'a paused queue tells neither a next due time nor suspects': async ({ store }) => {
    await enqueueInLane(store, 'suspect', 1);
    await enqueueOne(store, { delayMs: MINUTE });
    await store.hold({ queue: 'default' }, null);
    const answer = await claim(store, { queues: [quota({ suspect: 1 })] });
    assert.deepEqual([answer.jobs, answer.nextDueAt, answer.suspectsWait], [[], null, false]);
  },

  'jobs may be enqueued to a paused queue': async ({ store }) => {
    await store.hold({ queue: 'default' }, null);
    const id = await enqueueOne(store);
    assert.equal(only(await store.get([id])).state, 'ready');
  },

  'runs that had started go on in a paused queue': async ({ store, advance }) => {
    const [a, b] = [await startOne(store), await startOne(store)];
    await store.hold({ queue: 'default' }, null);
    assert.equal(only(await store.heartbeat([{ ...fenceOf(a), leaseMs: 3 * LEASE }])).kept, true);
    await advance(2 * LEASE);
    assert.deepEqual(idsOf(await store.expired(10)), [b.id]);
    await settleOne(store, a, complete);
    await settleOne(store, b, retryIn(0));
    assert.deepEqual((await claim(store)).jobs, []);
  },

  'a pause or resume may be sent again': async ({ store }) => {
    await enqueueOne(store);
    await store.hold({ queue: 'default' }, null);
    await store.hold({ queue: 'default' }, null);
    assert.deepEqual((await claim(store)).jobs, []);
    await store.release({ queue: 'default' });
    await store.release({ queue: 'default' });
    assert.equal((await claim(store)).jobs.length, 1);
    await store.release({ queue: 'never paused' });
  },

  'queues of any name can be paused': async ({ store }) => {
    for (const queue of hostileTexts) {
      await store.enqueue([newJob({ queue })]);
      await store.hold({ queue }, null);
      assert.deepEqual((await claim(store, { queues: [quota({ queue })] })).jobs, []);
      assert.equal((await store.queues()).find((info) => info.queue === queue)?.paused, true);
    }
  },
});
