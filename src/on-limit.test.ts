import { describe, expect, it } from 'vitest';
import { defineJob } from './definition.ts';
import { JobCancelledError } from './errors.ts';
import type { LimitOptions } from './limit/options.ts';
import { type TestQueue, testQueue } from './testing/queue.ts';

interface Input {
  readonly shop: string;
  readonly n: number;
}

/** Jobs of which two of a shop may run at a time, and the numbers of those that have run. */
function shopJob(onLimit: NonNullable<LimitOptions<Input>['onLimit']>, changes: Partial<LimitOptions<Input>> = {}) {
  const ran: number[] = [];
  const job = defineJob<Input>({
    name: `sync ${onLimit}`,
    limit: { name: 'shop', key: ({ shop }) => shop, concurrency: 2, onLimit, ...changes },
    run: ({ n }) => void ran.push(n),
  });
  return { job, ran };
}

/** Nothing runs before `drain`: the queue is paused. */
async function paused(...jobs: ReturnType<typeof shopJob>['job'][]): Promise<TestQueue> {
  const queue = await testQueue({ jobs });
  await queue.mulligan.queues.pause('default');
  return queue;
}

async function drain(queue: TestQueue): Promise<void> {
  await queue.mulligan.queues.resume('default');
  await queue.drain();
}

const of = (...numbers: number[]) => numbers.map((n) => ({ input: { shop: 'a', n } }));

describe('onLimit', () => {
  it('cancel-newest: keeps the first jobs of a key, and answers the others with one of them', async () => {
    const { job, ran } = shopJob('cancel-newest');
    await using queue = await paused(job);
    const answers = await queue.mulligan.enqueueMany(job, [...of(1, 2, 3), { input: { shop: 'b', n: 4 } }, ...of(5)]);
    expect(answers.map(({ existed }) => existed)).toEqual([false, false, true, false, true]);
    expect([answers[0]?.id, answers[1]?.id]).toContain(answers[2]?.id);
    await drain(queue);
    expect(ran.toSorted()).toEqual([1, 2, 4]);
  });

  it('cancel-oldest: keeps the last jobs of a key', async () => {
    const { job, ran } = shopJob('cancel-oldest');
    await using queue = await paused(job);
    const [first] = await queue.mulligan.enqueueMany(job, of(1, 2, 3, 4));
    await drain(queue);
    expect(ran.toSorted()).toEqual([3, 4]);
    await expect(queue.mulligan.result(first?.id as string)).rejects.toBeInstanceOf(JobCancelledError);
  });

  it('is the choice of each definition, also where they share a limit', async () => {
    const [waits, refused] = [shopJob('wait'), shopJob('cancel-newest')];
    await using queue = await paused(waits.job, refused.job);
    await queue.mulligan.enqueueMany(refused.job, of(1));
    await queue.mulligan.enqueueMany(waits.job, of(2, 3));
    await queue.mulligan.enqueueMany(refused.job, of(4));
    await drain(queue);
    expect([waits.ran.toSorted(), refused.ran]).toEqual([[2, 3], [1]]);
  });

  it('asks the concurrency that is computed for a key, and then that of an operator', async () => {
    const { job, ran } = shopJob('cancel-newest', { concurrency: (shop) => shop.length });
    await using queue = await paused(job);
    await queue.mulligan.enqueueMany(job, of(1, 2));
    await queue.mulligan.limits.set('shop', { concurrency: 2 }, { key: 'a' });
    await queue.mulligan.enqueueMany(job, of(3, 4));
    await drain(queue);
    expect(ran.toSorted()).toEqual([1, 3]);
  });
});
