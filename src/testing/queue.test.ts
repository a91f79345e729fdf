import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { defineJob } from '../definition.ts';
import { ConfigError } from '../errors.ts';
import { testQueue } from './queue.ts';

const HOUR_MS = 3_600_000;

describe('draining a test queue', () => {
  it('runs all jobs to their end, retries and delays included, without real waiting', async () => {
    const starts: [string, number][] = [];
    const job = defineJob<string>({
      name: 'job',
      retry: { maxAttempts: 3, backoff: { kind: 'fixed', base: '6h' }, jitter: 'none' },
      run(name, { attempt }) {
        starts.push([name, queue.clock.monotonic() / HOUR_MS]);
        if (attempt < 3) throw new Error('not yet');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    await queue.mulligan.enqueue(job, 'now');
    await queue.mulligan.enqueue(job, 'tomorrow', { delay: '24h' });
    await queue.drain();
    expect(starts).toEqual([
      ['now', 0],
      ['now', 6],
      ['now', 12],
      ['tomorrow', 24],
      ['tomorrow', 30],
      ['tomorrow', 36],
    ]);
    expect((await queue.mulligan.stats()).states.completed).toBe(2);
  });

  it('waits for the rate of a limit, however slow it is', async () => {
    const starts: number[] = [];
    const job = defineJob({
      name: 'job',
      limit: { name: 'slow', rate: { limit: 1, per: '30m' } },
      run: () => void starts.push(Math.round((queue.clock.monotonic() / HOUR_MS) * 1_000) / 1_000),
    });
    await using queue = await testQueue({ jobs: [job] });
    await queue.mulligan.enqueueMany(job, [{ input: 1 }, { input: 2 }, { input: 3 }]);
    await queue.drain();
    expect(starts).toEqual([0, 0.5, 1]);
  });

  it('of an empty queue ends at once, and moves no time', async () => {
    await using queue = await testQueue({ jobs: [] });
    await queue.drain();
    expect(queue.clock.monotonic()).toBe(0);
  });

  it('runs the jobs that jobs enqueue', async () => {
    const seen: number[] = [];
    const chain = defineJob<number>({
      name: 'chain',
      async run(n) {
        seen.push(n);
        if (n > 0) await queue.mulligan.enqueue(chain, n - 1, { delay: '1d' });
      },
    });
    await using queue = await testQueue({ jobs: [chain] });
    await queue.mulligan.enqueue(chain, 3);
    await queue.drain();
    expect(seen).toEqual([3, 2, 1, 0]);
  });

  it('fires a schedule at its very time', async () => {
    const seen: number[] = [];
    const job = defineJob<unknown>({ name: 'job', run: () => void seen.push(queue.clock.now()) });
    await using queue = await testQueue({ jobs: [job], schedules: [{ name: 's', job, every: '1m' }] });
    const startedAt = queue.clock.now();
    for (let minute = 1; minute <= 3; minute++) await queue.clock.advance(60_000);
    expect(seen.map((at) => at - startedAt)).toEqual([60_000, 120_000, 180_000]);
  });

  it('waits for handlers that do real work, not only virtual time', async () => {
    const job = defineJob<null>({ name: 'job', run: () => new Promise<void>((done) => void setTimeout(done, 20)) });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1 });
  });

  it('fires no timeout while a handler waits for something real that answers in time', async () => {
    const job = defineJob<null>({
      name: 'job',
      timeout: '5s',
      async run(_, { signal }) {
        await new Promise<void>((done) => void setTimeout(done, 50));
        await readFile(new URL(import.meta.url));
        signal.throwIfAborted();
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1, lastError: null });
    expect(queue.clock.monotonic()).toBeLessThan(5_000);
  });

  it('fires no timeout while a handler waits for a connection that was open before', async () => {
    const server = createServer((socket) => socket.on('data', () => void setTimeout(() => socket.write('answer'), 50)));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    await once(socket, 'connect');
    const job = defineJob<null>({
      name: 'job',
      timeout: '5s',
      async run(_, { signal }) {
        socket.write('question');
        await once(socket, 'data', { signal });
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1 });
    socket.destroy();
    server.close();
    await once(server, 'close');
  });

  it('fires the timeouts of handlers that wait for nothing real, without real waiting', async () => {
    const job = defineJob<null>({
      name: 'job',
      timeout: '5m',
      retry: { maxAttempts: 2 },
      run: (_, { signal }) => new Promise<void>((_resolve, reject) => (signal.onabort = () => reject(signal.reason))),
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({
      state: 'dead',
      runs: 2,
      lastError: { name: 'TimeoutError' },
    });
    expect(queue.clock.monotonic()).toBeGreaterThan(10 * 60_000);
  });

  it('refuses jobs of a name that has no handler, at once, and counts them', async () => {
    const job = defineJob<number>({ name: 'email.send', run: () => {} });
    await using queue = await testQueue({ jobs: [job] });
    await queue.mulligan.enqueue('email.sent', 1);
    await queue.mulligan.enqueue('email.sent', 2, { delay: '1h' });
    const { id } = await queue.mulligan.enqueue('report', 3);
    const error = await queue.drain().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as Error).message).toBe(
      'drain: expected a handler for every job, got 2 of "email.sent" (did you mean "email.send"?), 1 of "report". Add their definitions to jobs.',
    );
    expect((await queue.mulligan.jobs.get(id))?.runs).toBeLessThan(2);
    for (const waiting of await queue.mulligan.jobs.list()) await queue.mulligan.jobs.cancel(waiting.id);
    await queue.drain();
  });

  it('can be done again', async () => {
    const job = defineJob<null>({ name: 'job', run: () => {} });
    await using queue = await testQueue({ jobs: [job] });
    for (let round = 1; round <= 3; round++) {
      await queue.mulligan.enqueue(job, null, { delay: '1m' });
      await queue.drain();
      expect((await queue.mulligan.stats()).states.completed).toBe(round);
    }
  });

  it('takes on more jobs than the worker runs at once, and jobs of every queue of its definitions', async () => {
    const jobs = ['a', 'b', 'c'].map((name) => defineJob<null>({ name, queue: name, run: () => {} }));
    await using queue = await testQueue({ jobs });
    for (const job of jobs)
      await queue.mulligan.enqueueMany(
        job,
        Array(50)
          .fill(null)
          .map((input) => ({ input })),
      );
    await queue.drain();
    expect((await queue.mulligan.stats()).states.completed).toBe(150);
  });

  it('gives up on jobs that no worker claims, and names their queues', async () => {
    const job = defineJob<null>({ name: 'job', run: () => {} });
    await using queue = await testQueue({ jobs: [job] });
    await queue.mulligan.queues.pause('default');
    await queue.mulligan.enqueueMany(job, [{ input: null }, { input: null }]);
    await queue.mulligan.enqueue(job, null, { queue: 'elsewhere' });
    const error = await queue.drain().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as Error).message).toBe(
      'drain: expected a worker for all jobs that are due, but no worker claims 2 of "default", 1 of "elsewhere". Is the queue paused, or missing in work.queues?',
    );
  });
});

describe('a test queue', () => {
  async function jitters(seed?: number): Promise<unknown> {
    const job = defineJob<null>({
      name: 'job',
      retry: { maxAttempts: 6, backoff: { kind: 'exponential', base: '1s' }, jitter: 'full' },
      run() {
        throw new Error('no');
      },
    });
    await using queue = await testQueue({ jobs: [job], ...(seed === undefined ? {} : { seed }) });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    return (await queue.mulligan.jobs.runs(id)).map(({ nextDueAt, endedAt }) => nextDueAt && nextDueAt - endedAt);
  }

  it('draws the same jitter from the same seed, and another from another', async () => {
    expect(await jitters()).toEqual(await jitters());
    expect(await jitters(7)).toEqual(await jitters(7));
    expect(await jitters(7)).not.toEqual(await jitters(8));
  });

  it('takes the options of a queue and of a worker', async () => {
    const logged: string[] = [];
    const job = defineJob<null>({ name: 'job', run: (_, { log }) => log.info('hello') });
    await using queue = await testQueue({
      jobs: [job],
      hardCap: 2,
      log: ({ message }) => logged.push(message),
      work: { name: 'tester', concurrency: 1 },
    });
    expect(queue.worker.id).toMatch(/^tester-/);
    expect(await queue.mulligan.enqueue(job, null)).toMatchObject({ capped: { asked: 4, hardCap: 2 } });
    await queue.drain();
    expect(logged).toEqual(['hello']);
  });

  it('drains jobs that run one at a time behind a gate which opens meanwhile', async () => {
    let calls = 0;
    const job = defineJob<number>({
      name: 'job',
      resource: 'service',
      limit: { name: 'in order', concurrency: 1 },
      run() {
        if (++calls < 12) throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' });
      },
    });
    await using queue = await testQueue({ jobs: [job], seed: 1 });
    await queue.mulligan.enqueueMany(job, [{ input: 1 }, { input: 2 }]);
    await queue.drain();
    expect((await queue.mulligan.stats()).states.completed).toBe(2);
    expect((await queue.mulligan.gates.list())[0]?.reason).toMatchObject({ change: 'opened' });
  });

  it('refuses options it does not know', async () => {
    await expect(testQueue({ jobs: [], worker: {} } as never)).rejects.toThrow('there is no option "worker"');
    await expect(testQueue({ jobs: [], work: { concurency: 1 } } as never)).rejects.toThrow(
      'Did you mean concurrency?',
    );
  });

  it('lets go of jobs that still run when its test ends, and leaves no timer behind', async () => {
    const reasons: unknown[] = [];
    const obedient = defineJob<null>({
      name: 'obedient',
      run: (_, { signal }) =>
        new Promise<void>((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push((signal.reason as Error).name);
            reject(signal.reason);
          });
        }),
    });
    const deaf = defineJob<null>({ name: 'deaf', run: () => new Promise(() => {}) });
    const queue = await testQueue({ jobs: [obedient, deaf] });
    await queue.mulligan.enqueue(obedient, null);
    await queue.mulligan.enqueue(deaf, null);
    await queue.clock.advance(1_000);
    expect(queue.worker.running).toBe(2);
    await queue[Symbol.asyncDispose]();
    expect(reasons).toEqual(['AbortError']);
    expect(queue.worker.running).toBe(0);
    expect(queue.clock.pending).toBe(0);
    await expect(queue.mulligan.stats()).rejects.toThrow('closed');
  });
});
