import fc from 'fast-check';
import { expect, it } from 'vitest';
import { defineJob, type EnqueueResult, Mulligan } from '../../src/index.ts';
import { MemoryStore, VirtualClock } from '../../src/testing/index.ts';
import { anything, duration, evenEndless, json, mostly, name, optionsOf, recipes, retry, text } from './arbitraries.ts';
import { hold } from './cases.ts';
import { forgedDates, Recipe, refusing } from './monsters.ts';
import { allOrNothing, watchRejections } from './rules.ts';

watchRejections();

const job = defineJob({ name: 'job', queue: 'home', run: () => {} });

/** A queue that holds something already: what a failed call leaves behind, or takes away, shows. */
async function producer(): Promise<{ mulligan: Mulligan; store: MemoryStore }> {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const mulligan = await Mulligan.open(store, { clock, jobs: [job], hardCap: 10, maxPayloadBytes: 20_000 });
  await mulligan.enqueue(job, 'held', { key: 'taken' });
  return { mulligan, store };
}

/** It is there, whole, and what it says about itself is of the right kind. */
async function expectStored(mulligan: Mulligan, { id, existed }: EnqueueResult): Promise<void> {
  const stored = await mulligan.jobs.get(id);
  if (stored === null) throw new Error('an enqueued job cannot be read');
  expect(typeof existed).toBe('boolean');
  expect(['scheduled', 'ready']).toContain(stored.state);
  expect(typeof stored.name).toBe('string');
  expect(typeof stored.queue).toBe('string');
  expect(Number.isSafeInteger(stored.dueAt)).toBe(true);
  expect(stored.priority).toBeOneOf([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(stored.policy.maxAttempts).toBeLessThanOrEqual(10);
  const { queues, names } = await mulligan.stats();
  expect([Object.hasOwn(queues, stored.queue), Object.hasOwn(names, stored.name)]).toEqual([true, true]);
}

const whole = {
  priority: mostly(fc.integer({ min: 0, max: 9 }), fc.constantFrom(-0, -1, 10, 1.5, 2 ** 53, Number.NaN)),
  queue: name,
  key: fc.oneof(name, fc.constant('taken')),
  keyUntil: mostly(fc.constantFrom('started', 'finished', 'pruned'), text),
  retry: recipes(retry),
};
const at = fc.oneof(fc.date({ noInvalidDate: false }), recipes(fc.constantFrom(...forgedDates)));
const options = fc.oneof(
  { weight: 4, arbitrary: optionsOf({ ...whole, delay: duration }) },
  { weight: 4, arbitrary: optionsOf({ ...whole, at }) },
  { weight: 1, arbitrary: optionsOf({ ...whole, delay: duration, at }) },
);

it('enqueue stores a job under options that make sense, and nothing under others', async () => {
  await hold(
    'enqueue: options',
    fc.asyncProperty(options, async (recipe) => {
      const { mulligan, store } = await producer();
      await allOrNothing(
        store,
        () => mulligan.enqueue(job, 1, recipe.make() as never),
        (result) => expectStored(mulligan, result),
      );
    }),
  );
});

const forged = fc.constantFrom<Recipe>(
  new Recipe(() => ({ name: 'a', run: () => {}, timeoutMs: null, queue: 42 })),
  new Recipe(() => ({ ...job, name: '' })),
  new Recipe(() => ({ name: '\0', run: () => {}, timeoutMs: 5 })),
  new Recipe(() => refusing(job)),
);

it('enqueue takes a definition or a name, and nothing that only looks like one', async () => {
  await hold(
    'enqueue: targets',
    fc.asyncProperty(fc.oneof(evenEndless, forged, text.map(Recipe.of)), async (target) => {
      const { mulligan, store } = await producer();
      await allOrNothing(
        store,
        () => mulligan.enqueue(target.make() as never, 1 as never),
        (result) => expectStored(mulligan, result),
      );
    }),
  );
});

it('enqueue stores any payload as JSON has it, or nothing', async () => {
  await hold(
    'enqueue: payloads',
    fc.asyncProperty(evenEndless, fc.boolean(), async (payload, byName) => {
      const { mulligan, store } = await producer();
      await allOrNothing(
        store,
        () => mulligan.enqueue((byName ? 'unknown' : job) as typeof job, payload.make()),
        (result) => expectStored(mulligan, result),
      );
    }),
  );
});

const inputs = fc.oneof(
  anything,
  fc
    .array(fc.oneof({ weight: 4, arbitrary: json.map(Recipe.of) }, { weight: 1, arbitrary: anything }), {
      maxLength: 4,
    })
    .map((list) => new Recipe(() => list.map(({ make }) => ({ input: make() })), fc.stringify(list))),
);

it('enqueueMany stores all of its inputs, or none', async () => {
  await hold(
    'enqueueMany: inputs',
    fc.asyncProperty(
      // 4 billion holes are 4 billion inputs that are undefined: allowed, and more than a test has time for.
      inputs.filter(({ make }) => !isVast(make())),
      fc.oneof({ weight: 5, arbitrary: fc.constant(Recipe.of({})) }, { weight: 1, arbitrary: options }),
      async (list, recipe) => {
        const { mulligan, store } = await producer();
        await allOrNothing(
          store,
          () => mulligan.enqueueMany(job, list.make() as never, recipe.make() as never),
          async (results) => {
            for (const result of results) await expectStored(mulligan, result);
          },
        );
      },
    ),
  );
});

function isVast(value: unknown): boolean {
  try {
    return Array.isArray(value) && value.length > 100_000;
  } catch {
    return false;
  }
}

it('a payload comes back as it was sent, whatever its keys and texts', async () => {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const mulligan = await Mulligan.open(store, { clock });
  await hold(
    'payload: round trip',
    fc.asyncProperty(json, async (payload) => {
      const sent = JSON.stringify(payload);
      const { id } = await mulligan.enqueue('any', payload);
      expect(JSON.stringify((await mulligan.jobs.get(id))?.payload)).toBe(sent);
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    }),
  );
});
