import fc from 'fast-check';
import { it } from 'vitest';
import { defineJob } from '../../src/index.ts';
import { MemoryStore, storeConformance, testQueue, VirtualClock } from '../../src/testing/index.ts';
import { anything, duration, optionsOf, recipes, text } from './arbitraries.ts';
import { hold } from './cases.ts';
import { answerOf, watchRejections } from './rules.ts';

watchRejections();

const job = defineJob({ name: 'job', run: () => {} });
const work = optionsOf({ concurrency: fc.integer({ min: 0, max: 9 }), lease: duration });
const fields = {
  jobs: fc.constantFrom([], [job], [job, job]),
  seed: fc.oneof(fc.integer(), fc.double()),
  hardCap: fc.integer({ min: 0, max: 3 }),
};

async function tryTestQueue(options: unknown): Promise<void> {
  const answer = await answerOf(() => testQueue(options as never));
  if ('value' in answer) await answer.value[Symbol.asyncDispose]();
}

it('testQueue and storeConformance pass on what their parts expected', async () => {
  await hold(
    'testing: parts',
    fc.asyncProperty(
      fc.record(fields, { requiredKeys: ['jobs'] }),
      work,
      fc.dictionary(text, text, { maxKeys: 2 }),
      async (options, recipe, skip) => {
        await tryTestQueue({ ...options, work: recipe.make() });
        await answerOf(() => storeConformance(() => ({}) as never, { skip }));
      },
    ),
  );
});

it('what is made for tests expects sense itself', async () => {
  const make = fc.oneof(
    optionsOf({ ...fields, work: recipes(work) }, ['jobs']).map(
      ({ make }) =>
        () =>
          tryTestQueue(make()),
    ),
    fc.tuple(anything, optionsOf({ skip: fc.dictionary(text, recipes(anything), { maxKeys: 2 }) })).map(
      ([open, { make }]) =>
        () =>
          storeConformance(open.make() as never, make() as never),
    ),
    optionsOf({ seed: fields.seed, startAt: fc.nat() }).map(
      ({ make }) =>
        () =>
          new VirtualClock(make() as never).now(),
    ),
    optionsOf({ clock: fc.constant(new VirtualClock()) }).map(
      ({ make }) =>
        () =>
          new MemoryStore(make() as never).list({ limit: 1 }),
    ),
  );
  await hold(
    'testing: options',
    fc.asyncProperty(make, async (call) => {
      await answerOf<unknown>(call);
    }),
  );
});
