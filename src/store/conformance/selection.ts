import assert from 'node:assert/strict';
import type { StoredError } from '../../retry/outcome.ts';
import type { JobSelection, NewJob, Store } from '../store.ts';
import {
  bury,
  claim,
  die,
  discard,
  enqueueOne,
  HOUR,
  hostileTexts,
  idsOf,
  MINUTE,
  newJobs,
  redrive,
  retryIn,
  settlement,
  settleOne,
  startOne,
  storedError,
  timeOf,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

/** An error with this fingerprint. */
export function errorOf(fingerprint: string, message = 'no luck'): StoredError {
  return { ...storedError(message), fingerprint };
}

/** A job that failed once, and died of it or waits to be retried. */
export async function failed(
  store: Store,
  error: StoredError,
  end: 'dead' | 'retrying',
  changes: Partial<NewJob> = {},
): Promise<string> {
  const job = await startOne(store, changes);
  await settleOne(store, job, end === 'dead' ? die() : retryIn(HOUR), { error });
  return job.id;
}

/** What is listed and counted: both must select the same. */
async function selected(store: Store, selection: JobSelection): Promise<string[]> {
  const ids = idsOf(await store.list({ limit: 100, ...selection }));
  assert.deepEqual(await store.count(selection), { count: ids.length, isExact: true });
  return ids.toSorted();
}

export const selectionCases: readonly StoreCase[] = cases('list', {
  'jobs are selected by the fingerprint of their last error': async ({ store }) => {
    const a = await failed(store, errorOf('f1'), 'dead');
    const b = await failed(store, errorOf('f1'), 'retrying');
    await failed(store, errorOf('f2'), 'dead');
    await bury(store);
    await enqueueOne(store);
    assert.deepEqual(await selected(store, { error: 'f1' }), [a, b].toSorted());
    assert.deepEqual(await selected(store, { error: 'f1', state: 'dead' }), [a]);
    assert.deepEqual(await selected(store, { error: 'f1', state: 'retrying' }), [b]);
    assert.deepEqual(await selected(store, { error: 'f3' }), []);
  },

  'the fingerprint is that of the last error, also after a redrive': async ({ store }) => {
    const id = await failed(store, errorOf('f1'), 'dead');
    await redrive(store, { ids: [id] });
    assert.deepEqual(await selected(store, { error: 'f1', state: 'ready' }), [id]);
    const { jobs } = await claim(store);
    await store.settle(jobs.map((job) => settlement(job, die(), { error: errorOf('f2') })));
    assert.deepEqual(await selected(store, { error: 'f1' }), []);
    assert.deepEqual(await selected(store, { error: 'f2', state: 'dead' }), [id]);
  },

  'jobs are selected by a part of the message, in upper or lower case': async ({ store }) => {
    const a = await failed(store, errorOf('f1', 'Connection REFUSED by host'), 'dead');
    const b = await failed(store, errorOf('f2', 'connection refused'), 'retrying');
    await failed(store, errorOf('f3', 'timeout'), 'dead');
    await enqueueOne(store);
    assert.deepEqual(await selected(store, { message: 'ION refused' }), [a, b].toSorted());
    assert.deepEqual(await selected(store, { message: 'refused', state: 'dead' }), [a]);
    assert.deepEqual(await selected(store, { message: '%' }), []);
  },

  'jobs are selected by a tag, and show all their tags': async ({ store }) => {
    const a = await enqueueOne(store, { tags: ['endpoint:42', 'eu'], delayMs: HOUR });
    const b = await bury(store, { tags: ['endpoint:42'] });
    await enqueueOne(store, { tags: ['endpoint:4'] });
    const none = await enqueueOne(store);
    assert.deepEqual(await selected(store, { tag: 'endpoint:42' }), [a, b].toSorted());
    assert.deepEqual(await selected(store, { tag: 'endpoint:42', state: 'dead' }), [b]);
    assert.deepEqual(await selected(store, { tag: 'eu' }), [a]);
    const [first, second, third] = await store.get([a, b, none]);
    assert.deepEqual([first?.tags, second?.tags, third?.tags], [['endpoint:42', 'eu'], ['endpoint:42'], []]);
    await redrive(store, { ids: [b] });
    assert.deepEqual(await selected(store, { tag: 'endpoint:42', state: 'ready' }), [b]);
  },

  'hostile texts are tags, fingerprints and messages like any others': async ({ store }) => {
    await store.enqueue(newJobs(2, { tags: ['plain'] }));
    for (const text of hostileTexts) {
      const id = await failed(store, errorOf(text, text), 'dead', { tags: [text], name: 'hostile', queue: 'hostile' });
      assert.deepEqual(await selected(store, { tag: text }), [id]);
      assert.deepEqual(await selected(store, { error: text }), [id]);
      assert.ok((await selected(store, { message: text })).includes(id));
      await discard(store, { ids: [id] });
    }
  },

  'jobs are selected by several states at once': async ({ store }) => {
    const dead = await bury(store);
    const retrying = await failed(store, errorOf('f'), 'retrying');
    const scheduled = await enqueueOne(store, { delayMs: HOUR });
    const ready = await enqueueOne(store);
    assert.deepEqual(await selected(store, { state: ['dead', 'retrying'] }), [dead, retrying].toSorted());
    assert.deepEqual(await selected(store, { state: ['scheduled', 'ready'] }), [scheduled, ready].toSorted());
    assert.deepEqual(await selected(store, { state: ['running', 'completed'] }), []);
    assert.deepEqual(await selected(store, { state: [] }), []);
    assert.deepEqual(await selected(store, { state: 'retrying', reason: 'exhausted' }), []);
  },

  'since and until bound when a job ended, or else when it was enqueued': async ({ store, advance }) => {
    const early = await startOne(store);
    await advance(HOUR);
    const from = await timeOf(store);
    const waiting = await enqueueOne(store, { delayMs: 9 * HOUR });
    await settleOne(store, early, die());
    await advance(HOUR);
    const until = await timeOf(store);
    await advance(MINUTE);
    const late = await enqueueOne(store, { delayMs: HOUR });
    assert.deepEqual(await selected(store, { since: from, until }), [early.id, waiting].toSorted());
    assert.deepEqual(await selected(store, { since: until }), [late]);
    assert.deepEqual(await selected(store, { until: from }), []);
    assert.deepEqual(await selected(store, { until, state: 'dead' }), [early.id]);
    assert.deepEqual(await selected(store, { until, state: 'scheduled' }), [waiting]);
  },

  'attempts are selected by the fewest and the most': async ({ store }) => {
    const none = await enqueueOne(store, { delayMs: HOUR });
    const one = await bury(store);
    assert.deepEqual(await selected(store, { attempts: { min: 1, max: 9 } }), [one]);
    assert.deepEqual(await selected(store, { attempts: { min: 0, max: 0 } }), [none]);
  },

  'a count stops at the limit': async ({ store }) => {
    await store.enqueue(newJobs(5));
    assert.deepEqual(await store.count({ limit: 3 }), { count: 3, isExact: true });
    assert.deepEqual(await store.count({}), { count: 5, isExact: true });
  },

  'the dead are listed by when they died, newest first, page after page': async ({ store, advance }) => {
    const jobs = [await startOne(store), await startOne(store), await startOne(store)];
    const died: string[] = [];
    for (const job of jobs.toReversed()) {
      await settleOne(store, job, die());
      died.unshift(job.id);
      await advance(MINUTE);
    }
    const first = idsOf(await store.list({ state: 'dead', limit: 2 }));
    assert.deepEqual(first, died.slice(0, 2));
    const rest = await store.list({ state: 'dead', limit: 2, after: first[1] as string });
    assert.deepEqual(idsOf(rest), died.slice(2));
  },

  'a job is found by how its id begins': async ({ store }) => {
    const ids = [await enqueueOne(store), await enqueueOne(store)];
    const [first = '', second = ''] = ids;
    assert.deepEqual(idsOf(await store.list({ idPrefix: first, limit: 5 })), [first]);
    let same = 0;
    while (first[same] === second[same]) same++;
    assert.deepEqual(idsOf(await store.list({ idPrefix: first.slice(0, same + 1), limit: 5 })), [first]);
    assert.deepEqual(idsOf(await store.list({ idPrefix: first.slice(0, same), limit: 5 })).toSorted(), ids.toSorted());
    assert.deepEqual(await store.list({ idPrefix: 'zz', limit: 5 }), []);
  },
});
