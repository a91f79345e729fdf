import assert from 'node:assert/strict';
import type { WorkerDescription } from '../store.ts';
import { hostileTexts, MINUTE, only } from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const worker: WorkerDescription = {
  name: 'mailer',
  version: '2026.11.1',
  mulligan: '0.1.0',
  host: 'web-1',
  pid: 4_711,
  concurrency: 10,
  queues: ['default', 'emails'],
  jobs: ['email.send', 'email.digest'],
  running: 3,
  leaseMs: 30_000,
  loopDelayMs: 12,
  http: null,
};

/** As the server registers it from its claims. */
const httpWorker: WorkerDescription = {
  ...{ ...worker, mulligan: null, pid: null, version: null, jobs: [], running: null, loopDelayMs: null },
  http: { agent: 'python-requests/2.32', takesAll: true },
};

export const workerCases: readonly StoreCase[] = cases('register', {
  'a worker is listed with what it says of itself': async ({ store }) => {
    assert.deepEqual(await store.workers(), []);
    await store.register('mailer-1', worker);
    const { startedAt, lastSeenAt, ...listed } = only(await store.workers());
    assert.deepEqual(listed, { ...worker, id: 'mailer-1', state: 'alive', alive: true });
    assert.equal(startedAt, lastSeenAt);
  },

  'a worker that speaks HTTP is listed with what is known of it': async ({ store }) => {
    await store.register('script', httpWorker);
    const { startedAt: _, lastSeenAt: __, ...listed } = only(await store.workers());
    assert.deepEqual(listed, { ...httpWorker, id: 'script', state: 'alive', alive: true });
  },

  'of a worker of an earlier version, what it does not say is not known': async ({ store }) => {
    const { running: _, leaseMs: __, loopDelayMs: ___, http: ____, ...said } = worker;
    await store.register('earlier', said as WorkerDescription);
    const { running, leaseMs, loopDelayMs, http, jobs } = only(await store.workers());
    assert.deepEqual([running, leaseMs, loopDelayMs, http, jobs], [null, null, null, null, worker.jobs]);
  },

  'a worker that registers again keeps its start, and is seen now': async ({ store, advance }) => {
    await store.register('mailer-1', worker);
    const before = only(await store.workers());
    await advance(MINUTE / 2);
    await store.register('mailer-1', { ...worker, queues: ['default'] });
    const after = only(await store.workers());
    assert.deepEqual(after.queues, ['default']);
    assert.equal(after.startedAt, before.startedAt);
    assert.ok(after.lastSeenAt >= before.lastSeenAt + MINUTE / 2);
  },

  'a worker that has stopped is not listed, and may say so twice': async ({ store }) => {
    await store.register('mailer-1', worker);
    await store.register('mailer-2', worker);
    await store.register('mailer-1', null);
    await store.register('mailer-1', null);
    assert.deepEqual(
      (await store.workers()).map(({ id }) => id),
      ['mailer-2'],
    );
  },

  'a worker that is not seen is silent after half a minute, lost after a minute, and forgotten after an hour': async ({
    store,
    advance,
  }) => {
    const states = async (): Promise<string[]> =>
      (await store.workers()).map(({ id, state, alive }) => `${id} ${state}${alive ? '' : ', not alive'}`);
    await store.register('killed', worker);
    await advance(MINUTE / 2 - 5_000);
    assert.deepEqual(await states(), ['killed alive']);
    await advance(10_000);
    assert.deepEqual(await states(), ['killed silent']);
    await advance(MINUTE / 2);
    await store.register('living', worker);
    assert.deepEqual(await states(), ['killed lost, not alive', 'living alive']);
    await advance(60 * MINUTE);
    await store.register('living', worker);
    assert.deepEqual(await states(), ['living alive']);
  },

  'workers may have any text for a name': async ({ store }) => {
    for (const text of hostileTexts) {
      await store.register(text, { ...worker, name: text, host: text, queues: [text], jobs: [text] });
      const listed = (await store.workers()).find(({ id }) => id === text);
      assert.deepEqual([listed?.name, listed?.host, listed?.queues, listed?.jobs], [text, text, [text], [text]]);
    }
  },
});
