import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ConfigError, defineJob, InputError, Mulligan } from '../../src/index.ts';
import { MemoryStore, VirtualClock } from '../../src/testing/index.ts';
import { anything, ending, text } from './arbitraries.ts';
import { hold } from './cases.ts';
import { Recipe, refuse } from './monsters.ts';
import { allOrNothing, answerOf, watchRejections } from './rules.ts';

watchRejections();

const part = fc.oneof(
  text.map(Recipe.of),
  anything,
  anything.map((key) => new Recipe(() => ({ key: key.make() }), `{ key: ${fc.stringify(key)} }`)),
);
const path = fc.oneof(
  anything,
  fc
    .array(part, { maxLength: 3 })
    .map((parts) => new Recipe(() => parts.map(({ make }) => make()), fc.stringify(parts))),
);
const issue = fc.oneof(
  anything,
  fc
    .tuple(fc.oneof(text.map(Recipe.of), anything), path)
    .map(
      ([message, where]) =>
        new Recipe(
          () => ({ message: message.make(), path: where.make() }),
          `{ message: ${fc.stringify(message)}, path: ${fc.stringify(where)} }`,
        ),
    ),
);
const issues = fc.oneof(
  anything,
  fc.array(issue, { maxLength: 3 }).map((list) => new Recipe(() => list.map(({ make }) => make()), fc.stringify(list))),
);
/** What a schema that was never tested may do when it is asked. */
const answer = fc.oneof(
  ending,
  issues.map((list) => new Recipe(() => ({ issues: list.make() }), `{ issues: ${fc.stringify(list)} }`)),
  fc.constantFrom<Recipe>(
    new Recipe(refuse, 'refuse()'),
    new Recipe(() => ({
      get issues(): never {
        return refuse();
      },
    })),
    new Recipe(() => ({
      issues: undefined,
      get value(): never {
        return refuse();
      },
    })),
    new Recipe(() => ({ issues: Array.from({ length: 5_000 }, (_, at) => ({ message: 'wrong', path: [at] })) })),
    new Recipe(() => ({ issues: [{ message: 'm'.repeat(50_000), path: ['p'.repeat(50_000)] }] })),
  ),
);

function schemaOf(answer: Recipe, asynchronous: boolean): never {
  const validate = asynchronous ? async () => answer.make() : () => answer.make();
  return { '~standard': { version: 1, vendor: 'fuzz', validate } } as never;
}

it('a schema that misbehaves refuses the job it was asked about, in our words, and stores nothing', async () => {
  await hold(
    'schemas: answers',
    fc.asyncProperty(answer, fc.boolean(), async (recipe, asynchronous) => {
      const clock = new VirtualClock();
      const store = new MemoryStore({ clock });
      const mulligan = await Mulligan.open(store, { clock });
      const job = defineJob({ name: 'job', input: schemaOf(recipe, asynchronous), run: () => {} });
      await allOrNothing(store, async () => {
        const answered = await answerOf(() => mulligan.enqueue(job, { a: 1 } as never));
        if ('value' in answered) return;
        expect([InputError, ConfigError]).toContain(answered.error.constructor);
        if (!(answered.error instanceof InputError)) throw answered.error;
        for (const { message, path } of answered.error.issues)
          expect([typeof message, typeof path]).toEqual(['string', 'string']);
        throw answered.error;
      });
    }),
  );
});
