import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Cancel, defineJob, Mulligan, policies, RetryAfter, Snooze, Unrecoverable } from '../../src/index.ts';
import { MemoryStore, VirtualClock } from '../../src/testing/index.ts';
import { anything, evenEndless, goodDuration, oddDuration, retry } from './arbitraries.ts';
import { hold } from './cases.ts';
import { forgedDates, Recipe } from './monsters.ts';
import { allOrNothing, answerOf, watchRejections } from './rules.ts';

watchRejections();

it('a job gets a whole policy from whatever is said about retrying, or it is refused', async () => {
  const said = fc.oneof(retry, fc.constantFrom(...Object.values(policies).map(Recipe.of)));
  await hold(
    'retry: options',
    fc.asyncProperty(said, said, said, async (ofJob, ofDefinition, ofQueue) => {
      const clock = new VirtualClock();
      const store = new MemoryStore({ clock });
      await allOrNothing(
        store,
        async () => {
          const retry = ofDefinition.make() as never;
          const job = defineJob({ name: 'job', retry, run: () => {} });
          const mulligan = await Mulligan.open(store, {
            clock,
            queues: { default: { retry: ofQueue.make() as never } },
          });
          const { id } = await mulligan.enqueue(job, null, { retry: ofJob.make() as never });
          return (await mulligan.jobs.get(id))?.policy;
        },
        (policy) => {
          expect(JSON.parse(JSON.stringify(policy))).toEqual(policy);
          expect(Object.keys(policy ?? {}).sort()).toEqual([
            'backoff',
            'deadlineMs',
            'jitter',
            'maxAttempts',
            'maxCrashes',
            'maxRuns',
          ]);
          expect(policy?.maxAttempts).toBeGreaterThanOrEqual(1);
          expect(policy?.maxRuns).toBeGreaterThanOrEqual(policy?.maxAttempts ?? 0);
        },
      );
    }),
  );
});

it('a duration is whole milliseconds from 0 on, or refused', async () => {
  const clock = new VirtualClock();
  const mulligan = await Mulligan.open(new MemoryStore({ clock }), { clock });
  const startedAt = clock.now();
  await hold(
    'retry: durations',
    fc.asyncProperty(fc.oneof(goodDuration.map(Recipe.of), oddDuration.map(Recipe.of), evenEndless), async (delay) => {
      const answer = await answerOf(() => mulligan.enqueue('any', null, { delay: delay.make() as never }));
      if ('error' in answer) return;
      const { dueAt = Number.NaN } = (await mulligan.jobs.get(answer.value.id)) ?? {};
      expect(Number.isSafeInteger(dueAt)).toBe(true);
      expect(dueAt).toBeGreaterThanOrEqual(startedAt);
    }),
  );
});

const time = fc.oneof(anything, goodDuration.map(Recipe.of), oddDuration.map(Recipe.of), fc.date().map(Recipe.of));

it('RetryAfter and Snooze take a time that makes sense, or say what they expected', async () => {
  await hold(
    'retry: what handlers throw on purpose',
    fc.asyncProperty(fc.constantFrom(RetryAfter, Snooze), time, async (Said, delay) => {
      await answerOf(() => new Said(delay.make() as never));
    }),
  );
});

it('what a handler throws on purpose is what it says, whatever its message', async () => {
  const when = fc.oneof(time, fc.constantFrom(...forgedDates));
  await hold(
    'retry: messages of what handlers throw on purpose',
    fc.asyncProperty(when, anything, async (delay, message) => {
      await answerOf(() => new RetryAfter(delay.make() as never, message.make() as never));
      await answerOf(() => new Snooze(delay.make() as never, message.make() as never));
      await answerOf(() => new Unrecoverable(message.make() as never));
      await answerOf(() => new Cancel(message.make() as never));
    }),
  );
});
