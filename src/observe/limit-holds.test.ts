import { describe, expect, it } from 'vitest';
import { waitReasons } from '../cli/waits.ts';
import { defineJob } from '../definition.ts';
import type { Job } from '../job.ts';
import type { LimitOptions } from '../limit/options.ts';
import { Snooze } from '../retry/control-errors.ts';
import { idsOf, newJobs } from '../store/conformance/builders.ts';
import { MemoryStore } from '../store/memory/store.ts';
import { type TestQueue, testQueue } from '../testing/queue.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { holdWords, limitHolds } from './limit-holds.ts';

type Input = { readonly shop: string; readonly fails?: boolean; readonly snoozes?: boolean };

/** Jobs behind one limit. Those that start run until the queue is closed, unless they fail. */
function queueWith(limit: Omit<LimitOptions<Input>, 'name' | 'key'>): Promise<TestQueue> {
  const job = defineJob<Input>({
    name: 'sync',
    limit: { name: 'shopify', key: ({ shop }) => shop, ...limit },
    retry: { maxAttempts: 3, backoff: { kind: 'fixed', base: '1h' }, jitter: 'none' },
    resource: false,
    run({ fails, snoozes }, { signal }) {
      if (fails) throw new Error('no');
      if (snoozes) throw new Snooze('1h');
      return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    },
  });
  return testQueue({ jobs: [job] });
}

async function enqueue({ mulligan, clock }: TestQueue, ...inputs: Input[]): Promise<string[]> {
  const answers = await mulligan.enqueueMany(
    'sync',
    inputs.map((input) => ({ input })),
  );
  await clock.advance(10);
  return answers.map(({ id }) => id);
}

const said = async (queue: TestQueue, id: string): Promise<string[]> =>
  (await queue.mulligan.limits.holding(id)).map((hold) => holdWords(hold, (at) => `+${at - queue.clock.now()}`));

describe('limits.holding', () => {
  it('says how many run, and how many wait before the job', async () => {
    await using queue = await queueWith({ concurrency: 2 });
    const a = { shop: 'a.example' };
    const b = { shop: 'b.example' };
    const ids = await enqueue(queue, a, a, b, a, a, a, b, b, a);
    expect(await queue.mulligan.limits.holding(ids[8] as string)).toEqual([
      {
        ...{ limit: 'shopify', key: 'a.example', reason: 'concurrency', running: 2, waiting: 4, before: 3 },
        ...{ isExact: true, until: null, holder: null, holderDueAt: null },
        settings: { concurrency: 2, total: null, rate: null },
      },
    ]);
    expect(await said(queue, ids[8] as string)).toEqual([
      'Limit shopify, key a.example: 2 of 2 run. 4 jobs of the key wait, 3 of them before it.',
    ]);
    // The one that runs.
    expect(await said(queue, ids[2] as string)).toEqual([]);
    expect(await queue.mulligan.limits.holding('unknown')).toEqual([]);
  });

  it('has fewer before the job than wait, also when one of them leaves while it reads', async () => {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    const settings = { concurrency: 0 };
    await store.writeLimits([{ limit: 'shopify', key: null, source: 'set', settings }]);
    const ids = idsOf(await store.enqueue(newJobs(3, { limits: [{ limit: 'shopify', key: 'a' }] })));
    const [last] = (await store.get([ids[2] as string])) as [Job];
    const limitKeys: typeof store.limitKeys = async (...args) => {
      await store.cancel([ids[0] as string]);
      return store.limitKeys(...args);
    };
    const reads = { list: store.list.bind(store), limits: store.limits.bind(store), limitKeys };
    expect(await limitHolds(reads, last, clock.now())).toMatchObject([{ waiting: 3, before: 2 }]);
  });

  it('counts no job that is not due yet', async () => {
    await using queue = await queueWith({ concurrency: 1 });
    await queue.mulligan.enqueue('sync', { shop: 'a' }, { delay: '1h' });
    const ids = await enqueue(queue, { shop: 'a' }, { shop: 'a' }, { shop: 'a' });
    expect(await said(queue, ids[2] as string)).toEqual([
      'Limit shopify, key a: 1 of 1 run. 2 jobs of the key wait, 1 of them before it.',
    ]);
  });

  it('says when the rate lets the next one start', async () => {
    await using queue = await queueWith({ rate: { limit: 61, per: '1m', burst: 2 } });
    const [, , third] = await enqueue(queue, { shop: 'a' }, { shop: 'a' }, { shop: 'a' });
    expect(await said(queue, third as string)).toEqual([
      'Limit shopify, key a: rate of 61 per 1m, burst 2; the next start of the key is at +990.',
    ]);
  });

  it('says when the rate alone would let a job start that others wait before', async () => {
    await using queue = await queueWith({ rate: { limit: 61, per: '1m', burst: 2 } });
    const a = { shop: 'a' };
    const ids = await enqueue(queue, a, a, a, a, a);
    expect(await said(queue, ids[4] as string)).toEqual([
      'Limit shopify, key a: rate of 61 per 1m, burst 2; the next start of the key is at +990. 3 jobs of the key wait, 2 of them before it: by the rate it starts at about +2990.',
    ]);
  });

  it('says how many run and how many may, after the limit was lowered below that', async () => {
    await using queue = await queueWith({ concurrency: 2, total: 2 });
    const ids = await enqueue(queue, { shop: 'a' }, { shop: 'a' }, { shop: 'a' });
    await queue.mulligan.limits.set('shopify', { total: 1 });
    await queue.mulligan.limits.set('shopify', { concurrency: 1 }, { key: 'a' });
    expect(await said(queue, ids[2] as string)).toEqual(['Limit shopify, key a: 2 run, 1 allowed.']);
    await queue.mulligan.limits.reset('shopify', { key: 'a' });
    await queue.mulligan.limits.set('shopify', { concurrency: 3 });
    expect(await said(queue, ids[2] as string)).toEqual([
      'Limit shopify, key a: 2 run, 1 allowed, of all keys together.',
    ]);
  });

  it('says that all keys together are as many as may run', async () => {
    await using queue = await queueWith({ total: 2 });
    const [, , third] = await enqueue(queue, { shop: 'a' }, { shop: 'b' }, { shop: 'c' });
    expect(await said(queue, third as string)).toEqual(['Limit shopify, key c: 2 of 2 run, of all keys together.']);
  });

  it('names the job that waits for its retry and keeps the turn', async () => {
    await using queue = await queueWith({ concurrency: 1 });
    const [first, second] = await enqueue(queue, { shop: 'a', fails: true }, { shop: 'a' });
    const sentence = `Limit shopify, key a: job ${first} has failed before and keeps the turn until it has completed, is dead or was cancelled.`;
    const [words] = await said(queue, second as string);
    expect(words).toBe(
      `${sentence} That job is due +3599990; mulligan jobs run-now ${first} makes it due now. 2 jobs of the key wait, 1 of them before it.`,
    );
    const job = (await queue.mulligan.jobs.get(second as string)) as Job;
    expect(await waitReasons(queue.mulligan, job, [])).toEqual([expect.stringContaining(sentence)]);
  });

  it('names no job that snoozed at its first attempt: that one has given its turn up', async () => {
    await using queue = await queueWith({ concurrency: 1 });
    const [first] = await enqueue(queue, { shop: 'a', snoozes: true });
    expect((await queue.mulligan.jobs.get(first as string))?.runs).toBe(1);
    await queue.mulligan.limits.set('shopify', { total: 0 });
    const [second] = await enqueue(queue, { shop: 'a' });
    expect(await said(queue, second as string)).toEqual([
      'Limit shopify, key a: its total is 0, so nothing starts until that is changed.',
    ]);
  });

  it('says that a limit of 0 lets nothing start', async () => {
    await using queue = await queueWith({ concurrency: 1 });
    await queue.mulligan.limits.set('shopify', { concurrency: 0 }, { key: 'a' });
    const [first] = await enqueue(queue, { shop: 'a' });
    expect(await said(queue, first as string)).toEqual([
      'Limit shopify, key a: its concurrency is 0, so nothing starts until that is changed.',
    ]);
  });
});
