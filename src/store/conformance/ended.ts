import assert from 'node:assert/strict';
import { encodeResult } from '../../result.ts';
import { PAGE_BYTES } from '../page.ts';
import type { EndedJob, Store } from '../store.ts';
import {
  cancelNow,
  claimOne,
  complete,
  die,
  enqueueOne,
  only,
  retryIn,
  settleOne,
  startOne,
  storedError,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const UNKNOWN = '019b0000-0000-7000-8000-000000000000';

/** Resolves once the store has told of such a change to this job. */
function told(store: Store, change: 'ended' | 'cancelling', id: string): Promise<void> {
  return new Promise((resolve) => {
    const unsubscribe = store.onJobs({
      [change]: (ids: readonly string[]) => {
        if (!ids.includes(id)) return;
        unsubscribe();
        resolve();
      },
    });
  });
}

const endOf = async (store: Store, id: string): Promise<EndedJob> => only(await store.ended([id], null));

export const endedCases: readonly StoreCase[] = cases('ended', {
  async 'results that are more than an answer carries come with several'({ store }) {
    const result = JSON.stringify('x'.repeat(PAGE_BYTES / 3));
    const left = new Set<string>();
    for (let count = 0; count < 5; count++) {
      const job = await startOne(store);
      await settleOne(store, job, complete, { result });
      left.add(job.id);
    }
    const answers: number[] = [];
    while (left.size > 0 && answers.length < 5) {
      const ended = await store.ended([...left], null);
      for (const job of ended) {
        assert.equal(job.result, result);
        left.delete(job.id);
      }
      answers.push(ended.length);
    }
    assert.deepEqual(answers, [2, 2, 1]);
  },

  async 'a job that waits or runs has not ended'({ store }) {
    const running = await startOne(store);
    const waiting = await enqueueOne(store);
    assert.deepEqual(await store.ended([running.id, waiting], 60_000), []);
    await settleOne(store, running, retryIn(0));
    assert.deepEqual(await store.ended([running.id, waiting], null), []);
  },

  async 'a completed job has its result, as it was encoded'({ store }) {
    const job = await startOne(store);
    const result = encodeResult({ n: 1 }, 100)?.text as string;
    await settleOne(store, job, complete, { result });
    const expected = { id: job.id, state: 'completed', result, deadReason: null, error: null };
    assert.deepEqual(await store.ended([job.id], 60_000), [expected]);
  },

  async 'a dead job has its reason and its last error'({ store }) {
    const job = await startOne(store);
    await settleOne(store, job, die('unrecoverable'), { error: storedError('broken') });
    const expected = { state: 'dead', deadReason: 'unrecoverable', error: storedError('broken'), result: null };
    assert.deepEqual(await endOf(store, job.id), { id: job.id, ...expected });
  },

  async 'a job that was cancelled while it waited or ran has ended'({ store }) {
    const running = await startOne(store);
    const waiting = await enqueueOne(store);
    await store.cancel([waiting]);
    await settleOne(store, running, cancelNow);
    assert.equal((await endOf(store, waiting)).state, 'cancelled');
    assert.equal((await endOf(store, running.id)).state, 'cancelled');
  },

  async 'an unknown job is answered as such'({ store }) {
    for (const id of [UNKNOWN, 'no id at all']) assert.equal((await endOf(store, id)).state, 'not-found');
  },

  async 'listeners are told of a watched job that completes, dies or is cancelled'({ store }) {
    for (const end of ['complete', 'dead', 'cancel'] as const) {
      const id = await enqueueOne(store);
      const heard = told(store, 'ended', id);
      assert.deepEqual(await store.ended([id], 60_000), []);
      if (end === 'cancel') await store.cancel([id]);
      else await settleOne(store, await claimOne(store), end === 'complete' ? complete : die());
      await heard;
      assert.equal((await store.ended([id], null)).length, 1);
    }
  },

  async 'listeners are told of a running job that is cancelled'({ store }) {
    const job = await startOne(store);
    const heard = told(store, 'cancelling', job.id);
    await store.cancel([job.id]);
    await heard;
  },

  async 'a listener that was removed is told nothing'({ store }) {
    const heard: string[] = [];
    const unsubscribe = store.onJobs({ ended: (ids) => heard.push(...ids), cancelling: (ids) => heard.push(...ids) });
    unsubscribe();
    const id = await enqueueOne(store);
    await store.cancel([id]);
    assert.deepEqual(heard, []);
  },

  async 'running jobs that should stop are told apart from the others'({ store }) {
    const [stopped, other] = [await startOne(store), await startOne(store)];
    const waiting = await enqueueOne(store);
    await store.cancel([stopped.id]);
    const asked = [stopped.id, other.id, waiting, UNKNOWN, 'no id at all'];
    assert.deepEqual(await store.cancelRequested(asked), [stopped.id]);
    await settleOne(store, stopped, cancelNow);
    assert.deepEqual(await store.cancelRequested(asked), []);
  },
});
