import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, vi } from 'vitest';
import { nextTurn, systemClock } from './clock.ts';
import { defineJob } from './definition.ts';
import { ClosedError, ConfigError } from './errors.ts';
import type { JobState } from './job.ts';
import { Mulligan, type MulliganOptions } from './mulligan.ts';
import type { EventMap, EventName } from './observe/events.ts';
import { policies } from './retry/presets.ts';
import { MemoryStore } from './store/memory/store.ts';
import { testQueue } from './testing/queue.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

const HOUR_MS = 3_600_000;
const soon = { backoff: { kind: 'fixed', base: '1s' }, jitter: 'none' } as const;
const idle = defineJob<unknown>({ name: 'idle', run: () => {} });

/** A file in a folder of its own, and as many queues on it as a test opens. All of it is gone when the test ends. */
class SharedFile implements AsyncDisposable {
  readonly #folder: string = mkdtempSync(join(tmpdir(), 'mulligan-'));
  readonly path: string = join(this.#folder, 'jobs.db');
  readonly #open: Mulligan[] = [];

  async open(options: MulliganOptions = {}): Promise<Mulligan> {
    const mulligan = await Mulligan.open(`sqlite:${this.path}`, { log: () => {}, ...options });
    this.#open.push(mulligan);
    return mulligan;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#open.map((mulligan) => mulligan.close({ grace: 0 })));
    rmSync(this.#folder, { recursive: true });
  }
}

function next<Name extends EventName>(mulligan: Mulligan, name: Name): Promise<EventMap[Name]> {
  return new Promise((resolve) => {
    const stop = mulligan.on(name, (event) => {
      stop();
      resolve(event);
    });
  });
}

/** A handler that says when it runs, and runs until its signal aborts. */
function endless() {
  const started = Promise.withResolvers<void>();
  const reasons: string[] = [];
  const job = defineJob<unknown>({
    name: 'endless',
    run: (_, { signal }) =>
      new Promise<void>((_resolve, reject) => {
        started.resolve();
        signal.addEventListener('abort', () => {
          reasons.push((signal.reason as Error).name);
          reject(signal.reason);
        });
      }),
  });
  return { job, started: started.promise, reasons };
}

async function rejection(call: Promise<unknown>): Promise<Error> {
  return call.then(
    () => new Error('it was accepted'),
    (error: Error) => error,
  );
}

describe('opening', () => {
  it.each<[string, unknown, string]>([
    [
      'nothing',
      undefined,
      'expected sqlite:FILE, postgres://HOST/DATABASE, https://HOST, memory: or a store, got undefined. Write sqlite:jobs.db for a file.',
    ],
    ['a bare file name', 'jobs.db', 'got "jobs.db". Write sqlite:jobs.db for a file.'],
    ['a misspelt scheme', 'sqlit:jobs.db', 'got "sqlit:jobs.db". Did you mean sqlite:?'],
    ['no file after two slashes', 'sqlite://', 'expected a file after sqlite:, got "sqlite://". Write sqlite:jobs.db.'],
    ['no file', 'sqlite:', 'expected a file after sqlite:, got "sqlite:". Write sqlite:jobs.db.'],
    ['settings with a file', 'sqlite:jobs.db?mode=ro', 'expected a file name without "?"'],
    ['a name for memory', 'memory:jobs', 'expected memory: alone, got "memory:jobs".'],
    ['a database that each connection would have for itself', 'sqlite::memory:', 'Write sqlite:jobs.db, or memory:.'],
    [
      'a store that is not there yet',
      'redis://localhost/jobs',
      'expected sqlite:FILE, postgres://HOST/DATABASE, https://HOST, memory: or a store',
    ],
    ['a number', 5432, 'expected sqlite:FILE, postgres://HOST/DATABASE, https://HOST, memory: or a store, got 5432.'],
    [
      'an object that is no store',
      {},
      'expected sqlite:FILE, postgres://HOST/DATABASE, https://HOST, memory: or a store, got an empty object.',
    ],
    [
      'half a store',
      { claim() {}, enqueue() {} },
      'expected a store with all its verbs, got an object with the keys claim, enqueue without heartbeat, report, settle, remember,',
    ],
  ])('%s is refused with a word on what to write instead', async (_, target, message) => {
    const error = await rejection(Mulligan.open(target as string));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toContain(message);
  });

  it('shows no credentials of an address it does not know', async () => {
    for (const password of ['hunter2', 'hunter2'.repeat(20)]) {
      const error = await rejection(Mulligan.open(`postgres://admin:${password}@db.example.com/jobs`));
      expect(error.message).toContain('db.example.com');
      expect(error.message).not.toContain('hunter2');
    }
  });

  it.each<[string, unknown, string]>([
    ['no object', 5, 'Mulligan.open: expected an object with options, got 5.'],
    ['a misspelt option', { job: [] }, 'Mulligan.open: there is no option "job". Did you mean jobs?'],
    ['null for schedules', { schedules: null }, 'Mulligan.open: schedules: expected a list of schedules, got null.'],
    [
      'null for jobs',
      { jobs: null },
      'Mulligan.open: jobs: expected a list of definitions made by defineJob, got null.',
    ],
    ['jobs that are no list', { jobs: idle }, 'Mulligan.open: jobs: expected a list of definitions made by defineJob'],
    [
      'a job that is no definition',
      { jobs: [{ name: 'a', run() {} }] },
      'Mulligan.open: jobs[0]: expected a definition made by defineJob',
    ],
    [
      'two jobs of one name',
      { jobs: [idle, defineJob({ name: 'idle', run() {} })] },
      'Mulligan.open: jobs: expected one definition per name, got two for "idle".',
    ],
    [
      'queues as a list',
      { queues: ['mail'] },
      'Mulligan.open: queues: expected an object from queue name to { retry, resource }',
    ],
    [
      'a misspelt resource of a queue',
      { queues: { mail: { resorce: 'smtp' } } },
      'Mulligan.open: queues.mail: there is no option "resorce". Did you mean resource?',
    ],
    [
      'a resource of a queue that is a function',
      { queues: { mail: { resource: () => 'smtp' } } },
      'Mulligan.open: queues.mail.resource: expected a text of 1 to 200 characters, none of them a slash or a control character, got a function. For a gate per key, give the definitions a function: defineJob(',
    ],
    [
      'a resource of a queue that is false',
      { queues: { mail: { resource: false } } },
      'got false. Leave it out for none; resource: false in a definition turns the gates of its jobs off.',
    ],
    [
      'a misspelt option of a queue',
      { queues: { mail: { rety: {} } } },
      'Mulligan.open: queues.mail: there is no option "rety". Did you mean retry?',
    ],
    [
      'a bad policy of a queue',
      { queues: { mail: { retry: { maxAttempts: 0 } } } },
      'Mulligan.open: queues.mail.retry.maxAttempts: expected a whole number of at least 1, got 0.',
    ],
    ['a hard cap of 0', { hardCap: 0 }, 'Mulligan.open: hardCap: expected a whole number of at least 1, got 0.'],
    [
      'a payload of no bytes',
      { maxPayloadBytes: 0 },
      'Mulligan.open: maxPayloadBytes: expected a whole number of at least 1, got 0.',
    ],
    [
      'a misspelt retention',
      { retention: { complete: '1d' } },
      'Mulligan.open: retention: there is no option "complete". Did you mean completed?',
    ],
    ['a retention of no jobs', { retention: { dead: '1d' } }, 'Mulligan.open: retention: expected jobs beside it'],
    ['a negative retention', { retention: { dead: -1 } }, 'Mulligan.open: retention.dead: expected a duration'],
    [
      'a log that is no function and no logger',
      { log: {} },
      'Mulligan.open: log: expected a function that takes log entries',
    ],
    [
      'a clock that does not tick',
      { clock: { now: () => 0 } },
      'Mulligan.open: clock: expected a clock, which has monotonic()',
    ],
  ])('with %s is refused', async (_, options, message) => {
    const error = await rejection(Mulligan.open('memory:', options as MulliganOptions));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toContain(message);
  });

  it('takes a store of one’s own, a store in memory and a file', async () => {
    const clock = new VirtualClock();
    await using file = new SharedFile();
    for (const mulligan of [
      await Mulligan.open(new MemoryStore({ clock }), { clock }),
      await Mulligan.open('memory:'),
      await file.open(),
    ]) {
      const { id } = await mulligan.enqueue('job', { n: 1 });
      expect(await mulligan.jobs.get(id)).toMatchObject({ payload: { n: 1 } });
      await mulligan.close();
    }
  });
});

describe('a closed queue', () => {
  it('rejects every call', async () => {
    await using file = new SharedFile();
    for (const mulligan of [await Mulligan.open('memory:'), await file.open()]) {
      await mulligan.close();
      const calls: Record<string, () => Promise<unknown>> = {
        enqueue: () => mulligan.enqueue('job', 1),
        enqueueMany: () => mulligan.enqueueMany('job', [{ input: 1 }]),
        stats: () => mulligan.stats(),
        metrics: () => mulligan.metrics(),
        'jobs.get': () => mulligan.jobs.get('id'),
        'jobs.list': () => mulligan.jobs.list(),
        'jobs.runs': () => mulligan.jobs.runs('id'),
        'jobs.cancel': () => mulligan.jobs.cancel('id'),
        'dead.list': () => mulligan.dead.list(),
        'dead.redrive': () => mulligan.dead.redrive({ name: 'job' }),
        'dead.discard': () => mulligan.dead.discard({ name: 'job' }),
        'queues.list': () => mulligan.queues.list(),
        'queues.pause': () => mulligan.queues.pause('default'),
        'queues.resume': () => mulligan.queues.resume('default'),
      };
      for (const [name, call] of Object.entries(calls)) {
        expect(await rejection(call()), name).toBeInstanceOf(ClosedError);
      }
      expect((await rejection(mulligan.enqueue('job', 1))).message).toContain('expected an open queue');
      expect(() => mulligan.work()).toThrow(ClosedError);
    }
  });

  it('may be closed again, and closes by itself at the end of its block', async () => {
    let seen: Mulligan;
    {
      await using mulligan = await Mulligan.open('memory:');
      seen = mulligan;
      await mulligan.enqueue('job', 1);
    }
    expect(await rejection(seen.stats())).toBeInstanceOf(ClosedError);
    await Promise.all([seen.close(), seen.close()]);
  });

  it('keeps what was enqueued before', async () => {
    await using file = new SharedFile();
    const mulligan = await file.open();
    await mulligan.enqueueMany('job', [{ input: 1 }, { input: 2 }, { input: 3 }]);
    await mulligan.close();
    expect((await (await file.open()).stats()).states.ready).toBe(3);
  });
});

describe('closing a queue with workers', () => {
  async function virtual(options: MulliganOptions) {
    const clock = new VirtualClock();
    return { clock, mulligan: await Mulligan.open(new MemoryStore({ clock }), { clock, log: () => {}, ...options }) };
  }

  it('leaves workers alone that were stopped before: they are not kept', async () => {
    const mulligan = await Mulligan.open('memory:');
    const [first, second] = [mulligan.work(), mulligan.work()];
    const stops = [vi.spyOn(first, 'stop'), vi.spyOn(second, 'stop')];
    await first.stop();
    expect(stops.map(({ mock }) => mock.calls.length)).toEqual([1, 0]);
    await mulligan.close();
    expect(stops.map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
  });

  it('stops them all: what runs may finish, what waits is left', async () => {
    const { job, started, reasons } = endless();
    const { clock, mulligan } = await virtual({ jobs: [job, idle] });
    const workers = [mulligan.work({ queues: ['default'] }), mulligan.work({ queues: ['elsewhere'] })];
    await mulligan.enqueue(job, null);
    await clock.advance(0);
    await started;
    const closing = mulligan.close({ grace: '5s' });
    await clock.advance(4_000);
    expect(reasons).toEqual([]);
    await clock.advance(2_000);
    await closing;
    expect(reasons).toEqual(['AbortError']);
    expect(workers.map(({ running }) => running)).toEqual([0, 0]);
    expect(clock.pending).toBe(0);
  });

  it('lets a handler that finishes within the grace enqueue further jobs', async () => {
    const release = Promise.withResolvers<void>();
    const followUp = defineJob<unknown>({ name: 'follow-up', queue: 'later', run: () => {} });
    const first = defineJob<unknown>({
      name: 'first',
      retry: { maxAttempts: 1 },
      async run() {
        await release.promise;
        await mulligan.enqueue(followUp, null);
      },
    });
    const clock = new VirtualClock();
    const outcomes: string[] = [];
    const mulligan: Mulligan = await Mulligan.open(new MemoryStore({ clock }), { clock, jobs: [first], log: () => {} });
    for (const name of ['completed', 'dead', 'released'] as const) mulligan.on(name, () => outcomes.push(name));
    const enqueued = next(mulligan, 'enqueued');
    await mulligan.enqueue(first, null);
    await enqueued;
    mulligan.work();
    await clock.advance(0);
    const followed = next(mulligan, 'enqueued');
    const closing = mulligan.close();
    release.resolve();
    await clock.advance(0);
    expect(await followed).toMatchObject({ name: 'follow-up' });
    await closing;
    expect(outcomes).toEqual(['completed']);
    expect(await rejection(mulligan.enqueue(followUp, null))).toBeInstanceOf(ClosedError);
  });

  it('starts no new worker from then on', async () => {
    const { job, started } = endless();
    const { clock, mulligan } = await virtual({ jobs: [job] });
    mulligan.work();
    await mulligan.enqueue(job, null);
    await clock.advance(0);
    await started;
    const closing = mulligan.close({ grace: '1h' });
    expect(() => mulligan.work()).toThrow(ClosedError);
    const hasty = mulligan.close({ grace: 0 });
    await clock.advance(1_000);
    await Promise.all([closing, hasty]);
  });

  it('with a grace that makes no sense is refused, and leaves everything as it was', async () => {
    const { clock, mulligan } = await virtual({ jobs: [idle] });
    mulligan.work();
    for (const grace of ['soon', -1, Number.NaN]) {
      const error = await rejection(mulligan.close({ grace: grace as number }));
      expect(error).toBeInstanceOf(ConfigError);
      expect(error.message).toContain('close: grace: expected a duration');
    }
    expect((await rejection(mulligan.close({ grase: 5 } as never))).message).toContain('Did you mean grace?');
    const { id } = await mulligan.enqueue(idle, null);
    await clock.advance(0);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'completed' });
    await mulligan.close();
  });

  it('answers those who wait for a worker to be idle', async () => {
    const { job, started } = endless();
    const { clock, mulligan } = await virtual({ jobs: [job] });
    const worker = mulligan.work();
    await mulligan.enqueue(job, null);
    await clock.advance(0);
    await started;
    const idleNow = worker.whenIdle();
    const closing = mulligan.close({ grace: 0 });
    await clock.advance(1_000);
    await closing;
    await idleNow;
    await worker.whenIdle();
  });
});

describe('two queues on one file', () => {
  it('share their jobs: one enqueues, the other works', async () => {
    await using file = new SharedFile();
    const [producer, consumer] = [await file.open(), await file.open({ jobs: [idle] })];
    consumer.work();
    const completed = next(consumer, 'completed');
    const { id } = await producer.enqueue(idle, null);
    expect(await completed).toMatchObject({ id });
    expect(await producer.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1 });
  });

  it('can cancel each other’s jobs, waiting and running', async () => {
    const { job, started, reasons } = endless();
    await using file = new SharedFile();
    const [operator, consumer] = [await file.open(), await file.open({ jobs: [job] })];
    const waiting = await operator.enqueue(job, null, { delay: '1h' });
    expect(await operator.jobs.cancel(waiting.id)).toBe('cancelled');
    const running = await operator.enqueue(job, null);
    const cancelled = next(consumer, 'cancelled');
    consumer.work({ lease: '1s' });
    await started;
    expect(await operator.jobs.cancel(running.id)).toBe('cancelling');
    expect(await cancelled).toMatchObject({ id: running.id, outcome: 'cancelled' });
    expect(reasons).toEqual(['Cancel']);
    for (const { id } of [waiting, running]) expect(await operator.jobs.get(id)).toMatchObject({ state: 'cancelled' });
    expect(await operator.jobs.runs(waiting.id)).toEqual([]);
    expect(await operator.jobs.runs(running.id)).toMatchObject([
      { outcome: 'cancelled', decision: { kind: 'cancel' } },
    ]);
  });

  it('can pause and resume each other’s queues', async () => {
    await using file = new SharedFile();
    const [operator, consumer] = [await file.open(), await file.open({ jobs: [idle] })];
    await operator.queues.pause('default');
    const paused = await operator.enqueue(idle, null);
    const started: string[] = [];
    consumer.on('started', ({ id }) => started.push(id));
    const worker = consumer.work({ queues: ['default', 'open'] });
    const elsewhere = next(consumer, 'completed');
    const { id } = await operator.enqueue(idle, null, { queue: 'open' });
    expect(await elsewhere).toMatchObject({ id });
    await worker.whenIdle();
    expect(started).toEqual([id]);
    const completed = next(consumer, 'completed');
    await operator.queues.resume('default');
    expect(await completed).toMatchObject({ id: paused.id });
  });

  it('that both enqueue the same keys many times at once make one job per key', async () => {
    await using file = new SharedFile();
    const both = [await file.open(), await file.open()];
    const keys = Array.from({ length: 25 }, (_, n) => `key-${n}`);
    const calls = Array.from({ length: 20 }, () =>
      both.flatMap((mulligan) => keys.map((key) => ({ mulligan, key }))),
    ).flat();
    const answers = await Promise.all(
      calls.map(async ({ mulligan, key }) => ({ key, ...(await mulligan.enqueue(idle, key, { key })) })),
    );
    expect(answers).toHaveLength(1_000);
    for (const [key, same] of Map.groupBy(answers, (answer) => answer.key)) {
      expect(new Set(same.map(({ id }) => id)).size, key).toBe(1);
      expect(
        same.filter(({ existed }) => !existed),
        key,
      ).toHaveLength(1);
    }
    expect((await both[0]?.stats())?.states.ready).toBe(25);
  });
});

describe('a file that another connection has locked', () => {
  const LEASE_MS = 1_000;

  it('blocks neither handlers nor reads, and the run is settled once although its lease was over', async () => {
    const finish = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const job = defineJob<unknown>({
      name: 'job',
      async run() {
        started.resolve();
        await finish.promise;
      },
    });
    await using file = new SharedFile();
    const mulligan = await file.open({ jobs: [job] });
    const troubles: string[] = [];
    for (const name of ['lease-lost', 'settle-failed', 'rescued', 'retrying', 'dead'] as const) {
      mulligan.on(name, () => troubles.push(name));
    }
    const completed = next(mulligan, 'completed');
    mulligan.work({ lease: LEASE_MS });
    const { id } = await mulligan.enqueue(job, null);
    await started.promise;

    const other = new DatabaseSync(file.path);
    other.exec('BEGIN IMMEDIATE');
    const lockedAt = systemClock.monotonic();
    const waiting = mulligan.enqueue(idle, null, { delay: '1d' });
    // This thread holds the lock itself: if a write blocked it, no read would be answered until the write gave up.
    let answers = 0;
    while (systemClock.monotonic() < lockedAt + 3 * LEASE_MS) {
      expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'running', runs: 1 });
      await nextTurn(systemClock);
      answers++;
    }
    expect(answers).toBeGreaterThan(10);
    other.exec('COMMIT');
    other.close();

    await waiting;
    finish.resolve();
    expect(await completed).toMatchObject({ id, run: 1 });
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1, crashes: 0 });
    expect(await mulligan.jobs.runs(id)).toMatchObject([{ run: 1, outcome: 'completed' }]);
    expect(troubles).toEqual([]);
  });
});

describe('retries with a queue of their own', () => {
  it('wait there, and a worker on it finishes them', async () => {
    const starts: string[] = [];
    const job = defineJob<null>({
      name: 'job',
      queue: 'mail',
      retryQueue: 'mail.retry',
      retry: soon,
      run(_, { attempt, job: { queue } }) {
        starts.push(queue);
        if (attempt < 3) throw new Error('no');
      },
    });
    const clock = new VirtualClock();
    await using mulligan = await Mulligan.open(new MemoryStore({ clock }), { clock, jobs: [job], log: () => {} });
    const fresh = mulligan.work({ queues: ['mail'] });
    const { id } = await mulligan.enqueue(job, null);
    await clock.advance(HOUR_MS);
    expect(starts).toEqual(['mail']);
    expect(await mulligan.jobs.get(id)).toMatchObject({
      state: 'ready',
      queue: 'mail.retry',
      lane: 'retry',
      attempts: 1,
    });
    const second = mulligan.work({ queues: ['mail.retry'] });
    await clock.advance(60_000);
    expect(starts).toEqual(['mail', 'mail.retry', 'mail.retry']);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'completed', attempts: 3 });
    await Promise.all([fresh.stop(), second.stop()]);
  });

  it('go back to the first queue when they are redriven', async () => {
    const job = defineJob<null>({
      name: 'job',
      queue: 'mail',
      retryQueue: 'mail.retry',
      retry: { ...soon, maxAttempts: 2 },
      run() {
        throw new Error('no');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'dead', queue: 'mail.retry' });
    await queue.mulligan.queues.pause('mail');
    await queue.mulligan.dead.redrive({ ids: [id] });
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'ready', queue: 'mail' });
  });
});

describe('a worker', () => {
  it('runs no more retries at once than maxRetriesInFlight, and all of them in the end', async () => {
    let retriesRunning = 0;
    let most = 0;
    const clock = new VirtualClock();
    const job = defineJob<null>({
      name: 'job',
      retry: soon,
      async run(_, { attempt }) {
        if (attempt === 1) throw new Error('no');
        most = Math.max(most, ++retriesRunning);
        await new Promise<void>((done) => clock.after(10_000, done));
        retriesRunning--;
      },
    });
    await using mulligan = await Mulligan.open(new MemoryStore({ clock }), { clock, jobs: [job], log: () => {} });
    const workers = [1, 2].map(() => mulligan.work({ concurrency: 20, maxRetriesInFlight: 3 }));
    await mulligan.enqueueMany(
      job,
      Array(12)
        .fill(null)
        .map((input) => ({ input })),
    );
    await clock.advance(HOUR_MS);
    expect(most).toBe(3);
    expect((await mulligan.stats()).states.completed).toBe(12);
    await Promise.all(workers.map((worker) => worker.stop()));
  });

  it('serves several queues by their weights, also when it runs one job at a time', async () => {
    const clock = new VirtualClock();
    const starts: string[] = [];
    const job = defineJob<null>({
      name: 'job',
      async run(_, { job: { queue } }) {
        starts.push(queue);
        await new Promise<void>((done) => clock.after(1_000, done));
      },
    });
    for (const concurrency of [1, 8]) {
      starts.length = 0;
      await using mulligan = await Mulligan.open(new MemoryStore({ clock }), { clock, jobs: [job], log: () => {} });
      for (const queue of ['often', 'rarely'])
        await mulligan.enqueueMany(
          job,
          Array(200)
            .fill(null)
            .map((input) => ({ input })),
          { queue },
        );
      const worker = mulligan.work({ concurrency, queues: { often: { weight: 3 }, rarely: { weight: 1 } } });
      await clock.advance((120 / concurrency) * 1_000);
      const rarely = starts.slice(0, 120).filter((queue) => queue === 'rarely').length;
      expect(Math.abs(rarely - 30)).toBeLessThanOrEqual(concurrency);
      const stopped = worker.stop({ grace: 0 });
      await clock.advance(10_000);
      await stopped;
    }
  });

  it('serves the queues of its definitions by default', async () => {
    const jobs = ['a', 'b'].map((name) => defineJob<null>({ name, queue: name, run: () => {} }));
    const clock = new VirtualClock();
    await using mulligan = await Mulligan.open(new MemoryStore({ clock }), { clock, jobs, log: () => {} });
    const worker = mulligan.work();
    for (const job of jobs) await mulligan.enqueue(job, null);
    await clock.advance(1_000);
    expect((await mulligan.stats()).states.completed).toBe(2);
    await worker.stop();
  });

  it('that is idle resolves whenIdle; jobs that are due later do not keep it busy', async () => {
    await using queue = await testQueue({ jobs: [idle] });
    await queue.mulligan.enqueue(idle, null);
    await queue.mulligan.enqueue(idle, null, { delay: '1d' });
    const idleNow = queue.worker.whenIdle();
    await queue.clock.advance(1_000);
    await idleNow;
    expect((await queue.mulligan.stats()).states).toMatchObject({ completed: 1, scheduled: 1 });
  });

  it.each<[string, unknown, string]>([
    ['a misspelt option', { concurency: 5 }, 'work: there is no option "concurency". Did you mean concurrency?'],
    ['no place', { concurrency: 0 }, 'work: concurrency: expected a whole number from 1 to 10000, got 0.'],
    ['a lease that is too short', { lease: '500ms' }, 'work: lease: expected at least 1s, got "500ms".'],
    ['no queue', { queues: [] }, 'work: queues: expected at least one queue, got an empty array.'],
    ['one queue twice', { queues: ['a', 'a'] }, 'work: queues: expected each queue once, got "a".'],
    ['a share above 1', { retryShare: 1.1 }, 'retryShare: expected a number from 0 to 1, got 1.1.'],
    [
      'a weight of 0',
      { queues: { a: { weight: 0 } } },
      'work: queues.a.weight: expected a number from 0.001 to 1000, got 0.',
    ],
    [
      'no retry in flight',
      { maxRetriesInFlight: 0 },
      'maxRetriesInFlight: expected a whole number of at least 1, got 0.',
    ],
    [
      'a misspelt option of a queue',
      { queues: { a: { wieght: 2 } } },
      'work: queues.a: there is no option "wieght". Did you mean weight?',
    ],
  ])('with %s is not started', async (_, options, message) => {
    await using mulligan = await Mulligan.open('memory:', { log: () => {} });
    const start = (): unknown => mulligan.work(options as never);
    expect(start).toThrow(ConfigError);
    expect(start).toThrow(message);
  });
});

describe('finished jobs', () => {
  const DAY_MS = 24 * HOUR_MS;
  const dying = defineJob<null>({
    name: 'dying',
    retry: policies.oneShot,
    run() {
      throw new Error('no');
    },
  });

  /** One job per way to end, and which of them are still there after so many days. */
  async function kept(retention: MulliganOptions['retention'], ...afterDays: number[]): Promise<JobState[][]> {
    await using queue = await testQueue({ jobs: [idle, dying], ...(retention === undefined ? {} : { retention }) });
    const { id: completed } = await queue.mulligan.enqueue(idle, null);
    const { id: dead } = await queue.mulligan.enqueue(dying, null);
    const { id: cancelled } = await queue.mulligan.enqueue(idle, null, { delay: '1d' });
    await queue.mulligan.jobs.cancel(cancelled);
    await queue.clock.advance(0);
    const endedAt = queue.clock.now();
    const left: JobState[][] = [];
    for (const days of afterDays) {
      queue.clock.set(endedAt + days * DAY_MS);
      // Time for the worker to look.
      await queue.clock.advance(60_000);
      const jobs = await Promise.all([completed, dead, cancelled].map((id) => queue.mulligan.jobs.get(id)));
      left.push(jobs.flatMap((job) => job?.state ?? []));
    }
    const { states, totals } = await queue.mulligan.stats();
    expect(states.completed + states.dead + states.cancelled).toBe(left.at(-1)?.length);
    expect(totals).toMatchObject({ enqueued: 3, runs: { completed: 1, failed: 1 }, dead: { exhausted: 1 } });
    return left;
  }

  it('are deleted by a worker when their retention is over, each kind after its own; the totals stay', async () => {
    expect(await kept({ completed: '1d', dead: '3d', cancelled: '5d' }, 0.9, 1, 2.9, 3, 4.9, 5)).toEqual([
      ['completed', 'dead', 'cancelled'],
      ['dead', 'cancelled'],
      ['dead', 'cancelled'],
      ['cancelled'],
      ['cancelled'],
      [],
    ]);
  });

  it('are kept for a day, 90 days and 7 days by default', async () => {
    expect(await kept(undefined, 0.9, 1, 6.9, 7, 89.9, 90)).toEqual([
      ['completed', 'dead', 'cancelled'],
      ['dead', 'cancelled'],
      ['dead', 'cancelled'],
      ['dead'],
      ['dead'],
      [],
    ]);
  });

  it('are kept for ever when it is null', async () => {
    const all = ['completed', 'dead', 'cancelled'];
    expect(await kept({ completed: null, dead: null, cancelled: null }, 100, 10_000)).toEqual([all, all]);
  });

  it('are kept for 5 minutes at least, also when less is asked for', async () => {
    const minutes = (count: number): number => count / 24 / 60;
    const all = ['completed', 'dead', 'cancelled'];
    expect(await kept({ completed: 0, dead: 0, cancelled: 0 }, 0, minutes(3.9), minutes(5))).toEqual([all, all, []]);
  });

  it('take their ledger with them', async () => {
    await using queue = await testQueue({ jobs: [dying], retention: { dead: '1h' } });
    const { id } = await queue.mulligan.enqueue(dying, null);
    await queue.drain();
    expect(await queue.mulligan.jobs.runs(id)).toHaveLength(1);
    await queue.clock.advance(HOUR_MS + 60_000);
    expect(await queue.mulligan.jobs.runs(id)).toEqual([]);
  });

  it('are deleted in batches until none is left', async () => {
    await using queue = await testQueue({ jobs: [idle], retention: { completed: '1h' } });
    await queue.mulligan.enqueueMany(
      idle,
      Array(1_300)
        .fill(null)
        .map((input) => ({ input })),
    );
    await queue.drain();
    expect((await queue.mulligan.stats()).states.completed).toBe(1_300);
    await queue.clock.advance(HOUR_MS + 60_000);
    expect((await queue.mulligan.stats()).states.completed).toBe(0);
  });
});
