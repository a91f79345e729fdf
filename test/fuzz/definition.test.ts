import fc from 'fast-check';
import { expect, it } from 'vitest';
import { defineJob, Mulligan } from '../../src/index.ts';
import {
  anything,
  duration,
  goodDuration,
  goodName,
  goodRetry,
  mostly,
  oddDuration,
  oddRetry,
  optionsOf,
  recipes,
} from './arbitraries.ts';
import { hold } from './cases.ts';
import { answerOf, watchRejections } from './rules.ts';

watchRejections();

const aFunction = fc.constant(() => undefined);
const aSchema = fc.constant({ '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } });
const aRule = fc.record({
  name: goodName,
  status: fc.oneof(fc.integer({ min: 90, max: 610 }), fc.constant([500, 599])),
  class: fc.constantFrom('permanent', 'environment', 'job', 'jobs'),
});

const options = optionsOf(
  {
    name: goodName,
    run: aFunction,
    input: aSchema,
    queue: goodName,
    retryQueue: goodName,
    resource: goodName,
    priority: fc.integer({ min: 0, max: 9 }),
    retry: fc.oneof(goodRetry, recipes(oddRetry)),
    timeout: duration,
    classify: aFunction,
    rules: fc.array(mostly(aRule, recipes(anything)), {
      maxLength: 2,
    }),
    backoff: aFunction,
    onDead: aFunction,
  },
  ['name', 'run'],
);

it('defineJob answers a definition that can be used, or says what it expected', async () => {
  await hold(
    'defineJob: options',
    fc.asyncProperty(options, async (recipe) => {
      const answer = await answerOf(() => defineJob(recipe.make() as never));
      if ('error' in answer) {
        expect(answer.error.code).toBe('CONFIG');
        return;
      }
      const definition = answer.value;
      expect(Object.isFrozen(definition)).toBe(true);
      await using mulligan = await Mulligan.open('memory:', { jobs: [definition] });
      const { id } = await mulligan.enqueue(definition, null as never);
      expect(await mulligan.jobs.get(id)).toMatchObject({
        name: definition.name,
        queue: definition.queue,
        priority: definition.priority,
        resource: definition.resource,
      });
    }),
  );
});
