import assert from 'node:assert/strict';
import {
  bury,
  claimOne,
  complete,
  crash,
  die,
  fenceOf,
  HOUR,
  hostileTexts,
  LEASE,
  pruneWith,
  redrive,
  retryIn,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const nothing: ReadonlyMap<string, string> = new Map();

export const memoCases: readonly StoreCase[] = cases('memo', {
  'what was remembered is recalled': async ({ store }) => {
    const job = await startOne(store);
    assert.equal(await store.remember(fenceOf(job), 'charge', '{"id":7}'), true);
    assert.equal(await store.remember(fenceOf(job), 'mail', 'null'), true);
    assert.deepEqual(
      await store.recall(job.id),
      new Map([
        ['charge', '{"id":7}'],
        ['mail', 'null'],
      ]),
    );
  },

  'the first value of a key stands, for this run and for later ones': async ({ store }) => {
    const first = await startOne(store);
    await store.remember(fenceOf(first), 'charge', '1');
    assert.equal(await store.remember(fenceOf(first), 'charge', '2'), true);
    await settleOne(store, first, retryIn(0));
    const second = await claimOne(store);
    assert.equal(await store.remember(fenceOf(second), 'charge', '3'), true);
    assert.deepEqual(await store.recall(first.id), new Map([['charge', '1']]));
  },

  'another run or worker remembers nothing': async ({ store }) => {
    const job = await startOne(store);
    assert.equal(await store.remember({ ...fenceOf(job), worker: 'worker-2' }, 'a', '1'), false);
    assert.equal(await store.remember({ ...fenceOf(job), run: 2 }, 'a', '1'), false);
    assert.equal(await store.remember({ ...fenceOf(job), id: 'unknown' }, 'a', '1'), false);
    assert.deepEqual(await store.recall(job.id), nothing);
  },

  'a run that was settled or rescued remembers nothing more': async ({ store, advance }) => {
    const done = await startOne(store);
    await settleOne(store, done, complete);
    assert.equal(await store.remember(fenceOf(done), 'a', '1'), false);
    const lost = await startOne(store);
    await advance(2 * LEASE);
    await store.settle([crash(lost)]);
    assert.equal(await store.remember(fenceOf(lost), 'a', '1'), false);
    assert.deepEqual(await store.recall(lost.id), nothing);
  },

  'a late run that nobody rescued still remembers': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(2 * LEASE);
    assert.equal(await store.remember(fenceOf(job), 'a', '1'), true);
  },

  'what was remembered survives death and redrive': async ({ store }) => {
    const job = await startOne(store);
    await store.remember(fenceOf(job), 'charge', '1');
    await settleOne(store, job, die());
    await redrive(store, { ids: [job.id] });
    assert.deepEqual(await store.recall(job.id), new Map([['charge', '1']]));
  },

  'memos belong to one job and go with it': async ({ store, advance }) => {
    const [kept, gone] = [await startOne(store), await startOne(store)];
    for (const job of [kept, gone]) await store.remember(fenceOf(job), 'a', JSON.stringify(job.id));
    await settleOne(store, gone, complete);
    await advance(HOUR);
    await pruneWith(store, { completedMs: 1, deadMs: null, cancelledMs: null }, 10);
    assert.deepEqual(await store.recall(gone.id), nothing);
    assert.deepEqual(await store.recall(kept.id), new Map([['a', JSON.stringify(kept.id)]]));
  },

  'an unknown job has no memos': async ({ store }) => {
    await bury(store);
    assert.deepEqual(await store.recall('unknown'), nothing);
  },

  'memo keys and values may hold any text': async ({ store }) => {
    const job = await startOne(store);
    for (const text of ['', ...hostileTexts]) {
      assert.equal(await store.remember(fenceOf(job), text, JSON.stringify(text)), true);
    }
    const recalled = await store.recall(job.id);
    assert.equal(recalled.size, hostileTexts.length + 1);
    for (const [key, value] of recalled) assert.equal(JSON.parse(value), key);
  },

  'of two values remembered at once one stands, and both callers are told so': async ({ store }) => {
    const job = await startOne(store);
    const answers = await Promise.all(['1', '2'].map((value) => store.remember(fenceOf(job), 'a', value)));
    assert.deepEqual(answers, [true, true]);
    assert.equal((await store.recall(job.id)).size, 1);
  },
});
