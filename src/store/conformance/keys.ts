import assert from 'node:assert/strict';
import type { Decision } from '../../retry/decision.ts';
import type { NewJob, Store } from '../store.ts';
import {
  bury,
  cancelNow,
  claim,
  claimOne,
  complete,
  die,
  discard,
  enqueueOne,
  giveBack,
  HOUR,
  idsOf,
  jobOf,
  newJob,
  only,
  pruneWith,
  retryIn,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

/** Which job an enqueue under the key 'k' yields; null when the key was free. Takes the key if it was. */
async function holder(store: Store, changes: Partial<NewJob> = {}): Promise<string | null> {
  const answer = only(await store.enqueue([newJob({ key: 'k', delayMs: HOUR, ...changes })]));
  return answer.existed ? answer.id : null;
}

export const keyCases: readonly StoreCase[] = cases('enqueue', {
  'a key held by a live job yields that job and stores nothing': async ({ store }) => {
    const id = await enqueueOne(store, { key: 'k' });
    assert.equal(await holder(store), id);
    assert.deepEqual(idsOf(await store.list({ limit: 10 })), [id]);
  },

  'of two jobs with one key in a batch the first is stored': async ({ store }) => {
    const [first, second, other] = [newJob({ key: 'k' }), newJob({ key: 'k' }), newJob({ key: 'other' })];
    assert.deepEqual(await store.enqueue([first, second, other]), [
      { id: first.id, existed: false },
      { id: first.id, existed: true },
      { id: other.id, existed: false },
    ]);
  },

  'a key belongs to one job name': async ({ store }) => {
    await enqueueOne(store, { name: 'a', key: 'k' });
    assert.equal(await holder(store, { name: 'b' }), null);
  },

  'a name and key never run into each other': async ({ store }) => {
    const pairs = [
      ['a:b', 'c'],
      ['a', 'b:c'],
      ['a"', 'b'],
      ['a', '"b'],
      ['a\u0001b', 'c'],
      ['a', 'b\u0001c'],
    ] as const;
    const answers = await store.enqueue(pairs.map(([name, key]) => newJob({ name, key })));
    assert.ok(answers.every((answer) => !answer.existed));
  },

  'an empty key is a key, and no key is none': async ({ store }) => {
    const id = await enqueueOne(store, { key: '' });
    assert.equal(await holder(store, { key: '' }), id);
    assert.equal(await holder(store, { key: null }), null);
    assert.equal(await holder(store, { key: null }), null);
  },

  'the same key sent by many callers at once is one job': async ({ store }) => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => store.enqueue([newJob({ key: 'k' })])));
    assert.equal(new Set(answers.flatMap(idsOf)).size, 1);
    assert.equal(answers.flat().filter((answer) => !answer.existed).length, 1);
  },

  'a key that lasts until the start is held while the job waits': async ({ store }) => {
    const id = await enqueueOne(store, { key: 'k', keyLife: 'started', delayMs: HOUR });
    assert.equal(await holder(store), id);
  },

  'a key that lasts until the start is free once the job is claimed': async ({ store }) => {
    await startOne(store, { key: 'k', keyLife: 'started' });
    assert.equal(await holder(store), null);
  },

  'a key given up at the start is not taken back with the attempt': async ({ store }) => {
    const job = await startOne(store, { key: 'k', keyLife: 'started' });
    await settleOne(store, job, giveBack('release'));
    assert.equal((await jobOf(store, job.id)).state, 'ready');
    assert.equal(await holder(store), null);
  },

  'a key that lasts until the start is free when the job is cancelled before it': async ({ store }) => {
    const id = await enqueueOne(store, { key: 'k', keyLife: 'started' });
    await store.cancel([id]);
    assert.equal(await holder(store), null);
  },

  'a key that lasts until the end is held while the job runs and retries': async ({ store }) => {
    const job = await startOne(store, { key: 'k', keyLife: 'finished' });
    assert.equal(await holder(store), job.id);
    await settleOne(store, job, retryIn(HOUR));
    assert.equal(await holder(store), job.id);
  },

  'a key that lasts until the end is free after every end': async ({ store }) => {
    const ends: Decision[] = [complete, die(), cancelNow];
    for (const decision of ends) {
      const job = await startOne(store, { name: decision.kind, key: 'k', keyLife: 'finished' });
      await settleOne(store, job, decision);
      assert.equal(await holder(store, { name: decision.kind }), null, decision.kind);
    }
  },

  'a key that lasts as long as the row is free only when the row is gone': async ({ store, advance }) => {
    const done = await startOne(store, { key: 'k', keyLife: 'pruned' });
    await settleOne(store, done, complete);
    assert.equal(await holder(store), done.id);
    await advance(HOUR);
    assert.equal((await pruneWith(store, { completedMs: 1, deadMs: null, cancelledMs: null }, 10)).jobs, 1);
    assert.equal(await holder(store), null);

    const dead = await bury(store, { name: 'other', key: 'k', keyLife: 'pruned' });
    assert.equal(await holder(store, { name: 'other' }), dead);
    await discard(store, { ids: [dead] });
    assert.equal(await holder(store, { name: 'other' }), null);
  },

  'the life of a key is the choice of the job that holds it': async ({ store }) => {
    const job = await startOne(store, { key: 'k', keyLife: 'pruned' });
    await settleOne(store, job, complete);
    assert.equal(await holder(store, { keyLife: 'started' }), job.id);
  },

  'a key that changed hands stays with its new holder when the old job ends': async ({ store }) => {
    const old = await startOne(store, { key: 'k', keyLife: 'started' });
    const next = await enqueueOne(store, { key: 'k', delayMs: HOUR });
    await settleOne(store, old, complete);
    assert.equal(await holder(store), next);
    assert.equal((await claim(store)).jobs.length, 0);
  },

  'a retried job still carries the key it gave up': async ({ store }) => {
    const job = await startOne(store, { key: 'k', keyLife: 'started' });
    await settleOne(store, job, retryIn(0));
    assert.equal((await claimOne(store)).id, job.id);
    assert.equal((await jobOf(store, job.id)).key, 'k');
  },
});
