import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ConfigError, defineJob, InputError, Mulligan } from '../../src/index.ts';
import { MemoryStore, testQueue, VirtualClock } from '../../src/testing/index.ts';
import { anything, text } from './arbitraries.ts';
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
  anything,
  anything.map((value) => new Recipe(() => ({ value: value.make() }), `{ value: ${fc.stringify(value)} }`)),
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
        try {
          await mulligan.enqueue(job, { a: 1 } as never);
        } catch (error) {
          expectComplaint(error);
          throw error;
        }
      });
    }),
  );
});

function expectComplaint(error: unknown): void {
  expect(error).toBeOneOf([expect.any(InputError), expect.any(ConfigError)]);
  const { issues } = error as Partial<InputError>;
  for (const issue of issues ?? []) expect([typeof issue.message, typeof issue.path]).toEqual(['string', 'string']);
}

it('a job whose schema misbehaves before a run ends, with what went wrong', async () => {
  const retry = { maxAttempts: 2, backoff: { kind: 'fixed', base: 0 }, jitter: 'none', deadline: '1m' } as const;
  await hold(
    'schemas: before a run',
    fc.asyncProperty(answer, fc.boolean(), async (recipe, asynchronous) => {
      const job = defineJob({ name: 'job', retry, input: schemaOf(recipe, asynchronous), run: () => {} });
      await answerOf(async () => {
        await using queue = await testQueue({ jobs: [job], work: { rejectedPayloadTimeout: '1s' } });
        // By a definition without a schema, as an older producer would.
        const { id } = await queue.mulligan.enqueue(defineJob({ name: 'job', retry, run: () => {} }), { a: 1 });
        await queue.drain();
        const ended = await queue.mulligan.jobs.get(id);
        expect(['completed', 'dead', 'cancelled']).toContain(ended?.state);
        expect(ended?.state === 'completed').toBe(ended?.lastError === null);
      });
    }),
  );
});
