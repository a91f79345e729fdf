import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineJob, implement } from './definition.ts';
import {
  ClosedError,
  ConfigError,
  InputError,
  JobCancelledError,
  JobDeadError,
  JobNotFoundError,
  PayloadError,
  ResultMissingError,
  ResultTimeoutError,
  StoreUnavailableError,
} from './errors.ts';
import { Mulligan } from './mulligan.ts';
import type { LogEntry } from './observe/log.ts';
import { typeOf } from './result.ts';
import { Unrecoverable } from './retry/control-errors.ts';
import { MemoryStore } from './store/memory/store.ts';
import type { EndedJob, JobsListener, NewJob } from './store/store.ts';
import { testQueue } from './testing/queue.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

const once = { maxAttempts: 1 } as const;
const double = defineJob({ name: 'double', run: (n: number) => n * 2 });

async function rejection<Err = Error>(call: Promise<unknown>): Promise<Err> {
  return call.then(
    () => new Error('it was accepted') as Err,
    (error: Err) => error,
  );
}

/** A job that runs until it is let go or its signal aborts. */
function held() {
  const started = Promise.withResolvers<void>();
  const letGo = Promise.withResolvers<void>();
  const job = defineJob({
    name: 'held',
    run: (_: unknown, { signal }) =>
      new Promise<string>((resolve, reject) => {
        started.resolve();
        void letGo.promise.then(() => resolve('let go'));
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  });
  return { job, started: started.promise, letGo: letGo.resolve };
}

describe('the result of a job', () => {
  it('is what its handler returned', async () => {
    await using queue = await testQueue({ jobs: [double] });
    const enqueued = await queue.mulligan.enqueue(double, 21);
    const result = queue.mulligan.result(enqueued);
    await queue.drain();
    expect(await result).toBe(42);
    expect(await queue.mulligan.result(enqueued.id)).toBe(42);
    expect(await queue.mulligan.jobs.get(enqueued.id)).toMatchObject({ result: 42, resultError: null });
  });

  it('is undefined, and takes no space, when the handler returned nothing', async () => {
    const nothing = defineJob({ name: 'nothing', run: () => {} });
    await using queue = await testQueue({ jobs: [nothing] });
    const { id } = await queue.mulligan.enqueue(nothing, null);
    await queue.drain();
    expect(await queue.mulligan.result(id)).toBeUndefined();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ result: null, resultError: null });
  });

  it('is of the run that completed the job, after others have failed', async () => {
    const third = defineJob({
      name: 'third',
      run(_: null, { attempt }) {
        if (attempt < 3) throw new Error('not yet');
        return attempt;
      },
    });
    await using queue = await testQueue({ jobs: [third] });
    const result = queue.mulligan.result(await queue.mulligan.enqueue(third, null));
    await queue.drain();
    expect(await result).toBe(3);
  });

  it.each<[string, unknown, RegExp]>([
    ['is too large', 'x'.repeat(200), /expected at most 100 bytes of JSON, got 202/],
    ['is a function', () => {}, /expected what JSON can carry, got a function/],
    ['has a part that JSON cannot carry', { when: [Number.NaN] }, /result\.when\[0\]: expected what JSON can carry/],
  ])('that %s is missing with a reason, and the job completes', async (_, value, reason) => {
    const logged: LogEntry[] = [];
    const job = defineJob({ name: 'job', run: () => value });
    await using queue = await testQueue({ jobs: [job], maxResultBytes: 100, log: (entry) => logged.push(entry) });
    const [first, second] = [await queue.mulligan.enqueue(job, 1), await queue.mulligan.enqueue(job, 2)];
    const missing = rejection<ResultMissingError>(queue.mulligan.result(first));
    await queue.drain();
    expect(await missing).toBeInstanceOf(ResultMissingError);
    expect(await missing).toMatchObject({ code: 'RESULT_MISSING', jobId: first.id });
    expect((await missing).message).toMatch(reason);
    expect(await queue.mulligan.jobs.get(second.id)).toMatchObject({ state: 'completed', result: null });
    const warnings = logged.filter(({ level }) => level === 'warn');
    expect(warnings.map(({ name }) => name)).toEqual(['job']);
  });
});

describe('waiting for a result', () => {
  it('rejects when the job dies, with the stored error as the cause', async () => {
    const job = defineJob({
      name: 'job',
      run() {
        throw Object.assign(new Unrecoverable('no such card'), { code: 'E_CARD' });
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    const waiting = rejection<JobDeadError>(queue.mulligan.result(id));
    await queue.drain();
    const error = await waiting;
    expect(error).toBeInstanceOf(JobDeadError);
    expect(error).toMatchObject({ code: 'JOB_DEAD', jobId: id, reason: 'unrecoverable' });
    expect(error.cause).toMatchObject({ name: 'Unrecoverable', message: 'no such card', code: 'E_CARD' });
  });

  it('rejects when the job is cancelled, while it waits or runs', async () => {
    const { job, started } = held();
    await using queue = await testQueue({ jobs: [job] });
    const running = await queue.mulligan.enqueue(job, null);
    const waiting = await queue.mulligan.enqueue(job, null, { delay: '1d' });
    const errors = [running, waiting].map((one) => rejection(queue.mulligan.result(one)));
    await queue.clock.advance(1_000);
    await started;
    for (const { id } of [running, waiting]) await queue.mulligan.jobs.cancel(id);
    await queue.clock.advance(1_000);
    for (const error of errors) {
      expect(await error).toBeInstanceOf(JobCancelledError);
      expect(await error).toMatchObject({ code: 'JOB_CANCELLED' });
    }
  });

  it('rejects for a job that does not exist', async () => {
    await using queue = await testQueue({ jobs: [] });
    const error = await rejection(queue.mulligan.result('019b0000-0000-7000-8000-000000000000'));
    expect(error).toBeInstanceOf(JobNotFoundError);
    expect(error).toMatchObject({ code: 'JOB_NOT_FOUND' });
  });

  it('rejects after its timeout, and the job goes on', async () => {
    await using queue = await testQueue({ jobs: [double] });
    const enqueued = await queue.mulligan.enqueue(double, 1, { delay: '1h' });
    const error = rejection(queue.mulligan.result(enqueued, { timeout: '30s' }));
    await queue.clock.advance(31_000);
    expect(await error).toBeInstanceOf(ResultTimeoutError);
    expect(await error).toMatchObject({ code: 'RESULT_TIMEOUT' });
    await queue.drain();
    expect(await queue.mulligan.result(enqueued)).toBe(2);
  });

  it('rejects with the reason of its signal, before and while it waits', async () => {
    await using queue = await testQueue({ jobs: [double] });
    const enqueued = await queue.mulligan.enqueue(double, 1, { delay: '1h' });
    const reason = new Error('enough');
    const controller = new AbortController();
    const error = rejection(queue.mulligan.result(enqueued, { signal: controller.signal }));
    controller.abort(reason);
    expect(await error).toBe(reason);
    expect(await rejection(queue.mulligan.result(enqueued, { signal: controller.signal }))).toBe(reason);
  });

  it('rejects when the queue is closed', async () => {
    const mulligan = await Mulligan.open('memory:', { jobs: [double], log: () => {} });
    const error = rejection(mulligan.result(await mulligan.enqueue(double, 1)));
    await mulligan.close();
    expect(await error).toBeInstanceOf(ClosedError);
  });

  it.each<[string, unknown, unknown, string]>([
    ['no id', undefined, {}, 'result: id: expected a text'],
    ['a misspelt option', 'a', { timout: 5 }, 'Did you mean timeout?'],
    ['a signal that is none', 'a', { signal: {} }, 'result: signal: expected an AbortSignal'],
    ['a bad timeout', 'a', { timeout: 'soon' }, 'result: timeout: expected a duration'],
  ])('refuses %s', async (_, id, options, message) => {
    await using queue = await testQueue({ jobs: [] });
    const error = await rejection(queue.mulligan.result(id as string, options as object));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toContain(message);
  });

  it('asks the store once for all jobs of a moment, and not again before it is told something', async () => {
    const asked: number[] = [];
    class Counting extends MemoryStore {
      override ended(ids: readonly string[], watchMs: number | null): Promise<EndedJob[]> {
        asked.push(ids.length);
        return super.ended(ids, watchMs);
      }
    }
    const clock = new VirtualClock();
    await using mulligan = await Mulligan.open(new Counting({ clock }), { jobs: [double], log: () => {}, clock });
    const jobs = Array.from({ length: 3_000 }, (_, input) => ({ input }));
    const enqueued = await mulligan.enqueueMany(double, jobs);
    const results = enqueued.map((one) => mulligan.result(one));
    await clock.advance(0);
    expect(asked).toEqual([1_000, 1_000, 1_000]);
    asked.length = 0;
    mulligan.work({ concurrency: 3_000 });
    await clock.advance(50);
    expect(await Promise.all(results)).toEqual(jobs.map(({ input }) => input * 2));
    expect(asked.length).toBeLessThan(20);
  });

  it('outlasts an outage of the store', async () => {
    let isAway = true;
    class Away extends MemoryStore {
      override async ended(ids: readonly string[], watchMs: number | null): Promise<EndedJob[]> {
        if (isAway) throw new StoreUnavailableError('away');
        return super.ended(ids, watchMs);
      }
    }
    const clock = new VirtualClock();
    await using mulligan = await Mulligan.open(new Away({ clock }), { jobs: [double], log: () => {}, clock });
    const result = mulligan.result(await mulligan.enqueue(double, 2));
    mulligan.work();
    await clock.advance(20_000);
    isAway = false;
    await clock.advance(10_000);
    expect(await result).toBe(4);
  });

  it('says after its timeout that the store could not be asked', async () => {
    const away = new StoreUnavailableError('the disk is gone');
    class Away extends MemoryStore {
      override async ended(): Promise<EndedJob[]> {
        throw away;
      }
    }
    const clock = new VirtualClock();
    await using mulligan = await Mulligan.open(new Away({ clock }), { log: () => {}, clock });
    const error = mulligan.result('nope', { timeout: '1s' }).catch((reason: unknown) => reason);
    await clock.advance(1_000);
    expect(await error).toBeInstanceOf(ResultTimeoutError);
    expect(await error).toMatchObject({
      message: 'job nope has not ended within 1s, as far as is known: the store could not be asked. the disk is gone',
      cause: away,
    });
  });

  it('is there as soon as notifications are heard again that were missed meanwhile', async () => {
    const listeners: JobsListener[] = [];
    class Cut extends MemoryStore {
      override onJobs(added: JobsListener): () => void {
        listeners.push(added);
        return () => {};
      }
    }
    const clock = new VirtualClock();
    await using mulligan = await Mulligan.open(new Cut({ clock }), { jobs: [double], log: () => {}, clock });
    let isSettled = false;
    const result = mulligan.result(await mulligan.enqueue(double, 2)).finally(() => {
      isSettled = true;
    });
    await clock.advance(1_500);
    mulligan.work();
    await clock.advance(10);
    for (const listener of listeners) listener.missed?.();
    await clock.advance(10);
    expect(isSettled).toBe(true);
    expect(await result).toBe(4);
  });

  it('finds out by itself what no store has told', async () => {
    class Silent extends MemoryStore {
      override onJobs(): () => void {
        return () => {};
      }
    }
    const clock = new VirtualClock();
    await using mulligan = await Mulligan.open(new Silent({ clock }), { jobs: [double], log: () => {}, clock });
    const result = mulligan.result(await mulligan.enqueue(double, 2));
    mulligan.work();
    await clock.advance(6_000);
    expect(await result).toBe(4);
  });
});

describe('a cancel', () => {
  it('reaches a handler of the same process without a heartbeat', async () => {
    const { job, started } = held();
    await using queue = await testQueue({ jobs: [job], work: { lease: '1h' } });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(1);
    await started;
    expect(await queue.mulligan.jobs.cancel(id)).toBe('cancelling');
    await queue.clock.advance(1);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'cancelled' });
  });

  it('reaches a job whose claim is still on its way to the worker', async () => {
    const late = Promise.withResolvers<void>();
    const claimed = Promise.withResolvers<void>();
    class Slow extends MemoryStore {
      override async claim(...args: Parameters<MemoryStore['claim']>) {
        const claim = await super.claim(...args);
        if (claim.jobs.length > 0) {
          claimed.resolve();
          await late.promise;
        }
        return claim;
      }
    }
    const { job } = held();
    const clock = new VirtualClock();
    await using mulligan = await Mulligan.open(new Slow({ clock }), { jobs: [job], log: () => {}, clock });
    mulligan.work({ lease: '1h' });
    const { id } = await mulligan.enqueue(job, null);
    await clock.advance(1);
    await claimed.promise;
    await mulligan.jobs.cancel(id);
    late.resolve();
    await clock.advance(1);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'cancelled' });
  });

  it('is asked for where the store tells nothing of other processes', async () => {
    class Unpushed extends MemoryStore {
      override readonly pushes = false as unknown as true;
      override onJobs(): () => void {
        return () => {};
      }
    }
    const { job, started } = held();
    const clock = new VirtualClock();
    await using mulligan = await Mulligan.open(new Unpushed({ clock }), { jobs: [job], log: () => {}, clock });
    mulligan.work({ lease: '1h' });
    const { id } = await mulligan.enqueue(job, null);
    await clock.advance(1);
    await started;
    await mulligan.jobs.cancel(id);
    await clock.advance(1_000);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'cancelled' });
  });
});

describe('the last progress of a run', () => {
  it.each(['returns', 'throws', 'snoozes'])('is stored when the handler %s right after it', async (how) => {
    const job = defineJob({
      name: 'job',
      retry: once,
      run(_: null, { progress, snooze, run }) {
        progress({ run, done: 1 });
        progress({ run, done: 2 });
        if (how === 'throws') throw new Error('broken');
        if (how === 'snoozes' && run === 1) snooze('1h');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(1);
    expect((await queue.mulligan.jobs.get(id))?.progress).toEqual({ run: 1, done: 2 });
  });
});

describe('a handler that enqueues', () => {
  it('does so through its context, and a key keeps a second run from doing it again', async () => {
    const ran: number[] = [];
    const next = defineJob({ name: 'next', run: (n: number) => void ran.push(n) });
    const first = defineJob({
      name: 'first',
      async run(n: number, context) {
        const { enqueue, enqueueMany } = context;
        await enqueue(next, n, { key: `${context.job.id}:next`, keyUntil: 'pruned' });
        await enqueueMany(next, [{ input: n + 1, key: `${context.job.id}:second`, keyUntil: 'pruned' }]);
        if (context.attempt === 1) throw new Error('after the enqueue');
      },
    });
    await using queue = await testQueue({ jobs: [first, next] });
    await queue.mulligan.enqueue(first, 5);
    await queue.drain();
    expect(ran.sort()).toEqual([5, 6]);
  });
});

describe('enqueueMany', () => {
  class Recording extends MemoryStore {
    readonly sent: NewJob[] = [];
    override enqueue(jobs: readonly NewJob[]) {
      this.sent.push(...jobs);
      return super.enqueue(jobs);
    }
  }

  it('gives each job options of its own, and the others to those that say nothing else', async () => {
    const store = new Recording();
    await using mulligan = await Mulligan.open(store, { log: () => {} });
    const jobs = [
      { input: 1 },
      { input: 2, key: 'a', priority: 1 },
      { input: 3, key: 'b', delay: '1m' },
      { input: 4, at: new Date(0) },
      { input: { input: 5 }, key: 'a' },
    ] as const;
    const answers = await mulligan.enqueueMany('job', jobs, { priority: 7, delay: '1h' });
    const facts = store.sent
      .map(({ payload, priority, delayMs, dueAt, key }) => [payload, priority, delayMs, dueAt, key])
      .sort();
    expect(facts).toEqual([
      ['1', 7, 3_600_000, null, null],
      ['2', 1, 3_600_000, null, 'a'],
      ['3', 7, 60_000, null, 'b'],
      ['4', 7, 0, 0, null],
      ['{"input":5}', 7, 3_600_000, null, 'a'],
    ]);
    expect(answers.map(({ existed }) => existed)).toEqual([false, false, false, false, true]);
    expect(answers[4]?.id).toBe(answers[1]?.id);
  });

  it('stores jobs of many keys in few writes', async () => {
    let calls = 0;
    class Counting extends MemoryStore {
      override enqueue(jobs: readonly NewJob[]) {
        calls++;
        return super.enqueue(jobs);
      }
    }
    await using mulligan = await Mulligan.open(new Counting(), { log: () => {} });
    const jobs = Array.from({ length: 900 }, (_, n) => ({ input: n, key: `k${n}` }));
    const answers = await mulligan.enqueueMany('job', jobs);
    expect(new Set(answers.map(({ id }) => id)).size).toBe(900);
    expect(calls).toBeLessThan(5);
  });

  it('says which of the jobs is wrong, and stores none', async () => {
    const store = new Recording();
    const mail = defineJob({ name: 'mail', input: z.object({ to: z.string() }), run: () => {} });
    await using mulligan = await Mulligan.open(store, { log: () => {}, jobs: [mail] });
    const wrong = async (last: unknown): Promise<Error> =>
      rejection(mulligan.enqueueMany(mail, [{ input: { to: 'a' } }, { input: { to: 'b' } }, last as never]));
    const cases: [unknown, new (...args: never[]) => Error, string][] = [
      [{ input: { to: 5 } }, InputError, 'enqueueMany: jobs[2]: mail: expected an input its schema accepts'],
      [{ input: { to: 5n } }, PayloadError, 'enqueueMany: jobs[2].input.to: expected what JSON can carry'],
      [
        { input: { to: 'c' }, dely: 5 },
        ConfigError,
        'enqueueMany: jobs[2]: there is no option "dely". Did you mean delay?',
      ],
      [{ input: { to: 'c' }, priority: 10 }, ConfigError, 'enqueueMany: jobs[2]: priority: expected a whole number'],
      [{ input: { to: 'c' }, tx: {} }, ConfigError, 'enqueueMany: jobs[2]: there is no option "tx"'],
      [
        { to: 'c' },
        ConfigError,
        'enqueueMany: jobs[2]: expected an object { input, ...options }, got an object with the key to. Put each input under `input`',
      ],
      ['c', ConfigError, 'enqueueMany: jobs[2]: expected an object { input, ...options }, got "c"'],
    ];
    for (const [last, kind, message] of cases) {
      const error = await wrong(last);
      expect(error).toBeInstanceOf(kind);
      expect(error.message).toContain(message);
    }
    expect(store.sent).toEqual([]);
  });
});

describe('debounce', () => {
  it('runs the job once, with the last input, after the last enqueue', async () => {
    const ran: [number, number][] = [];
    const clock = new VirtualClock();
    const startedAt = clock.now();
    const save = defineJob({ name: 'save', run: (n: number) => void ran.push([n, clock.now() - startedAt]) });
    await using mulligan = await Mulligan.open(new MemoryStore({ clock }), { jobs: [save], log: () => {}, clock });
    mulligan.work();
    const ids = new Set<string>();
    for (let n = 1; n <= 5; n++) {
      ids.add((await mulligan.enqueue(save, n, { key: 'doc', debounce: '5s' })).id);
      await clock.advance(2_000);
    }
    await clock.advance(60_000);
    expect(ran.map(([n]) => n)).toEqual([5]);
    expect(ran[0]?.[1]).toBeGreaterThanOrEqual(13_000);
    expect(ids.size).toBe(1);
  });

  it('lets the last input win over one that waits for its retry', async () => {
    const saved: string[] = [];
    const save = defineJob({
      name: 'save',
      run(text: string, { attempt }) {
        if (text === 'old' && attempt === 1) throw new Error('once');
        saved.push(text);
      },
    });
    await using queue = await testQueue({ jobs: [save] });
    const options = { key: 'doc', debounce: '100ms' } as const;
    const old = await queue.mulligan.enqueue(save, 'old', options);
    await queue.clock.advance(200);
    expect(await queue.mulligan.enqueue(save, 'new', options)).toMatchObject({ existed: false });
    expect(await queue.mulligan.enqueue(save, 'newest', options)).toMatchObject({ existed: true, replaced: true });
    await queue.drain();
    expect(saved).toEqual(['newest']);
    await expect(queue.mulligan.result(old)).rejects.toBeInstanceOf(JobCancelledError);
  });

  it('waits no longer than maxWait', async () => {
    const ran: number[] = [];
    const save = defineJob({ name: 'save', run: (n: number) => void ran.push(n) });
    await using queue = await testQueue({ jobs: [save] });
    for (let n = 1; n <= 6; n++) {
      await queue.mulligan.enqueue(save, n, { key: 'doc', debounce: { wait: '5s', maxWait: '10s' } });
      await queue.clock.advance(3_000);
    }
    await queue.drain();
    expect(ran).toEqual([4, 6]);
  });

  it.each<[string, object, string]>([
    ['no key', { debounce: '5s' }, 'expected a key with debounce, got none'],
    ['a delay beside it', { key: 'k', debounce: '5s', delay: '1s' }, 'expected debounce without delay or at'],
    [
      'another life of the key',
      { key: 'k', debounce: '5s', keyUntil: 'pruned' },
      "expected keyUntil 'started' with debounce",
    ],
    ['no time', { key: 'k', debounce: 0 }, 'enqueue: debounce: expected a duration above 0'],
    [
      'a bound below the time',
      { key: 'k', debounce: { wait: '5s', maxWait: '1s' } },
      'debounce: maxWait: expected at least',
    ],
    ['a misspelt bound', { key: 'k', debounce: { wait: '5s', maxwait: '1s' } }, 'Did you mean maxWait?'],
  ])('refuses %s', async (_, options, message) => {
    await using queue = await testQueue({ jobs: [double] });
    const error = await rejection(queue.mulligan.enqueue(double, 1, options));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toContain(message);
  });
});

describe('a definition without a handler', () => {
  const shared = defineJob({ name: 'split', input: z.object({ n: z.number() }), output: typeOf<{ half: number }>() });

  it('can be enqueued, and worked on by a process that implements it', async () => {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    await using producer = await Mulligan.open(store, { jobs: [shared], log: () => {}, clock });
    const silent = { onDead: undefined, timeout: undefined } as object;
    const onDead = (): void => {};
    expect(implement(defineJob({ name: 'a', onDead, timeout: '5s' }), () => {}, silent)).toMatchObject({
      onDead,
      timeoutMs: 5_000,
    });
    const worker = implement(shared, ({ n }) => ({ half: n / 2 }), { timeout: '5s' });
    await using consumer = await Mulligan.open(store, { jobs: [worker], log: () => {}, clock });
    expect(worker).toMatchObject({ name: 'split', timeoutMs: 5_000 });
    const enqueued = await producer.enqueue(shared, { n: 4 });
    expect(await rejection(producer.enqueue(shared, { n: 'x' } as never))).toBeInstanceOf(InputError);
    const result = producer.result(enqueued);
    consumer.work();
    await clock.advance(100);
    expect((await result).half).toBe(2);
  });

  it('is nothing that a worker can work on', async () => {
    await using mulligan = await Mulligan.open('memory:', { jobs: [shared], log: () => {} });
    expect(() => mulligan.work()).toThrow(
      'work: expected a job with a handler, got none: "split" is defined without `run`. Use implement(job, run)',
    );
  });

  it.each<[string, () => unknown, string]>([
    [
      'something else than a definition',
      () => implement({} as never, () => ({})),
      'implement: expected a definition made by defineJob',
    ],
    [
      'a migrate for a definition without a version',
      () => implement(shared, () => ({ half: 1 }), { migrate: () => ({ n: 1 }) }),
      'job split: expected a version of at least 2 with migrate, got none.',
    ],
    ['a handler that is none', () => implement(shared, 5 as never), 'job split: implement: expected a function, got 5'],
    [
      'a definition that has a handler',
      () => implement(double, (n) => n),
      'job double: implement: expected a definition without run',
    ],
    [
      'a misspelt option',
      () => implement(shared, () => ({ half: 1 }), { onDed() {} } as object),
      'Did you mean onDead?',
    ],
    [
      'a hook that is none',
      () => implement(shared, () => ({ half: 1 }), { onDead: 5 } as object),
      'job split: onDead: expected a function',
    ],
  ])('refuses to implement %s', (_, call, message) => {
    expect(call).toThrow(message);
  });
});
