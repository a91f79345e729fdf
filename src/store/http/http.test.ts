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
  'data too deep to be written again is shown as a note, and the jobs beside it as they are':
    'the server refuses such data (test/server/security.test.ts)',
};

describe('a store behind a server keeps the contract', () => {
  for (const { verb, name, skip: why, run } of storeConformance(openServed, { skip })) {
    it.skipIf(why !== null)(`${verb}: ${name}`, run);
  }
});
