import assert from 'node:assert/strict';
import type { Enqueued, NewJob, Store } from '../store.ts';
import {
  bury,
  claim,
  claimOne,
  complete,
  die,
  HOUR,
  idsOf,
  jobOf,
  MINUTE,
  newJob,
  only,
  pruneWith,
  redrive,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const WINDOW = 10 * MINUTE;

const throttled = (changes: Partial<NewJob> = {}): NewJob =>
  newJob({ key: 'k', keyLife: 'window', windowMs: WINDOW, ...changes });

async function sent(store: Store, changes: Partial<NewJob> = {}): Promise<Enqueued> {
  return only(await store.enqueue([throttled(changes)]));
}

export const throttleCases: readonly StoreCase[] = cases('enqueue', {
  async 'of throttled jobs of one key, one is stored per window'({ store, advance }) {
    const first = await sent(store);
    assert.equal(first.existed, false);
    await advance(WINDOW / 2);
    assert.deepEqual(await sent(store), { id: first.id, existed: true });
    assert.equal((await sent(store, { key: 'other' })).existed, false);
    assert.equal((await sent(store, { name: 'other' })).existed, false);
    assert.equal((await store.list({ limit: 10 })).length, 3);
  },

  async 'the window of a throttled job begins when it is accepted, and ends by time alone'({ store, advance }) {
    const first = await sent(store, { delayMs: HOUR });
    await advance(WINDOW - MINUTE);
    assert.equal((await sent(store)).id, first.id, 'a refused enqueue does not move the window');
    await advance(MINUTE);
    const second = await sent(store);
    assert.equal(second.existed, false, 'the first still waits');
    assert.equal((await jobOf(store, first.id)).state, 'scheduled');
    await advance(WINDOW - MINUTE);
    assert.deepEqual(await sent(store), { id: second.id, existed: true });
  },

  async 'a throttled job holds its key whatever becomes of it'({ store, advance }) {
    const done = await startOne(store, throttled({ name: 'done' }));
    assert.equal((await sent(store, { name: 'done' })).id, done.id);
    await settleOne(store, done, complete);
    assert.equal((await sent(store, { name: 'done' })).id, done.id);
    await bury(store, throttled({ name: 'dead' }));
    assert.equal((await sent(store, { name: 'dead' })).existed, true);
    const cancelled = await sent(store, { name: 'cancelled' });
    await store.cancel([cancelled.id]);
    assert.equal((await sent(store, { name: 'cancelled' })).id, cancelled.id);
    await advance(MINUTE);
    assert.equal((await pruneWith(store, { completedMs: 1, deadMs: 1, cancelledMs: 1 }, 10)).jobs, 3);
    for (const name of ['done', 'dead', 'cancelled']) assert.equal((await sent(store, { name })).existed, true, name);
    await advance(WINDOW);
    await pruneWith(store, { completedMs: 1, deadMs: 1, cancelledMs: 1 }, 10);
    for (const name of ['done', 'dead', 'cancelled']) assert.equal((await sent(store, { name })).existed, false, name);
  },

  async 'a throttled job that is sent again is stored once'({ store, advance }) {
    const job = throttled();
    assert.deepEqual(await store.enqueue([job]), [{ id: job.id, existed: false }]);
    assert.deepEqual(await store.enqueue([job]), [{ id: job.id, existed: false }]);
    await advance(WINDOW);
    const next = await sent(store);
    assert.deepEqual(await store.enqueue([job]), [{ id: job.id, existed: false }]);
    assert.equal((await sent(store)).id, next.id, 'it has not taken the key again');
    assert.equal((await store.list({ limit: 10 })).length, 2);
  },

  async 'of throttled jobs in a batch, and of many at once, one is stored'({ store }) {
    const batch = [throttled(), throttled(), throttled({ key: 'other' })];
    assert.deepEqual(
      (await store.enqueue(batch)).map(({ existed }) => existed),
      [false, true, false],
    );
    const answers = await Promise.all(Array.from({ length: 20 }, () => store.enqueue([throttled({ name: 'many' })])));
    assert.equal(new Set(answers.flatMap(idsOf)).size, 1);
    assert.equal(answers.flat().filter(({ existed }) => !existed).length, 1);
  },

  async 'a key has one holder, throttled or not'({ store, advance }) {
    const first = await sent(store);
    const plain = newJob({ key: 'k' });
    assert.deepEqual(await store.enqueue([plain]), [{ id: first.id, existed: true }]);
    await advance(WINDOW);
    assert.deepEqual(await store.enqueue([plain]), [{ id: plain.id, existed: false }]);
    await advance(WINDOW);
    assert.deepEqual(await sent(store), { id: plain.id, existed: true });
  },

  async 'a throttled job is not replaced by a debounced one'({ store, advance }) {
    const first = await sent(store, { payload: '1' });
    const debounced = newJob({ key: 'k', keyLife: 'started', debounce: { maxWaitMs: null }, payload: '2' });
    assert.deepEqual(await store.enqueue([debounced]), [{ id: first.id, existed: true }]);
    assert.equal((await claimOne(store)).payload, '1');
    await advance(WINDOW);
    assert.deepEqual(await store.enqueue([debounced]), [{ id: debounced.id, existed: false }]);
  },

  async 'a throttled job is redriven while another job has its key, and does not take it'({ store, advance }) {
    const dead = await bury(store, throttled());
    await advance(WINDOW);
    const next = await sent(store, { delayMs: HOUR });
    assert.deepEqual(await redrive(store, { ids: [dead] }), { ids: [dead], skipped: [] });
    assert.equal((await sent(store)).id, next.id);
    await settleOne(store, only((await claim(store)).jobs), complete);
    await advance(WINDOW);
    assert.equal((await sent(store)).existed, false);
  },

  async 'a job is not redriven while a throttled one holds its key'({ store, advance }) {
    const dead = await bury(store, { key: 'k' });
    await sent(store, { delayMs: HOUR });
    assert.deepEqual((await redrive(store, { ids: [dead] })).skipped, [{ id: dead, why: 'key-taken' }]);
    await advance(WINDOW);
    assert.deepEqual((await redrive(store, { ids: [dead] })).ids, [dead]);
    assert.equal((await sent(store)).id, dead);
    await settleOne(store, only((await claim(store)).jobs), die());
    assert.equal((await sent(store)).existed, false);
  },
});
