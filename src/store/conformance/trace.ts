import assert from 'node:assert/strict';
import type { Store } from '../store.ts';
import {
  bury,
  claim,
  claimOne,
  complete,
  crash,
  enqueueOne,
  idsOf,
  jobOf,
  LEASE,
  MINUTE,
  newJob,
  only,
  quota,
  redrive,
  retryIn,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const OTHER_PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00';
const WITH_STATE = `${PARENT} vendor=a'b"c\\d,other=1`;

async function traceOf(store: Store, id: string): Promise<string | null> {
  return (await jobOf(store, id)).trace;
}

export const traceCases: readonly StoreCase[] = cases('enqueue', {
  'the trace of a job is read back, and claimed with it': async ({ store }) => {
    for (const trace of [PARENT, WITH_STATE]) {
      const id = await enqueueOne(store, { trace });
      assert.equal(await traceOf(store, id), trace);
      assert.equal((await claimOne(store)).trace, trace);
    }
  },

  'jobs of one batch keep traces of their own, and none where they have none': async ({ store }) => {
    const traces = Array.from({ length: 40 }, (_, n) => [undefined, PARENT, OTHER_PARENT][Math.floor(n / 3) % 3]);
    const jobs = traces.map((trace) => newJob({ trace }));
    await store.enqueue(jobs);
    const { jobs: claimed } = await claim(store, { limit: 40, queues: [quota({ share: 40 })] });
    assert.deepEqual(
      claimed.map(({ id, trace }) => [id, trace]),
      jobs.map(({ id, trace }) => [id, trace ?? null]),
    );
    assert.deepEqual(
      (await store.get(idsOf(jobs))).map(({ trace }) => trace),
      traces.map((trace) => trace ?? null),
    );
  },

  'a trace stays with its job from run to run, and after its end': async ({ store, advance }) => {
    const job = await startOne(store, { trace: PARENT });
    await settleOne(store, job, retryIn(MINUTE));
    await advance(MINUTE);
    const again = await claimOne(store);
    assert.equal(again.trace, PARENT);
    await settleOne(store, again, complete);
    assert.equal(await traceOf(store, job.id), PARENT);
  },

  'a rescuer is given the trace of the run that its worker left': async ({ store, advance }) => {
    await startOne(store, { trace: PARENT });
    await advance(LEASE);
    const expired = only(await store.expired(10));
    assert.equal(expired.trace, PARENT);
    await store.settle([crash(expired)]);
    assert.equal((await claimOne(store)).trace, PARENT);
  },

  'a job that is cancelled while it waits keeps its trace': async ({ store }) => {
    const id = await enqueueOne(store, { trace: PARENT });
    await store.cancel([id]);
    assert.equal(await traceOf(store, id), PARENT);
  },

  'a redriven job keeps its trace': async ({ store }) => {
    const id = await bury(store, { trace: PARENT });
    await redrive(store, { ids: [id] });
    assert.equal((await claimOne(store)).trace, PARENT);
  },

  'a debounced job takes the trace of the last enqueue': async ({ store, advance }) => {
    const debounced = (trace: string | undefined) =>
      newJob({ key: 'k', keyLife: 'started', delayMs: MINUTE, debounce: { maxWaitMs: null }, trace });
    const [first] = await store.enqueue([debounced(PARENT)]);
    await store.enqueue([debounced(OTHER_PARENT)]);
    assert.equal(await traceOf(store, first?.id as string), OTHER_PARENT);
    await store.enqueue([debounced(undefined)]);
    await advance(MINUTE);
    assert.equal((await claimOne(store)).trace, null);
  },

  'a job with limits and a trace has both': async ({ store }) => {
    const limits = [{ limit: 'shop', key: 'a' }];
    const id = await enqueueOne(store, { trace: PARENT, limits });
    const claimed = only((await store.claimLimited({ worker: 'w', leaseMs: LEASE, limit: 1, queues: [quota()] })).jobs);
    assert.partialDeepStrictEqual(claimed, { id, trace: PARENT, limits });
  },
});
