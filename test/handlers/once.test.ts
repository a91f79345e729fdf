import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { defineJob, Mulligan } from '../../src/index.ts';
import { places } from './stores.ts';

describe.each(places)('effects that begin together, on %s', (_, open) => {
  it('happen once each, although the first fails twice and ends the handler while the others are under way', async () => {
    const effects = [0, 0, 0, 0, 0];
    const parallel = defineJob({
      name: 'parallel',
      retry: { maxAttempts: 3, backoff: { kind: 'fixed', base: 0 }, jitter: 'none' },
      resource: false,
      run: (_input: null, { once }) =>
        Promise.all(
          effects.map((_, index) =>
            once(`effect ${index}`, async () => {
              effects[index] = (effects[index] as number) + 1;
              if (index > 0) await sleep(20 * index);
              else if (effects[index] < 3) throw new Error('not yet');
              return index;
            }),
          ),
        ),
    });
    await using place = await open();
    await using mulligan = await Mulligan.open(place.url, { jobs: [parallel], log: () => {} });
    mulligan.work();
    const result = await mulligan.result(await mulligan.enqueue(parallel, null));
    expect(result).toEqual([0, 1, 2, 3, 4]);
    expect(effects).toEqual([3, 1, 1, 1, 1]);
  });
});
