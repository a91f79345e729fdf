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
};

export const workerCases: readonly StoreCase[] = cases('register', {
  'a worker is listed with what it says of itself': async ({ store }) => {
    assert.deepEqual(await store.workers(), []);
    await store.register('mailer-1', worker);
    const { startedAt, lastSeenAt, ...listed } = only(await store.workers());
    assert.deepEqual(listed, { ...worker, id: 'mailer-1', alive: true });
    assert.equal(startedAt, lastSeenAt);
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

  'a worker that is silent for a minute is not alive, and is forgotten after an hour': async ({ store, advance }) => {
    await store.register('silent', worker);
    await advance(MINUTE);
    await store.register('alive', worker);
    const alive = async (): Promise<[string, boolean][]> =>
      (await store.workers()).map((one): [string, boolean] => [one.id, one.alive]);
    assert.deepEqual(await alive(), [
      ['silent', false],
      ['alive', true],
    ]);
    await advance(60 * MINUTE);
    await store.register('alive', worker);
    assert.deepEqual(await alive(), [['alive', true]]);
  },

  'workers may have any text for a name': async ({ store }) => {
    for (const text of hostileTexts) {
      await store.register(text, { ...worker, name: text, host: text, queues: [text], jobs: [text] });
      const listed = (await store.workers()).find(({ id }) => id === text);
      assert.deepEqual([listed?.name, listed?.host, listed?.queues, listed?.jobs], [text, text, [text], [text]]);
    }
  },
});
