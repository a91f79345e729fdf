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

describe('a store behind a server keeps the contract', () => {
  for (const { verb, name, run } of storeConformance(openServed)) {
    it(`${verb}: ${name}`, run);
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
