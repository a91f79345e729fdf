import fc from 'fast-check';
import { expect, it } from 'vitest';
import { defineJob, Mulligan } from '../../src/index.ts';
import { anything, duration, goodName, mostly, optionsOf, recipes, retry, text } from './arbitraries.ts';
import { hold } from './cases.ts';
import { answerOf, watchRejections } from './rules.ts';

watchRejections();

const aFunction = fc.constant(() => undefined);
const aSchema = fc.constant({ '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } });
const aRule = fc.record({
  name: goodName,
  status: mostly(fc.oneof(fc.integer({ min: 100, max: 599 }), fc.constant([500, 599])), fc.integer()),
  class: mostly(fc.constantFrom('permanent', 'environment', 'job'), text),
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
    retry: recipes(retry),
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
      const enqueued = await answerOf(() => mulligan.enqueue(definition, null as never));
      if ('error' in enqueued) {
        // A function that names no resource is found out here, and so is the input of the job that a death would enqueue.
        const isLate =
          typeof definition.resource === 'function' ? 'CONFIG' : Array.isArray(definition.onDead) && 'PAYLOAD';
        expect(enqueued.error.code).toBe(isLate);
        return;
      }
      const { name, queue, priority, resource } = definition;
      const job = await mulligan.jobs.get(enqueued.value.id);
      expect(job).toMatchObject({ name, queue, priority });
      if (typeof resource !== 'function') expect(job?.resource).toBe(resource === false ? null : resource);
    }),
  );
});
