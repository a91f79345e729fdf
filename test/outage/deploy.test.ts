import { expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory/store.ts';
import type { Store } from '../../src/store/store.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { besides, gates, rollingDeploy, type Seen } from './rolling-deploy.ts';

const seeds = Array.from({ length: Number(process.env.MULLIGAN_SEEDS ?? 3) }, (_, index) => index + 1);

/** Closing one Mulligan must not close the store that all share. */
function shared(store: Store): Store {
  return new Proxy(store, {
    get: (target, key) => {
      if (key === 'close') return async () => {};
      const value = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

async function inVirtualTime(seed: number, gate: (typeof gates)[number], beside: (typeof besides)[number]): Promise<Seen> {
  const clock = new VirtualClock({ seed });
  const store = new MemoryStore({ clock });
  const sleep = (ms: number) => clock.advance(ms);
  return rollingDeploy({ clock, sleep, open: async () => shared(store), gate, beside });
}

for (const gate of gates)
  test.each(besides)(`${gate}, beside: %s`, { timeout: 120_000 }, async (beside) => {
    const all: Seen[] = [];
    for (const seed of seeds) all.push(await inVirtualTime(seed, gate, beside));
    console.info(gate, beside, all.map((one) => (one.firstMs / 1000).toFixed(1)).join(' '), 'last', all.map((one) => (one.lastMs / 1000).toFixed(0)).join(' '), JSON.stringify(all[0]));
    expect(all.length).toBe(seeds.length);
  });
