import fc from 'fast-check';
import { expect, it } from 'vitest';
import { defineJob, type JobContext, MulliganError, Snooze, Unrecoverable } from '../../src/index.ts';
import { testQueue } from '../../src/testing/index.ts';
import { anything, evenEndless, goodDuration, goodName, json, text } from './arbitraries.ts';
import { hold } from './cases.ts';
import { Recipe, refuse } from './monsters.ts';
import { answerOf, expectOurs, watchRejections } from './rules.ts';

watchRejections();

/** The deadline keeps a wait of a year from being waited out, second by second of virtual time. */
const twice = { maxAttempts: 2, backoff: { kind: 'fixed', base: 0 }, jitter: 'none', deadline: '1m' } as const;

/** Runs one job to its end and answers its ledger; whatever happened in it, both can be read. */
async function ledgerOf(queue: Awaited<ReturnType<typeof testQueue>>, id: string): Promise<string> {
  await queue.drain();
  const [job, runs] = [await queue.mulligan.jobs.get(id), await queue.mulligan.jobs.runs(id)];
  expect(['completed', 'dead', 'cancelled']).toContain(job?.state);
  expect(runs.length).toBeGreaterThanOrEqual(1);
  return JSON.stringify([job, runs]);
}

it('whatever a handler throws or rejects with, its job ends and its ledger says why', async () => {
  await hold(
    'handlers: thrown',
    fc.asyncProperty(evenEndless, fc.constantFrom('throws', 'rejects', 'returns'), async (thrown, how) => {
      const run = {
        throws: () => {
          throw thrown.make();
        },
        rejects: async () => {
          throw thrown.make();
        },
        returns: () => [thrown.make()],
      }[how];
      const job = defineJob({ name: 'job', retry: twice, run });
      await answerOf(async () => {
        await using queue = await testQueue({ jobs: [job] });
        const { id } = await queue.mulligan.enqueue(job, null);
        await ledgerOf(queue, id);
      });
    }),
  );
});

type Use = (context: JobContext) => unknown;

const use: fc.Arbitrary<Recipe<Use>> = fc.oneof(
  fc.tuple(fc.oneof(goodName.map(Recipe.of), anything), fc.oneof(json.map(Recipe.of), anything), fc.boolean()).map(
    ([key, value, throws]) =>
      new Recipe<Use>(
        () => (context) =>
          context.once(key.make() as string, () => {
            if (throws) throw new Error('the effect failed');
            // In a list: what a promise of the handler's own does is the handler's affair.
            return [value.make()];
          }),
        `once(${fc.stringify(key)}, () => ${fc.stringify(value)})`,
      ),
  ),
  anything.map(
    (value) => new Recipe<Use>(() => (context) => context.progress(value.make()), `progress(${fc.stringify(value)})`),
  ),
  fc
    .oneof(anything, goodDuration.map(Recipe.of))
    .map(
      (delay) =>
        new Recipe<Use>(() => (context) => context.extend(delay.make() as never), `extend(${fc.stringify(delay)})`),
    ),
  anything.map(
    (delay) =>
      new Recipe<Use>(() => (context) => context.snooze(delay.make() as never), `snooze(${fc.stringify(delay)})`),
  ),
  fc
    .tuple(anything, anything)
    .map(
      ([message, fields]) =>
        new Recipe<Use>(
          () => (context) => context.log.info(message.make() as never, fields.make() as never),
          'log.info',
        ),
    ),
);

it('a handler may use its context in any way: it gets what it asked for, or an error of ours', async () => {
  await hold(
    'handlers: context',
    fc.asyncProperty(fc.array(use, { minLength: 1, maxLength: 4 }), async (uses) => {
      const odd: unknown[] = [];
      const job = defineJob({
        name: 'job',
        retry: twice,
        async run(_, context) {
          for (const { make } of uses) {
            try {
              await make()(context);
            } catch (error) {
              // Unrecoverable: the effect is done, but its result cannot be stored.
              const isExpected = [MulliganError, Snooze, Unrecoverable].some((known) => error instanceof known);
              if (!isExpected && !/^the effect failed/.test((error as Error | null)?.message ?? '')) odd.push(error);
            }
          }
          if (context.attempt === 1) throw new Error('once more');
        },
      });
      await answerOf(async () => {
        await using queue = await testQueue({ jobs: [job] });
        const { id } = await queue.mulligan.enqueue(job, null);
        await ledgerOf(queue, id);
      });
      for (const error of odd) expectOurs(error);
    }),
  );
});

it('once expects an effect that is a function, and extend a lease that a store can hold', async () => {
  const effect = anything.filter(({ make }) => typeof make() !== 'function');
  const lease = fc.oneof(anything, fc.constantFrom('365d', '366d', Number.MAX_SAFE_INTEGER).map(Recipe.of));
  const use = fc.oneof(
    effect.map(
      ({ make }) =>
        (context: JobContext) =>
          context.once('key', make() as never),
    ),
    lease.map(
      ({ make }) =>
        (context: JobContext) =>
          context.extend(make() as never),
    ),
  );
  await hold(
    'handlers: effects',
    fc.asyncProperty(use, async (call) => {
      let leaseEndsAt: number | null | undefined;
      const job = defineJob({
        name: 'job',
        retry: { maxAttempts: 1 },
        async run(_, context) {
          await answerOf<unknown>(() => call(context));
          leaseEndsAt = (await queue.mulligan.jobs.get(context.job.id))?.leaseEndsAt;
        },
      });
      await using queue = await testQueue({ jobs: [job] });
      const { id } = await queue.mulligan.enqueue(job, null);
      expect(JSON.parse(await ledgerOf(queue, id))).toMatchObject([{ lastError: null }, {}]);
      expect(Number.isSafeInteger(leaseEndsAt)).toBe(true);
    }),
  );
});

it('what once remembers is the same in the first run and in the next', async () => {
  const job = defineJob<unknown>({
    name: 'job',
    retry: twice,
    async run(input, context) {
      const recalled = await context.once('__proto__', () => input);
      expect(JSON.stringify(recalled)).toBe(JSON.stringify(input));
      context.progress(recalled);
      if (context.attempt === 1) throw new Error('once more');
    },
  });
  await using queue = await testQueue({ jobs: [job] });
  const ids = await Promise.all(
    fc.sample(json, 50).map(async (value) => (await queue.mulligan.enqueue(job, value)).id),
  );
  await queue.drain();
  for (const id of ids) expect((await queue.mulligan.jobs.get(id))?.state).toBe('completed');
});

it('a hook that throws or answers nonsense costs a note, never the job', async () => {
  const hook = fc.tuple(anything, fc.boolean()).map(
    ([answer, throws]) =>
      new Recipe(
        () => () => {
          if (throws) throw answer.make();
          return answer.make() as never;
        },
        `() => { ${throws ? 'throw' : 'return'} ${fc.stringify(answer)} }`,
      ),
  );
  await hold(
    'handlers: hooks',
    fc.asyncProperty(hook, hook, hook, hook, async (classify, backoff, onDead, listener) => {
      const job = defineJob({
        name: 'job',
        retry: twice,
        classify: classify.make(),
        backoff: backoff.make(),
        onDead: onDead.make(),
        run: () => refuse(),
      });
      await answerOf(async () => {
        await using queue = await testQueue({ jobs: [job], log: () => refuse() });
        for (const event of ['enqueued', 'started', 'retrying', 'dead'] as const) {
          queue.mulligan.on(event, listener.make());
        }
        const { id } = await queue.mulligan.enqueue(job, null);
        expect(JSON.parse(await ledgerOf(queue, id))).toMatchObject([{ state: 'dead' }, {}]);
      });
    }),
  );
});

const eventName = fc.oneof(
  anything,
  text.map(Recipe.of),
  fc.constantFrom('enqueued', 'started', 'completed', 'compleated', '*').map(Recipe.of),
);

it('on takes the name of an event and a function, and nothing else', async () => {
  await using queue = await testQueue({ jobs: [] });
  const aFunction = new Recipe(() => () => refuse(), 'a function');
  await hold(
    'events: on',
    fc.asyncProperty(eventName, fc.oneof(anything, fc.constant(aFunction)), async (name, listener) => {
      const answer = await answerOf(() => queue.mulligan.on(name.make() as never, listener.make() as never));
      if ('error' in answer) {
        expect(answer.error.code).toBe('CONFIG');
        return;
      }
      expect([typeof name.make(), typeof listener.make()]).toEqual(['string', 'function']);
      await queue.mulligan.enqueue('nobody knows it', null);
      answer.value();
    }),
  );
});
