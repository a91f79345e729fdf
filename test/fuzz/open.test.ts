import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { defineJob, Mulligan } from '../../src/index.ts';
import { MemoryStore, VirtualClock } from '../../src/testing/index.ts';
import { anything, duration, goodName, mostly, optionsOf, recipes, retry, text } from './arbitraries.ts';
import { hold } from './cases.ts';
import { Recipe } from './monsters.ts';
import { answerOf, watchRejections } from './rules.ts';

watchRejections();

const definition = fc.constantFrom(...['a', 'b', '__proto__'].map((name) => defineJob({ name, run: () => {} })));
const kept = fc.oneof(fc.constant(null), duration);

const options = optionsOf({
  jobs: fc.array(mostly(definition, recipes(anything)), {
    maxLength: 2,
  }),
  queues: fc.dictionary(mostly(goodName, text), recipes(optionsOf({ retry: recipes(retry) })), {
    maxKeys: 2,
  }),
  hardCap: fc.integer({ min: 0, max: 9 }),
  maxPayloadBytes: fc.integer({ min: 2, max: 10_000 }),
  retention: recipes(optionsOf({ completed: kept, dead: kept, cancelled: kept })),
  log: fc.constant(() => {}),
  metricsPrefix: mostly(fc.constantFrom('mulligan', '_a1', 'A'), text),
  clock: fc.constant(new VirtualClock()),
});

it('Mulligan.open answers a queue that works, or says what it expected', async () => {
  await hold(
    'Mulligan.open: options',
    fc.asyncProperty(options, async (recipe) => {
      const answer = await answerOf(() => Mulligan.open('memory:', recipe.make() as never));
      if ('error' in answer) {
        expect(answer.error.code).toBe('CONFIG');
        return;
      }
      await using mulligan = answer.value;
      const { id } = await mulligan.enqueue('any', 1);
      expect((await mulligan.jobs.get(id))?.payload).toBe(1);
      expect(await mulligan.metrics()).toContain('jobs');
    }),
  );
});

/** A store that lacks some verbs, or has something else in their place. */
const crippled = fc
  .tuple(
    fc.constantFrom('enqueue', 'claim', 'settle', 'list', 'stats', 'onWork', 'close'),
    anything.filter(({ make }) => typeof make() !== 'function'),
  )
  .map(([verb, instead]) => {
    const make = (): unknown =>
      Object.assign(new MemoryStore({ clock: new VirtualClock() }), { [verb]: instead.make() });
    return new Recipe(make, `a store whose ${verb} is ${fc.stringify(instead)}`);
  });

const target = fc.oneof(
  anything,
  crippled,
  fc
    .tuple(fc.constantFrom('', 'memory', 'postgres', 'http', 'sqlit', 'SQLITE', 'file', '__proto__'), text)
    .map((parts) => Recipe.of(parts.join(':'))),
  fc
    .constantFrom('sqlite', 'sqlite:', 'sqlite::memory:', 'sqlite:file::memory:?cache=shared', 'memory', ':memory:')
    .map(Recipe.of),
);

it('Mulligan.open takes no target that it could not work with', async () => {
  await hold(
    'Mulligan.open: targets',
    fc.asyncProperty(target, async (recipe) => {
      const answer = await answerOf(() => Mulligan.open(recipe.make() as never));
      if ('error' in answer) {
        expect(answer.error.code).toBe('CONFIG');
        return;
      }
      await using mulligan = answer.value;
      // None of these names a file: what looks like one that is gone with the process must not become one.
      expect(String(recipe.make())).not.toMatch(/^sqlite/);
      const { id } = await mulligan.enqueue('any', 1);
      expect((await mulligan.jobs.get(id))?.payload).toBe(1);
      await mulligan.stats();
    }),
  );
});

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'mulligan-fuzz-open-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fileName = fc
  .oneof(
    text,
    fc.constantFrom(
      '',
      '.',
      'no/such/folder/jobs.db',
      'x'.repeat(300),
      'a?mode=memory',
      'a#b',
      '%00',
      'a b.db',
      'ä.db',
      '-.db',
    ),
  )
  .map((name) => name.replaceAll('..', ''));

it('a database file is opened and works, or is refused and nothing is left behind', async () => {
  await hold(
    'Mulligan.open: files',
    fc.asyncProperty(fileName, async (name) => {
      const held = readdirSync(folder);
      const answer = await answerOf(() => Mulligan.open(`sqlite:${folder}/${name}`));
      if ('error' in answer) {
        expect(['CONFIG', 'STORE_UNAVAILABLE', 'STORE_INCOMPATIBLE']).toContain(answer.error.code);
        expect(readdirSync(folder)).toEqual(held);
        return;
      }
      await using mulligan = answer.value;
      const { id } = await mulligan.enqueue('any', 1);
      expect((await mulligan.jobs.get(id))?.payload).toBe(1);
    }),
  );
});
