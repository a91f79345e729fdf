import { expect, it } from 'vitest';
import { defineJob } from '../../definition.ts';
import { Mulligan } from '../../mulligan.ts';
import { heldByLimits } from './limits.ts';

const sync = defineJob<{ shop: string }>({
  name: 'sync',
  limit: { name: 'shopify', concurrency: 2, key: ({ shop }) => shop },
});

it('jobs whose key has room wait behind no limit; those of a key that lets fewer start do', async () => {
  await using mulligan = await Mulligan.open('memory:', { jobs: [sync], log: () => {} });
  const now = Date.now() + 60_000;
  const group = {
    ...{ queue: 'default', name: 'sync', count: 4, oldestDueAt: 0, gate: null, limits: ['shopify'], isAside: false },
  };
  await mulligan.enqueue(sync, { shop: 'a' });
  expect(await heldByLimits(mulligan, [{ ...group, due: 1 }], now)).toMatchObject([{ due: 1, limits: [] }]);
  await mulligan.enqueueMany(sync, [{ input: { shop: 'b' } }, { input: { shop: 'b' } }, { input: { shop: 'b' } }]);
  expect(await heldByLimits(mulligan, [{ ...group, due: 4 }], now)).toMatchObject([{ due: 3, limits: ['shopify'] }]);
  await mulligan.limits.set('shopify', { total: 0 });
  expect(await heldByLimits(mulligan, [{ ...group, due: 4 }], now)).toMatchObject([{ due: 4, limits: ['shopify'] }]);
});
