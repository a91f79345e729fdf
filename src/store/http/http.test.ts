import assert from 'node:assert/strict';
import { describe, it } from 'vitest';
import { Mulligan } from '../../mulligan.ts';
import { serve } from '../../server/index.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { hostileTexts, newJob } from '../conformance/builders.ts';
import { type StoreHarness, storeConformance } from '../conformance/index.ts';
import { MemoryStore } from '../memory/store.ts';
import { HttpStore } from './store.ts';

/** The contract has jobs that are as large as a whole answer. */
const MAX_BYTES = { maxPayloadBytes: 2 ** 26, maxResultBytes: 2 ** 26 };

/** A store behind a server on loopback. Its time is virtual; requests take theirs. */
async function openServed(): Promise<StoreHarness> {
  const clock = new VirtualClock();
  const served = new MemoryStore({ clock });
  const mulligan = await Mulligan.open(served, { log: () => {}, ...MAX_BYTES });
  const server = await serve(mulligan, { port: 0, chores: false });
  const store = await HttpStore.open({ url: server.url });
  return {
    store,
    async advance(ms) {
      await clock.advance(ms);
      // A hint travels through a socket.
      await new Promise((resolve) => setTimeout(resolve, 2));
    },
    async close() {
      await store.close();
      await server.close();
      await mulligan.close();
    },
  };
}

const anyText = [
  'an empty key is a key, and no key is none',
  'a name and key never run into each other',
  'names, queues, keys and resources may hold any text',
  'limits and keys that are full may have any name',
  'keys and names may be any text',
  'errors and workers may hold any text',
  'gates may have any name',
  'workers may have any text for a name',
  'memo keys and values may hold any text',
  'hostile texts are tags, fingerprints and messages like any others',
  'resources of any name can be held, and a queue of the same name is another target',
  'queues of any name can be paused',
  'schedules of any name can be written',
];
const skip = {
  'an order that concerns no jobs is on record as done, with its note':
    'only the server leaves such a row, when it reveals a payload',
  'the note of an order is kept': 'the server says itself what was ordered (test/server/orders.test.ts)',
  'what no operator ordered leaves no row': 'a server takes each call of such a verb for an order',
  'data too deep to be written again is shown as a note, and the jobs beside it as they are':
    'the server refuses such data (test/server/depth.test.ts)',
  ...Object.fromEntries(
    anyText.map((name) => [name, 'the server refuses names that the library refuses (test/server/names.test.ts)']),
  ),
};

describe('a store behind a server keeps the contract', () => {
  for (const { verb, name, skip: why, run } of storeConformance(openServed, { skip })) {
    it.skipIf(why !== null)(`${verb}: ${name}`, run);
  }
});

it('tells what was missed once the server is there again', async () => {
  await using mulligan = await Mulligan.open('memory:', { log: () => {} });
  const first = await serve(mulligan, { port: 0, chores: false });
  const store = await HttpStore.open({ url: first.url });
  const missed = Promise.withResolvers<void>();
  store.onJobs({ missed: () => missed.resolve() });
  await store.stats();
  await first.close();
  const second = await serve(mulligan, { port: Number(new URL(first.url).port), chores: false });
  await missed.promise;
  await store.close();
  await second.close();
});

it('hostile texts that are names for the library travel as they are', async () => {
  const { store, close } = await openServed();
  for (const text of hostileTexts.filter((one) => one.trim() !== '' && !/\p{Cc}/u.test(one))) {
    const job = newJob({ name: text, queue: text, key: text, tags: [text], limits: [{ limit: text, key: text }] });
    await store.enqueue([job]);
    const { name, queue, key, tags, limits } = job;
    assert.partialDeepStrictEqual(await store.get([job.id]), [{ name, queue, key, tags, limits }]);
    assert.equal((await store.list({ tag: text, limit: 5 })).length, 1);
  }
  await close();
});
