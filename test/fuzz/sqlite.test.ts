import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { defineJob, type JobContext, Mulligan } from '../../src/index.ts';
import { bury } from '../../src/store/conformance/builders.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { anything, goodName, json, mostly, name, optionsOf, recipes, retry, text } from './arbitraries.ts';
import { hold } from './cases.ts';
import { Recipe } from './monsters.ts';
import { allOrNothing, watchRejections } from './rules.ts';

/* A part of the cases again, on a real file: what a store in memory takes, SQLite may not bind, compare or give back. */

watchRejections();

let folder = '';
let store: SqliteStore;
let mulligan: Mulligan;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'mulligan-fuzz-sqlite-'));
  store = await SqliteStore.open({ path: join(folder, 'jobs.db') });
  mulligan = await Mulligan.open(store);
});
afterAll(async () => {
  await mulligan.close();
  rmSync(folder, { recursive: true, force: true });
});

const options = optionsOf({
  // By the hour: what falls due between two looks at the store has changed without being touched.
  at: fc.oneof(
    fc.date({ noInvalidDate: true, min: new Date('2200-01-01') }),
    fc.date({ noInvalidDate: true, max: new Date(0) }),
  ),
  priority: fc.integer({ min: 0, max: 9 }),
  queue: name,
  key: name,
  keyUntil: fc.constantFrom('started', 'finished', 'pruned'),
  retry: recipes(retry),
});
const payload = fc.oneof({ weight: 3, arbitrary: json.map(Recipe.of) }, { weight: 1, arbitrary: anything });

it('a file keeps what was enqueued as it was sent, or nothing of it', async () => {
  await hold(
    'sqlite: enqueue',
    fc.asyncProperty(fc.oneof(goodName, text), payload, options, async (job, input, recipe) => {
      // Made once: what a recipe makes twice may differ.
      const sent = input.make();
      await allOrNothing(
        store,
        () => mulligan.enqueue(job, sent, recipe.make() as never),
        async ({ id, existed }) => {
          const stored = await mulligan.jobs.get(id);
          expect(stored?.name).toBe(job);
          expect(Number.isSafeInteger(stored?.dueAt)).toBe(true);
          if (!existed)
            expect(JSON.stringify(stored?.payload)).toBe(JSON.stringify(JSON.parse(JSON.stringify(sent) ?? 'null')));
        },
      );
    }),
  );
});

it('a file keeps what any handler did, threw, remembered and told of its progress', async () => {
  const ended: string[] = [];
  let doing: Recipe<(context: JobContext) => unknown> = new Recipe(() => () => {});
  const job = defineJob({
    name: 'odd',
    queue: 'odd',
    retry: { maxAttempts: 1 },
    run: (_, context) => doing.make()(context),
  });
  await using working = await Mulligan.open(`sqlite:${join(folder, 'worked.db')}`, { jobs: [job], log: () => {} });
  const worker = working.work();
  working.on('completed', ({ id }) => ended.push(id));
  working.on('dead', ({ id }) => ended.push(id));
  const deed = fc.tuple(anything, fc.constantFrom('throw', 'once', 'progress'), fc.oneof(goodName, text)).map(
    ([value, verb, key]) =>
      new Recipe(
        () => async (context: JobContext) => {
          if (verb === 'throw') throw value.make();
          if (verb === 'once') await context.once(key, () => [value.make()]);
          else context.progress(value.make());
        },
        `${verb} ${fc.stringify(value)} ${fc.stringify(key)}`,
      ),
  );
  await hold(
    'sqlite: handlers',
    fc.asyncProperty(deed, async (recipe) => {
      doing = recipe;
      const { id } = await working.enqueue(job, null);
      await worker.whenIdle();
      expect(ended).toContain(id);
      const [stored, runs] = [await working.jobs.get(id), await working.jobs.runs(id)];
      expect(['completed', 'dead']).toContain(stored?.state);
      expect(runs[0]?.error === null).toBe(stored?.state === 'completed');
    }),
  );
});

const selection = optionsOf({
  ids: fc.array(mostly(name, recipes(anything)), { maxLength: 3 }),
  name,
  queue: name,
  reason: fc.constantFrom('exhausted', 'poison'),
  limit: fc.integer({ min: 0, max: 3 }),
});
const filter = optionsOf({
  state: fc.constantFrom('ready', 'dead'),
  queue: name,
  name,
  key: name,
  after: name,
  limit: fc.integer({ min: 0, max: 9 }),
});
const id = fc.oneof(anything, text.map(Recipe.of));

type Call = (queue: Mulligan) => Promise<unknown>;
const call: fc.Arbitrary<Recipe<Call>> = fc.oneof(
  verb(id, 'jobs.get', (queue, given) => queue.jobs.get(given)),
  verb(id, 'jobs.runs', (queue, given) => queue.jobs.runs(given)),
  verb(id, 'jobs.cancel', (queue, given) => queue.jobs.cancel(given)),
  verb(id, 'queues.pause', (queue, given) => queue.queues.pause(given)),
  verb(id, 'queues.resume', (queue, given) => queue.queues.resume(given)),
  verb(filter, 'jobs.list', (queue, given) => queue.jobs.list(given)),
  verb(filter, 'dead.list', (queue, given) => queue.dead.list(given)),
  verb(selection, 'dead.redrive', (queue, given) => queue.dead.redrive(given)),
  verb(selection, 'dead.discard', (queue, given) => queue.dead.discard(given)),
);

function verb(
  given: fc.Arbitrary<Recipe>,
  shown: string,
  ask: (queue: Mulligan, given: never) => Promise<unknown>,
): fc.Arbitrary<Recipe<Call>> {
  return given.map(
    (recipe) =>
      new Recipe<Call>(() => (queue) => ask(queue, recipe.make() as never), `${shown}(${fc.stringify(recipe)})`),
  );
}

it('a file is read and operated by any text that is asked for, and changed by nothing that is refused', async () => {
  await bury(store, { queue: 'graves', name: 'dead' });
  await hold(
    'sqlite: operate',
    fc.asyncProperty(call, async ({ make }) => {
      await allOrNothing(store, () => make()(mulligan));
    }),
  );
});
