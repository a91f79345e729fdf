import { describe, expect, it, vi } from 'vitest';
import { defineJob, type JobContext } from '../definition.ts';
import type { EventMap } from '../observe/events.ts';
import { type TestQueue, testQueue } from '../testing/queue.ts';

type Input = { readonly shop: string };

/** A job that does what `work` says, behind a limit of its own and one that only permits ask for. */
async function queueOf(work: (context: JobContext) => unknown): Promise<TestQueue> {
  const job = defineJob<Input>({
    name: 'sync',
    limit: [
      { name: 'shopify', key: () => null, rate: { limit: 10, per: '10s', burst: 3 } },
      { name: 'shop', key: ({ shop }) => shop, concurrency: 10, rate: { limit: 2, per: '1h' } },
    ],
    run: (_, context) => work(context),
  });
  return testQueue({ jobs: [job], work: { concurrency: 10 } });
}

describe('context.permit', () => {
  it('waits up to a second for its rate inside the run', async () => {
    const at: number[] = [];
    let queue: TestQueue | null = null;
    const job = defineJob({
      name: 'fast',
      limit: { name: 'api', key: () => null, rate: { limit: 10, per: '5s' } },
      async run(_, { permit }) {
        for (let call = 0; call < 3; call++) {
          await permit('api', { key: 'all' });
          at.push(queue?.clock.monotonic() as number);
        }
      },
    });
    await using opened = await testQueue({ jobs: [job] });
    queue = opened;
    const { id } = await opened.mulligan.enqueue(job, null);
    await opened.drain();
    expect(at.map((time) => time - (at[0] as number))).toEqual([0, 500, 1_000]);
    expect(await opened.mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1, attempts: 1 });
  });

  it('snoozes, uncounted, when the wait is longer', async () => {
    const startedAt: number[] = [];
    let queue: TestQueue | null = null;
    const job = defineJob({
      name: 'call',
      limit: { name: 'shopify', key: () => null, rate: { limit: 10, per: '10s', burst: 3 } },
      async run(_, { permit }) {
        startedAt.push(queue?.clock.monotonic() as number);
        await permit('shopify', { key: 'a', cost: 3 });
      },
    });
    await using opened = await testQueue({ jobs: [job] });
    queue = opened;
    await opened.mulligan.enqueue(job, null);
    const { id } = await opened.mulligan.enqueue(job, null);
    await opened.drain();
    expect(await opened.mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 2, attempts: 1 });
    expect((await opened.mulligan.jobs.runs(id)).map(({ outcome, counted }) => [outcome, counted])).toEqual([
      ['snoozed', false],
      ['completed', true],
    ]);
    // Eight starts in 10 s beside a burst of three: three spaces of 1.25 s.
    expect((startedAt.at(-1) as number) - (startedAt[0] as number)).toBe(3_750);
  });

  it('waits in its place once the run has a permit: a run that began again would take that again', async () => {
    const calls = vi.fn();
    const job = defineJob({
      name: 'calls',
      limit: { name: 'slow', key: () => null, rate: { limit: 2, per: '4s' } },
      async run(_, { permit }) {
        for (let call = 1; call <= 4; call++) {
          await permit('slow', { key: 'a' });
          calls(call);
        }
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(calls.mock.calls).toEqual([[1], [2], [3], [4]]);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1, attempts: 1 });
  });

  it('snoozes when others were faster again and again, although each wait is short', async () => {
    const job = defineJob({
      name: 'call',
      limit: { name: 'api', key: () => null, rate: { limit: 10, per: '6s' } },
      run: (_, { permit }) => permit('api', { key: 'all' }),
    });
    await using queue = await testQueue({ jobs: [job], work: { concurrency: 3 } });
    const answers = await queue.mulligan.enqueueMany(job, [{ input: 1 }, { input: 2 }, { input: 3 }]);
    await queue.drain();
    const runs = await Promise.all(answers.map(async ({ id }) => (await queue.mulligan.jobs.get(id))?.runs));
    expect(runs.sort()).toEqual([1, 1, 2]);
  });

  it('takes the key of the job itself unless another is given', async () => {
    const asked = vi.fn();
    await using queue = await queueOf(async ({ permit }) => {
      asked(
        await permit('shop').then(
          () => 'granted',
          (error: Error) => error.name,
        ),
      );
      asked(
        await permit('shop', { key: 'other' }).then(
          () => 'granted',
          (error: Error) => error.name,
        ),
      );
    });
    const before = queue.clock.monotonic();
    await queue.mulligan.enqueue('sync', { shop: 'a' });
    await queue.drain();
    // The start of the job itself has taken the one that its key had, so the first has waited for half an hour.
    expect(asked.mock.calls).toEqual([['granted'], ['granted']]);
    expect(queue.clock.monotonic() - before).toBeGreaterThanOrEqual(30 * 60_000);
  });

  it('needs no key for a limit that has none, from a job that does not stand behind it', async () => {
    const granted = vi.fn();
    const other = defineJob({ name: 'other', limit: { name: 'all', rate: { limit: 5, per: '1h' } }, run() {} });
    const job = defineJob({
      name: 'call',
      run: (_, { permit }) => permit('all').then(granted),
    });
    await using queue = await testQueue({ jobs: [job, other] });
    await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(granted).toHaveBeenCalledTimes(1);
  });

  it('refuses a cost that the burst can never grant, an unknown limit and a missing key, and says what to do', async () => {
    const errors: string[] = [];
    await using queue = await queueOf(async ({ permit }) => {
      await permit('shopify', { key: 'a', cost: 4 }).catch((error: Error) => errors.push(error.message));
      await permit(undefined as never).catch((error: Error) => errors.push(error.message));
      await permit('shopyfi').catch((error: Error) => errors.push(error.message));
      await permit('shopify', { key: 'a', cost: 0 }).catch((error: Error) => errors.push(error.message));
      await permit('shopify', { key: {} as string }).catch((error: Error) => errors.push(error.message));
      await permit('shopify').catch((error: Error) => errors.push(error.message));
    });
    await queue.mulligan.enqueue('sync', { shop: 'a' });
    await queue.drain();
    expect(errors).toEqual([
      'permit: expected a cost of at most the burst of limit shopify, which is 3, got 4. Raise rate.burst to 4 or more, or ask for less at a time.',
      expect.stringMatching(/^permit: the limit's name: expected a text of 1 to 100 characters.* got undefined\./),
      'permit: expected a limit that a definition of this worker names, got "shopyfi". Did you mean shopify?',
      'permit: cost: expected a whole number of at least 1, got 0.',
      'permit: key: expected a text or a number, got an empty object.',
      "permit: expected a key, as a function chooses those of limit shopify and gave this job none. Give it: permit('shopify', { key }).",
    ]);
  });

  it('stops waiting when the run is told to stop', async () => {
    const thrown: unknown[] = [];
    const job = defineJob({
      name: 'slow',
      timeout: '300ms',
      retry: { maxAttempts: 1 },
      limit: { name: 'api', key: () => null, rate: { limit: 10, per: '9s' } },
      async run(_, { permit }) {
        await permit('api', { key: 'all' });
        await permit('api', { key: 'all' }).catch((error: unknown) => {
          thrown.push((error as Error).name);
          throw error;
        });
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(thrown).toEqual(['TimeoutError']);
    const [run] = await queue.mulligan.jobs.runs(id);
    expect((run?.endedAt as number) - (run?.startedAt as number)).toBe(300);
  });
});

describe('the event limited', () => {
  it('names the limit and its jobs, at most once per second; the metric counts it by name', async () => {
    const ends: (() => void)[] = [];
    const job = defineJob<Input>({
      name: 'sync',
      limit: { name: 'shop', key: ({ shop }) => shop, concurrency: 1 },
      run: () => new Promise<void>((resolve) => ends.push(resolve)),
    });
    await using queue = await testQueue({ jobs: [job, defineJob({ name: 'other', run() {} })] });
    const told: EventMap['limited'][] = [];
    queue.mulligan.on('limited', (event) => told.push(event));
    await queue.mulligan.enqueue(job, { shop: 'a' });
    await queue.clock.advance(10);
    expect(told).toEqual([]);
    for (let n = 0; n < 5; n++) {
      await queue.mulligan.enqueue(job, { shop: 'a' });
      await queue.clock.advance(100);
    }
    expect(told).toEqual([{ limit: 'shop', jobs: ['sync'] }]);
    await queue.clock.advance(1_000);
    await queue.mulligan.enqueue(job, { shop: 'a' });
    await queue.clock.advance(100);
    expect(told.length).toBe(2);
    expect(await queue.mulligan.metrics()).toContain('mulligan_limited_total{limit="shop"} 2\n');
    while (ends.length > 0) {
      ends.shift()?.();
      await queue.clock.advance(100);
    }
  });
});
