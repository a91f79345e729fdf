import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type BulkResult, Mulligan } from '../../src/index.ts';
import { bury, enqueueOne, startOne } from '../../src/store/conformance/builders.ts';
import { MemoryStore, VirtualClock } from '../../src/testing/index.ts';
import { anything, mostly, name, optionsOf, recipes, text } from './arbitraries.ts';
import { hold } from './cases.ts';
import { Recipe } from './monsters.ts';
import { allOrNothing, answerOf, watchRejections } from './rules.ts';

watchRejections();

/** Jobs of most states; their ids are the first thing to ask for, and a bad ask must not touch them. */
async function operator(): Promise<{ mulligan: Mulligan; store: MemoryStore; ids: readonly string[] }> {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const mulligan = await Mulligan.open(store, { clock });
  const dead = [await bury(store, { name: 'dead' }), await bury(store, { name: 'dead', key: 'k' }, 'poison')];
  const running = await startOne(store);
  const waiting = await enqueueOne(store, { key: 'k', delayMs: 1_000 });
  return { mulligan, store, ids: [...dead, running.id, waiting] };
}

/** Which of the four jobs, or something that is none of them. */
const which = fc.oneof(
  fc.nat(3).map((at) => Object.assign((ids: readonly string[]): unknown => ids[at], { toString: () => `ids[${at}]` })),
  fc
    .oneof(anything, text.map(Recipe.of))
    .map((recipe) => Object.assign((): unknown => recipe.make(), { toString: () => fc.stringify(recipe) })),
);

it('jobs.get, runs and cancel answer for an id, or say what they expected', async () => {
  await hold(
    'jobs: ids',
    fc.asyncProperty(fc.constantFrom('get', 'runs', 'cancel'), which, async (verb, pick) => {
      const { mulligan, store, ids } = await operator();
      await allOrNothing(
        store,
        (): Promise<unknown> => mulligan.jobs[verb](pick(ids) as string),
        (found) => {
          if (verb === 'cancel') expect(found).toBeOneOf(['cancelled', 'cancelling', 'already-ended', 'not-found']);
        },
      );
    }),
  );
});

const filter = optionsOf({
  state: mostly(fc.constantFrom('ready', 'dead'), text),
  queue: name,
  name: fc.constantFrom('dead', 'email.send'),
  key: fc.constant('k'),
  limit: fc.integer({ min: 0, max: 10_001 }),
  after: name,
});

it('jobs.list and dead.list answer jobs, or say what they expected', async () => {
  const { mulligan, store } = await operator();
  await hold(
    'jobs.list, dead.list: options',
    fc.asyncProperty(fc.constantFrom('jobs', 'dead'), filter, async (which, recipe) => {
      await allOrNothing(
        store,
        () => mulligan[which].list(recipe.make() as never),
        (jobs) => {
          for (const { state } of jobs) if (which === 'dead') expect(state).toBe('dead');
        },
      );
    }),
  );
});

const groupFilter = optionsOf({
  state: mostly(fc.constantFrom('failing', 'dead'), text),
  queue: name,
  name: fc.constantFrom('dead', 'email.send'),
  since: mostly(fc.constantFrom('1h', '0s'), text),
  limit: fc.integer({ min: 0, max: 1_001 }),
});

it('errors.list and errors.show answer groups, or say what they expected', async () => {
  const { mulligan, store } = await operator();
  await hold(
    'errors.list: options',
    fc.asyncProperty(groupFilter, (recipe) => allOrNothing(store, () => mulligan.errors.list(recipe.make() as never))),
  );
  await hold(
    'errors.show: fingerprint',
    fc.asyncProperty(fc.oneof(anything, text.map(Recipe.of)), (recipe) =>
      allOrNothing(store, () => mulligan.errors.show(recipe.make() as never)),
    ),
  );
});

const selection = {
  ids: fc.array(mostly(name, recipes(anything)), { maxLength: 3 }),
  name: fc.constantFrom('dead', 'other'),
  queue: fc.oneof(fc.constant('default'), text),
  reason: mostly(fc.constantFrom('exhausted', 'poison', 'no-handler'), text),
  error: fc.constantFrom('f', 'g'),
  message: mostly(fc.constant('luck'), text),
  tag: mostly(fc.constant('t'), text),
  since: mostly(fc.constantFrom('1h', '0s'), text),
  attempts: mostly(fc.nat(3), text),
  limit: fc.integer({ min: 0, max: 3 }),
};

it('dead.redrive and dead.discard act on what was selected, or on nothing', async () => {
  const redrive = optionsOf({
    ...selection,
    keepAttempts: fc.boolean(),
    dryRun: fc.boolean(),
    rate: mostly(fc.constantFrom('5/s', '1/h'), text),
  });
  const either = fc.oneof(
    redrive.map((recipe) => ({ verb: 'redrive' as const, recipe })),
    optionsOf(selection).map((recipe) => ({ verb: 'discard' as const, recipe })),
  );
  await hold(
    'dead.redrive, dead.discard: options',
    fc.asyncProperty(either, async ({ verb, recipe }) => {
      const { mulligan, store } = await operator();
      const deadBefore = (await mulligan.dead.list()).length;
      await allOrNothing(
        store,
        (): Promise<BulkResult> => mulligan.dead[verb](recipe.make() as never),
        async (answer) => {
          const left = (await mulligan.dead.list()).length;
          expect(left).toBe(answer.dryRun ? deadBefore : deadBefore - answer.count);
        },
      );
    }),
  );
});

it('queues are paused and resumed by name, and nothing else is', async () => {
  const { mulligan, store } = await operator();
  await hold(
    'queues: names',
    fc.asyncProperty(
      fc.constantFrom('pause', 'resume'),
      fc.oneof(anything, text.map(Recipe.of)),
      async (verb, recipe) => {
        await allOrNothing(
          store,
          () => mulligan.queues[verb](recipe.make() as string),
          async () => {
            const name = recipe.make() as string;
            const queue = (await mulligan.queues.list()).find((one) => one.queue === name);
            expect(queue?.paused ?? false).toBe(verb === 'pause');
          },
        );
      },
    ),
  );
});

it('a queue that was closed says so, whatever it is asked', async () => {
  const { mulligan } = await operator();
  await mulligan.close();
  for (const ask of [() => mulligan.jobs.list(), () => mulligan.stats(), () => mulligan.enqueue('a', 1)]) {
    expect(await answerOf<unknown>(ask)).toMatchObject({ error: { code: 'CLOSED' } });
  }
});
