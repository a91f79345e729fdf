import { describe, it } from 'vitest';
import { Mulligan } from '../../mulligan.ts';
import { serve } from '../../server/index.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { type StoreHarness, storeConformance } from '../conformance/index.ts';
import { MemoryStore } from '../memory/store.ts';
import { HttpStore } from './store.ts';

/** A store behind a server on loopback. Its time is virtual; requests take theirs. */
async function openServed(): Promise<StoreHarness> {
  const clock = new VirtualClock();
  const served = new MemoryStore({ clock });
  const mulligan = await Mulligan.open(served, { log: () => {} });
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

const skip = {
  'an order that concerns no jobs is on record as done, with its note':
    'only the server leaves such a row, when it reveals a payload',
  'the note of an order is kept': 'the server says itself what was ordered (test/server/orders.test.ts)',
  'what no operator ordered leaves no row': 'a server takes each call of such a verb for an order',
};

describe('a store behind a server keeps the contract', () => {
  for (const { verb, name, skip: reason, run } of storeConformance(openServed, { skip })) {
    it(`${verb}: ${name}`, { skip: reason !== null }, run);
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
