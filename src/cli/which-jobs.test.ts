import { expect, it } from 'vitest';
import { defineJob } from '../definition.ts';
import { Unrecoverable } from '../retry/control-errors.ts';
import { testQueue } from '../testing/queue.ts';
import { hintAtNothing } from './which-jobs.ts';

it('a queue whose dead jobs ended in a retry queue names that queue', async () => {
  const hook = defineJob<null>({
    name: 'hook',
    queue: 'hooks',
    retryQueue: 'hooks-retries',
    retry: { maxAttempts: 3, backoff: { kind: 'fixed', base: '1s' }, jitter: 'none' },
    resource: false,
    run(_, { attempt }) {
      throw attempt === 1 ? new Error('busy') : new Unrecoverable('no');
    },
  });
  await using queue = await testQueue({ jobs: [hook] });
  const { mulligan } = queue;
  await mulligan.enqueue(hook, null);
  await queue.drain();
  expect(await mulligan.dead.list({ queue: 'hooks' })).toEqual([]);
  expect(await hintAtNothing(mulligan, { queue: 'hooks', state: 'dead' })).toBe(
    '1 that were enqueued in hooks are dead, but a retry waits and ends in its retry queue. Try --queue hooks-retries.',
  );
  expect(await hintAtNothing(mulligan, { queue: 'hooks', state: 'scheduled' })).toBeNull();
});
