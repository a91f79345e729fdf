import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { systemClock } from './clock.ts';
import { defineJob, type JobOptions } from './definition.ts';
import type { EnqueueOptions } from './enqueue-options.ts';
import { ConfigError, InputError, PayloadError, StoreIncompatibleError, StoreUnavailableError } from './errors.ts';
import { Mulligan, type MulliganOptions } from './mulligan.ts';
import { MemoryStore } from './store/memory/store.ts';
import { openStore } from './store/open.ts';
import type { Enqueued, NewJob, Store, TransactionClient } from './store/store.ts';
import { testQueue } from './testing/queue.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

const job = defineJob<unknown>({ name: 'job', run: () => {} });

interface Outage {
  error: Error | null;
  afterMs: number;
  ofKeys: Promise<void> | null;
}

/** A queue without a worker, and every batch of jobs its store was sent. */
async function producer(options: MulliganOptions = {}) {
  const clock = new VirtualClock();
  const memory = new MemoryStore({ clock });
  const sent: (readonly NewJob[])[] = [];
  const outage: Outage = { error: null, afterMs: 0, ofKeys: null };
  const store = new Proxy<Store>(memory, {
    get(target, verb: keyof Store) {
      if (verb !== 'enqueue') return typeof target[verb] === 'function' ? target[verb].bind(target) : target[verb];
      return async (jobs: readonly NewJob[]) => {
        sent.push(jobs);
        const { error, afterMs } = outage;
        if (error && afterMs > 0) await new Promise<void>((resolve) => clock.after(afterMs, resolve));
        if (error) throw error;
        if (jobs.some(({ key }) => key !== null)) await outage.ofKeys;
        return target.enqueue(jobs);
      };
    },
  });
  const mulligan = await Mulligan.open(store, { clock, log: () => {}, ...options });
  return {
    mulligan,
    clock,
    sent,
    outage,
    [Symbol.asyncDispose]: () => mulligan.close(),
  };
}

/** A queue that takes large payloads, and how many bytes of them each call to its store carried. */
async function largeProducer(kind: 'memory' | 'sqlite') {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
  const store = await openStore(kind === 'memory' ? 'memory:' : `sqlite:${join(folder, 'jobs.db')}`, systemClock);
  const bytesPerCall: number[] = [];
  const counted = new Proxy<Store>(store, {
    get(target, verb: keyof Store) {
      if (verb !== 'enqueue') return typeof target[verb] === 'function' ? target[verb].bind(target) : target[verb];
      return (jobs: readonly NewJob[]) => {
        bytesPerCall.push(jobs.reduce((sum, { payload }) => sum + Buffer.byteLength(payload), 0));
        return target.enqueue(jobs);
      };
    },
  });
  const mulligan = await Mulligan.open(counted, { log: () => {}, maxPayloadBytes: 16 * 1_048_576 });
  return {
    mulligan,
    bytesPerCall,
    async [Symbol.asyncDispose]() {
      await mulligan.close();
      rmSync(folder, { recursive: true });
    },
  };
}

async function rejection(call: Promise<unknown>): Promise<Error & { issues?: unknown }> {
  return call.then(
    () => new Error('it was accepted'),
    (error: Error) => error,
  );
}

describe('the options of an enqueue', () => {
  it.each<[string, unknown, string]>([
    ['null', null, 'enqueue: expected an object with options, got null.'],
    ['a list', [], 'enqueue: expected an object with options, got an empty array.'],
    ['a misspelt option', { priorty: 1 }, 'enqueue: there is no option "priorty". Did you mean priority?'],
    [
      'an option of a definition',
      { timeout: '5s' },
      'enqueue: there is no option "timeout". Valid options: delay, at,',
    ],
    ['delay and at together', { delay: '1s', at: new Date() }, 'enqueue: expected delay or at, got both.'],
    ['a negative delay', { delay: -1 }, 'enqueue: delay: expected a duration'],
    ['a delay without a unit', { delay: '5' }, 'got "5". Add a unit, such as 5s or 5ms.'],
    [
      'a delay of more than a year',
      { delay: '366d' },
      'enqueue: delay: expected a duration of at most 365d, got "366d". Give a Date as `at` for a later time.',
    ],
    [
      'a delay no store could add to the time',
      { delay: Number.MAX_SAFE_INTEGER },
      'enqueue: delay: expected a duration of at most 365d',
    ],
    ['an invalid Date', { at: new Date(Number.NaN) }, 'enqueue: at: expected a valid Date, got an invalid Date.'],
    ['a date as text', { at: '2026-01-01' }, 'enqueue: at: expected a valid Date, got "2026-01-01".'],
    ['a priority beyond 9', { priority: 10 }, 'enqueue: priority: expected a whole number from 0 to 9, got 10.'],
    ['a priority in between', { priority: 1.5 }, 'enqueue: priority: expected a whole number from 0 to 9, got 1.5.'],
    ['an empty queue', { queue: '' }, 'enqueue: queue: expected a text of 1 to 200 characters'],
    ['an empty key', { key: '' }, 'enqueue: key: expected a text of 1 to 200 characters'],
    [
      'a blank tag',
      { tags: [' '] },
      'enqueue: tags[0]: expected a text of 1 to 100 characters, none of them control characters, got " ". It is blank.',
    ],
    [
      'half a character as a tag',
      { tags: ['a', '\ud800'] },
      'enqueue: tags[1]: expected a text of 1 to 100 characters, none of them control characters, got "\\ud800". It has half of a surrogate pair in it.',
    ],
    [
      'a long tag',
      { tags: ['x'.repeat(101)] },
      'enqueue: tags[0]: expected a text of 1 to 100 characters, none of them',
    ],
    ['a key that is no text', { key: 42 }, 'enqueue: key: expected a text of 1 to 200 characters'],
    [
      'a misspelt keyUntil',
      { keyUntil: 'finish' },
      'enqueue: keyUntil: expected one of started, finished, pruned, got "finish". Did you mean finished?',
    ],
    [
      'a policy of 0 attempts',
      { retry: { maxAttempts: 0 } },
      'enqueue: retry.maxAttempts: expected a whole number of at least 1, got 0.',
    ],
    [
      'a misspelt policy',
      { retry: { maxAttempt: 2 } },
      'enqueue: retry: there is no option "maxAttempt". Did you mean maxAttempts?',
    ],
    ['no policy at all', { retry: 3 }, 'enqueue: retry: expected an object with options, got 3.'],
  ])('refuse %s before anything is stored, alone and for many', async (_, options, message) => {
    await using queue = await producer({ jobs: [job] });
    for (const call of [
      queue.mulligan.enqueue(job, 1, options as EnqueueOptions),
      queue.mulligan.enqueueMany(job, [{ input: 1 }, { input: 2 }], options as EnqueueOptions),
      queue.mulligan.enqueueMany(job, [], options as EnqueueOptions),
    ]) {
      const error = await rejection(call);
      expect(error).toBeInstanceOf(ConfigError);
      // The call that was made comes first: enqueue or enqueueMany.
      expect(error.message).toContain(message.slice('enqueue'.length));
    }
    expect(queue.sent).toEqual([]);
  });

  it('refuse a keyUntil without a key', async () => {
    await using queue = await producer();
    const error = await rejection(queue.mulligan.enqueue(job, 1, { keyUntil: 'pruned' }));
    expect(error.message).toBe('enqueue: expected a key with keyUntil, got none. Give a key, or leave keyUntil out.');
  });

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'enqueue: expected a definition made by defineJob, or a job name, got undefined.'],
    [
      'options that never went through defineJob',
      { name: 'a', run() {} },
      'enqueue: expected a definition made by defineJob, or a job name, got an object with the keys name, run.',
    ],
    ['an empty name', '', 'enqueue: job name: expected a text of 1 to 200 characters'],
  ])('refuse %s as a job', async (_, target, message) => {
    await using queue = await producer();
    expect((await rejection(queue.mulligan.enqueue(target as string, 1))).message).toContain(message);
    expect((await rejection(queue.mulligan.enqueueMany(target as string, [{ input: 1 }]))).message).toContain(message);
  });

  it('refuse to take many inputs from anything but a list', async () => {
    await using queue = await producer();
    const error = await rejection(queue.mulligan.enqueueMany(job, new Set([1]) as never));
    expect(error.message).toBe('enqueueMany: expected a list of { input, ...options }, got an object of class Set.');
  });
});

describe('a job is due', () => {
  const at = (ms: number): Date => new Date(ms);

  it('at once by default', async () => {
    await using queue = await producer();
    const { id } = await queue.mulligan.enqueue(job, 1);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'ready', dueAt: queue.clock.now() });
  });

  it('after its delay, in store time', async () => {
    await using queue = await producer();
    const { id } = await queue.mulligan.enqueue(job, 1, { delay: '5m' });
    const dueAt = queue.clock.now() + 300_000;
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'scheduled', dueAt });
    await queue.clock.advance(300_000);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'ready', dueAt });
  });

  it('at the time it was given, and at once when that has passed', async () => {
    await using queue = await producer();
    const now = queue.clock.now();
    const later = await queue.mulligan.enqueue(job, 1, { at: at(now + 1_000) });
    const earlier = await queue.mulligan.enqueue(job, 1, { at: at(now - 1_000) });
    expect(await queue.mulligan.jobs.get(later.id)).toMatchObject({ state: 'scheduled', dueAt: now + 1_000 });
    expect(await queue.mulligan.jobs.get(earlier.id)).toMatchObject({ state: 'ready', dueAt: now - 1_000 });
  });

  it('at the epoch when it is given a time long before it', async () => {
    await using queue = await producer();
    for (const remote of [at(-1), new Date('1400-01-01'), at(-8.64e15)]) {
      const { id } = await queue.mulligan.enqueue(job, 1, { at: remote });
      expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'ready', dueAt: 0 });
    }
  });

  it('as late as a Date can say', async () => {
    await using queue = await producer();
    const { id } = await queue.mulligan.enqueue(job, 1, { at: at(8.64e15) });
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'scheduled', dueAt: 8.64e15 });
  });

  it('at a Date of another realm, as test runners make them', async () => {
    await using queue = await producer();
    const foreign = runInNewContext(`new Date(${queue.clock.now() + 1_000})`) as Date;
    const { id } = await queue.mulligan.enqueue(job, 1, { at: foreign });
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'scheduled' });
  });
});

describe('the resource of a job', () => {
  const define = (resource?: JobOptions<unknown>['resource']) =>
    defineJob<unknown>({ name: 'mail', queue: 'mail', run: () => {}, ...(resource === undefined ? {} : { resource }) });
  const queues = { mail: { resource: 'smtp' } };

  it.each<[string, JobOptions<unknown>['resource'], string | null]>([
    ["is the queue's when the definition names none", undefined, 'smtp'],
    ["is the definition's where both name one", 'ses', 'ses'],
    ['is none when the definition says false', false, null],
    ['is none when the function of the definition returns null', () => null, null],
    ['is what the function of the definition returns', () => ['relay', 'eu'], 'relay/eu'],
  ])('%s', async (_, resource, expected) => {
    await using queue = await producer({ queues });
    await queue.mulligan.enqueue(define(resource), 1);
    expect(queue.sent[0]?.[0]?.resource).toBe(expected);
  });

  it('is that of the queue the job is enqueued to, also for a job that is enqueued by its name', async () => {
    await using queue = await producer({ queues });
    await queue.mulligan.enqueue(define(), 1, { queue: 'elsewhere' });
    await queue.mulligan.enqueue('of another service', 1, { queue: 'mail' });
    expect(queue.sent.flat().map(({ resource }) => resource)).toEqual([null, 'smtp']);
  });

  it('is chosen by what the schema makes of the input', async () => {
    const hook = defineJob({
      name: 'hook',
      input: z.object({ url: z.string().transform((url) => new URL(url)) }),
      resource: ({ url }) => url.host,
      run: () => {},
    });
    await using queue = await producer();
    await queue.mulligan.enqueueMany(hook, [
      { input: { url: 'https://a.example/x' } },
      { input: { url: 'https://b.example/y' } },
    ]);
    expect(queue.sent.flat().map(({ resource }) => resource)).toEqual(['hook/a.example', 'hook/b.example']);
  });

  it('is chosen by the input as JSON carries it, and the function cannot change what is stored', async () => {
    const seen: unknown[] = [];
    const job = define((input) => {
      seen.push(structuredClone(input));
      (input as { at: string }).at = 'changed';
      return 'key';
    });
    await using queue = await producer();
    await queue.mulligan.enqueue(job, { at: new Date(0) });
    expect(seen).toEqual([{ at: '1970-01-01T00:00:00.000Z' }]);
    expect(queue.sent[0]?.[0]?.payload).toBe('{"at":"1970-01-01T00:00:00.000Z"}');
  });

  it('stores none of many jobs when the function fails for one of them', async () => {
    const job = define((input) => (input === 3 ? '' : 'key'));
    await using queue = await producer();
    await expect(queue.mulligan.enqueueMany(job, [{ input: 1 }, { input: 2 }, { input: 3 }])).rejects.toThrow(
      new ConfigError('mail: resource: key: expected a text that is not empty, got "". Return null for no resource.'),
    );
    expect(queue.sent).toEqual([]);
  });
});

describe('where a job goes', () => {
  const mail = defineJob<unknown>({
    name: 'mail',
    queue: 'mail',
    retryQueue: 'mail.retry',
    resource: 'smtp',
    priority: 2,
    run: () => {},
  });

  it('is taken from its definition', async () => {
    await using queue = await producer();
    await queue.mulligan.enqueue(mail, 1);
    expect(queue.sent[0]).toMatchObject([
      { name: 'mail', queue: 'mail', retryQueue: 'mail.retry', resource: 'smtp', priority: 2 },
    ]);
  });

  it('is taken from the options of the enqueue where they are given', async () => {
    await using queue = await producer();
    await queue.mulligan.enqueue(mail, 1, { queue: 'urgent', priority: 0 });
    expect(queue.sent[0]).toMatchObject([{ queue: 'urgent', retryQueue: 'mail.retry', resource: 'smtp', priority: 0 }]);
  });

  it('is known by name alone, when the definition is; an unknown name goes to the default queue', async () => {
    await using queue = await producer({ jobs: [mail] });
    await queue.mulligan.enqueue('mail', 1);
    await queue.mulligan.enqueue('of another service', 1);
    expect(queue.sent[0]).toMatchObject([{ name: 'mail', queue: 'mail', priority: 2 }]);
    expect(queue.sent[1]).toMatchObject([
      { name: 'of another service', queue: 'default', priority: 5, resource: null },
    ]);
  });
});

describe('a key', () => {
  it('lets one job live at a time: a second enqueue answers with the first', async () => {
    await using queue = await testQueue({ jobs: [job] });
    const heard: unknown[] = [];
    queue.mulligan.on('enqueued', ({ id, existed }) => heard.push({ id, existed }));
    const { id } = await queue.mulligan.enqueue(job, 1, { key: 'k', delay: '1h' });
    expect(await queue.mulligan.enqueue(job, 2, { key: 'k' })).toEqual({ id, existed: true });
    expect(heard).toEqual([
      { id, existed: false },
      { id, existed: true },
    ]);
    expect((await queue.mulligan.jobs.get(id))?.payload).toBe(1);
    await queue.drain();
    expect(await queue.mulligan.enqueue(job, 3, { key: 'k' })).toMatchObject({ existed: false });
  });

  it('meets itself within one tick, and within one list', async () => {
    await using queue = await producer();
    const many = await Promise.all(Array.from({ length: 5 }, () => queue.mulligan.enqueue(job, 1, { key: 'k' })));
    expect(new Set(many.map(({ id }) => id)).size).toBe(1);
    expect(many.map(({ existed }) => existed)).toEqual([false, true, true, true, true]);
    const list = await queue.mulligan.enqueueMany(job, [{ input: 1 }, { input: 2 }], { key: 'other' });
    expect(list.map(({ existed }) => existed)).toEqual([false, true]);
  });

  it.each([
    ['started', [false, false, false]],
    ['finished', [true, false, false]],
    ['pruned', [true, true, false]],
  ] as const)('held until %s is free again from then on', async (keyUntil, freeWhen) => {
    const started = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const slow = defineJob<number>({
      name: 'slow',
      async run(n) {
        if (n !== 0) return;
        started.resolve();
        await release.promise;
      },
    });
    await using queue = await testQueue({ jobs: [slow], retention: { completed: '1h' } });
    const options = { key: 'k', keyUntil };
    const again = async (n: number) => (await queue.mulligan.enqueue(slow, n, options)).existed;
    await queue.mulligan.enqueue(slow, 0, { ...options, delay: '1s' });
    expect(await again(9)).toBe(true);
    await queue.clock.advance(1_000);
    await started.promise;
    const whileRunning = await again(1);
    release.resolve();
    await queue.drain();
    const afterwards = await again(2);
    await queue.drain();
    await queue.clock.advance(2 * 3_600_000);
    expect([whileRunning, afterwards, await again(3)]).toEqual(freeWhen);
  });
});

describe('the policy of a job', () => {
  const fixed = (base: number) => ({ kind: 'fixed', base }) as const;
  const queues = { default: { retry: { maxAttempts: 7, backoff: fixed(7), jitter: 'none', maxCrashes: 7 } } } as const;
  const defined = defineJob<unknown>({ name: 'defined', retry: { maxAttempts: 5, backoff: fixed(5) }, run: () => {} });

  it('is, field by field, its own, else the definition’s, else the queue’s, else the default', async () => {
    await using queue = await producer({ queues });
    await queue.mulligan.enqueue(defined, 1, { retry: { maxAttempts: 3 } });
    expect(queue.sent[0]?.[0]?.policy).toEqual({
      maxAttempts: 3,
      backoff: { kind: 'fixed', baseMs: 5 },
      jitter: 'none',
      deadlineMs: null,
      maxCrashes: 7,
      maxRuns: 10_000,
    });
  });

  it('takes the defaults of the queue it is sent to, not of the one it is defined for', async () => {
    await using queue = await producer({ queues });
    const elsewhere = await queue.mulligan.enqueue(job, 1, { queue: 'elsewhere' });
    const here = await queue.mulligan.enqueue(job, 1);
    const byName = await queue.mulligan.enqueue('unheard of', 1);
    const caps = await Promise.all(
      [elsewhere, here, byName].map(async ({ id }) => (await queue.mulligan.jobs.get(id))?.policy.maxAttempts),
    );
    expect(caps).toEqual([4, 7, 7]);
  });

  it('is resolved once for all jobs of a definition and queue', async () => {
    await using queue = await producer({ queues });
    await queue.mulligan.enqueueMany(defined, [{ input: 1 }, { input: 2 }]);
    await queue.mulligan.enqueue(defined, 3);
    const policies = queue.sent.flat().map(({ policy }) => policy);
    expect(policies).toHaveLength(3);
    expect(new Set(policies).size).toBe(1);
  });

  it('is capped by the hard cap, and the result reports it', async () => {
    await using queue = await producer({ hardCap: 5, queues });
    const capped = { asked: 9, hardCap: 5 };
    expect(await queue.mulligan.enqueue(job, 1, { retry: { maxAttempts: 9 } })).toMatchObject({ capped });
    expect(
      await queue.mulligan.enqueueMany(job, [{ input: 1 }, { input: 2 }], { retry: { maxRetries: 8 } }),
    ).toMatchObject([{ capped }, { capped }]);
    expect(await queue.mulligan.enqueue(job, 1)).toMatchObject({ capped: { asked: 7, hardCap: 5 } });
    expect(await queue.mulligan.enqueue(defined, 1)).not.toHaveProperty('capped');
    expect(queue.sent.flat().map(({ policy }) => policy.maxAttempts)).toEqual([5, 5, 5, 5, 5]);
  });
});

describe('an input', () => {
  const address = [
    ['zod', z.object({ to: z.email(), tries: z.number().optional() })],
    [
      'zod, asynchronously',
      z.object({ to: z.email() }).refine(async ({ to }) => to !== 'nobody@example.com', 'is nobody'),
    ],
    ['valibot', v.object({ to: v.pipe(v.string(), v.email()) })],
    [
      'valibot, asynchronously',
      v.pipeAsync(
        v.object({ to: v.pipe(v.string(), v.email()) }),
        v.checkAsync(async ({ to }) => to !== 'nobody@example.com', 'is nobody'),
      ),
    ],
  ] as const;

  it.each(address)('that its schema refuses (%s) is refused with the schema’s own issues', async (_, input) => {
    const mail = defineJob({ name: 'mail', input: input as (typeof address)[0][1], run: () => {} });
    await using queue = await producer();
    const error = await rejection(queue.mulligan.enqueue(mail, { to: 'nowhere' }));
    expect(error).toBeInstanceOf(InputError);
    expect(error).toMatchObject({ code: 'INPUT', issues: [{ path: 'to', message: expect.stringMatching(/email/i) }] });
    expect(error.message).toMatch(/^mail: expected an input its schema accepts, but to: /);
    expect(queue.sent).toEqual([]);
    expect(await queue.mulligan.enqueue(mail, { to: 'a@example.com' })).toMatchObject({ existed: false });
  });

  it.each(address.filter(([name]) => name.includes('async')))('is waited for (%s)', async (_, input) => {
    const mail = defineJob({ name: 'mail', input: input as (typeof address)[0][1], run: () => {} });
    await using queue = await producer();
    const error = await rejection(queue.mulligan.enqueue(mail, { to: 'nobody@example.com' }));
    expect(error).toMatchObject({ code: 'INPUT', issues: [{ path: '', message: 'is nobody' }] });
    expect(error.message).toBe('mail: expected an input its schema accepts, but is nobody');
  });

  it('is checked by name too, when the definition is known', async () => {
    const mail = defineJob({ name: 'mail', input: z.object({ to: z.string() }), run: () => {} });
    await using queue = await producer({ jobs: [mail] });
    expect(await rejection(queue.mulligan.enqueue('mail', { to: 1 }))).toBeInstanceOf(InputError);
  });

  it('is checked as the worker will see it: after its trip through JSON', async () => {
    const onDate: z.ZodType<{ on: unknown }, { on: unknown }> = z.object({ on: z.date() });
    const dated = defineJob({ name: 'dated', input: onDate, run: () => {} });
    const texted = defineJob({ name: 'texted', input: z.object({ on: z.string() }), run: () => {} });
    await using queue = await producer();
    const on = new Date(0);
    expect(await rejection(queue.mulligan.enqueue(dated, { on }))).toBeInstanceOf(InputError);
    await queue.mulligan.enqueue(texted, { on: on as unknown as string });
    expect(queue.sent.flat().map(({ payload }) => payload)).toEqual(['{"on":"1970-01-01T00:00:00.000Z"}']);
  });

  it('that JSON cannot carry is refused before its schema is asked', async () => {
    const any = defineJob({ name: 'any', input: z.any(), run: () => {} });
    await using queue = await producer({ maxPayloadBytes: 10 });
    expect(await rejection(queue.mulligan.enqueue(any, { total: 1n }))).toMatchObject({
      code: 'PAYLOAD',
      message: expect.stringMatching(/^any: input\.total: /),
    });
    expect(await rejection(queue.mulligan.enqueue(any, 'x'.repeat(9)))).toBeInstanceOf(PayloadError);
  });

  it('is stored as it was given; what the schema makes of it is made at each run', async () => {
    const seen: unknown[] = [];
    const counted = defineJob({
      name: 'counted',
      input: z.object({ n: z.string().transform(Number), by: z.number().default(2) }),
      retry: { backoff: { kind: 'fixed', base: 0 }, jitter: 'none' },
      run(input, { attempt }) {
        seen.push(input);
        if (attempt === 1) throw new Error('once more');
      },
    });
    await using queue = await testQueue({ jobs: [counted] });
    const { id } = await queue.mulligan.enqueue(counted, { n: '41' });
    await queue.drain();
    expect(seen).toEqual([
      { n: 41, by: 2 },
      { n: 41, by: 2 },
    ]);
    expect((await queue.mulligan.jobs.get(id))?.payload).toEqual({ n: '41' });
  });

  it.each([
    ['zod', z.object({ to: z.string(), count: z.number() })],
    ['valibot', v.objectAsync({ to: v.string(), count: v.number() })],
  ] as const)(
    'that the schema (%s) no longer takes is handed back, with the issues on the ledger, and kills its job after an hour',
    async (_, input) => {
      let runs = 0;
      const newer = defineJob({
        name: 'mail',
        input: input as z.ZodType<{ to: string; count: number }>,
        run: () => void runs++,
      });
      await using queue = await testQueue({ jobs: [newer] });
      const older = defineJob<{ to: string; count: string }>({ name: 'mail', run: () => {} });
      const { id } = await queue.mulligan.enqueue(older, { to: 'a', count: 'one' });
      const issues = [{ path: 'count', message: expect.any(String) }];
      const error = { name: 'InputError', code: 'INPUT', issues };
      await queue.clock.advance(55 * 60_000);
      expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'ready', attempts: 0, lastError: error });
      await queue.drain();
      expect(runs).toBe(0);
      expect(await queue.mulligan.jobs.get(id)).toMatchObject({
        state: 'dead',
        deadReason: 'unrecoverable',
        attempts: 0,
        lastError: error,
      });
      const ledger = await queue.mulligan.jobs.runs(id);
      expect(ledger[0]).toMatchObject({ outcome: 'released', error, decision: { kind: 'release', delayMs: 0 } });
      expect(ledger.at(-1)).toMatchObject({ outcome: 'released', error, decision: { kind: 'dead' } });
      // The pause between two tries grows.
      expect(ledger.length).toBeLessThan(25);
    },
  );

  it('whose schema throws is refused as a mistake in the definition, with what was thrown as its cause', async () => {
    const broken = defineJob({
      name: 'broken',
      input: z.string().refine(() => {
        throw new RangeError('not a schema');
      }),
      run: () => {},
    });
    await using queue = await producer();
    const error = await rejection(queue.mulligan.enqueue(broken, 'x'));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toBe('broken: expected its schema to answer, but it threw RangeError: not a schema');
    expect(error.cause).toBeInstanceOf(RangeError);
    expect(queue.sent).toEqual([]);
  });
});

describe('many inputs', () => {
  it('are all checked before the first is stored', async () => {
    const numbers = defineJob({ name: 'numbers', input: z.number(), run: () => {} });
    await using queue = await producer();
    const error = await rejection(
      queue.mulligan.enqueueMany(numbers, [
        { input: 1 },
        { input: 2 },
        { input: 'three' as unknown as number },
        { input: 4 },
      ]),
    );
    expect(error).toBeInstanceOf(InputError);
    expect(await rejection(queue.mulligan.enqueueMany(job, [{ input: 1 }, { input: 2n }]))).toBeInstanceOf(
      PayloadError,
    );
    expect(queue.sent).toEqual([]);
  });

  it('are answered in the order they were given', async () => {
    await using queue = await producer();
    const answers = await queue.mulligan.enqueueMany(job, [{ input: 'a' }, { input: 'b' }, { input: 'c' }]);
    const jobs = await Promise.all(answers.map(({ id }) => queue.mulligan.jobs.get(id)));
    expect(jobs.map((one) => one?.payload)).toEqual(['a', 'b', 'c']);
    expect(answers.map(({ id }) => id)).toEqual(answers.map(({ id }) => id).toSorted());
  });

  it('may share a debounce, and have keys of their own', async () => {
    await using queue = await producer();
    const [a, b] = [
      { input: 1, key: 'a' },
      { input: 2, key: 'b' },
    ];
    await queue.mulligan.enqueueMany(job, [a, b], { debounce: '1s' });
    expect(queue.sent.flat().map(({ key, delayMs, keyLife }) => [key, delayMs, keyLife])).toEqual([
      ['a', 1_000, 'started'],
      ['b', 1_000, 'started'],
    ]);
    const error = await rejection(queue.mulligan.enqueueMany(job, [a, { input: 2 }], { debounce: '1s' }));
    expect(error.message).toMatch(/^enqueueMany: jobs\[1\]: expected a key with debounce, got none\./);
    const other = await rejection(
      queue.mulligan.enqueueMany(job, [{ input: 2, priority: 1 }], { keyUntil: 'started' }),
    );
    expect(other.message).toMatch(/^enqueueMany: jobs\[0\]: expected a key with keyUntil, got none\./);
  });

  it('share what a job leaves undefined', async () => {
    await using queue = await producer();
    const silent = { delay: undefined, key: undefined, queue: undefined, priority: undefined, retry: undefined };
    await queue.mulligan.enqueueMany(job, [{ input: 1, ...silent, at: undefined, tags: undefined } as never], {
      delay: '1h',
      key: 'k',
      queue: 'q',
      priority: 2,
      retry: { maxAttempts: 4 },
      tags: ['t'],
    });
    expect(queue.sent.flat()).toMatchObject([
      { delayMs: 3_600_000, key: 'k', queue: 'q', priority: 2, policy: { maxAttempts: 4 }, tags: ['t'] },
    ]);
  });

  it('add their own tags to the shared ones, and override a shared retry policy field by field', async () => {
    await using queue = await producer();
    await queue.mulligan.enqueueMany(
      job,
      [
        { input: 1, tags: ['own'], retry: { maxCrashes: 2 } },
        { input: 2, tags: [], retry: { maxRetries: 1, deadline: undefined } as never },
      ],
      { tags: ['shared'], retry: { maxAttempts: 7, deadline: '1h' } },
    );
    expect(queue.sent.flat()).toMatchObject([
      { tags: ['shared', 'own'], policy: { maxAttempts: 7, deadlineMs: 3_600_000, maxCrashes: 2 } },
      { tags: ['shared'], policy: { maxAttempts: 2, deadlineMs: 3_600_000 } },
    ]);
    const error = await rejection(queue.mulligan.enqueueMany(job, [{ input: 1, tags: ['a', ''] }], { tags: ['b'] }));
    expect(error.message).toMatch(/^enqueueMany: jobs\[0\]: tags\[1\]: /);
  });

  it('may be none', async () => {
    await using queue = await producer();
    expect(await queue.mulligan.enqueueMany(job, [])).toEqual([]);
    expect(queue.sent).toEqual([]);
  });
});

describe('group commit', () => {
  it('sends the enqueues of one tick to the store as one call', async () => {
    await using queue = await producer();
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => queue.mulligan.enqueue(job, n)));
    expect(new Set(answers.map(({ id }) => id)).size).toBe(50);
    expect(queue.sent.map((jobs) => jobs.length)).toEqual([50]);
  });

  it('keeps jobs without a key from waiting for those with one', async () => {
    await using queue = await producer();
    const free = Promise.withResolvers<void>();
    queue.outage.ofKeys = free.promise;
    const keyed = Promise.all([1, 2, 3].map((n) => queue.mulligan.enqueue(job, n, { key: 'k' })));
    await queue.mulligan.enqueue(job, 4);
    await queue.mulligan.enqueueMany(job, [{ input: 5 }, { input: 6 }]);
    expect(queue.sent.map((jobs) => jobs.map(({ payload }) => payload)).toSorted()).toEqual([
      ['1', '2', '3'],
      ['4'],
      ['5', '6'],
    ]);
    free.resolve();
    expect((await keyed).map(({ existed }) => existed)).toEqual([false, true, true]);
  });

  it('sends jobs with a key in parts as well, and when the store was away for a moment', async () => {
    await using queue = await producer();
    queue.outage.error = new StoreUnavailableError('the store is away');
    const answers = queue.mulligan.enqueueMany(
      job,
      Array(1_500)
        .fill(null)
        .map((input) => ({ input })),
      { key: 'k' },
    );
    await queue.clock.advance(0);
    queue.outage.error = null;
    await queue.clock.advance(1_000);
    expect(new Set((await answers).map(({ id }) => id)).size).toBe(1);
    expect(queue.sent.map((jobs) => jobs.length)).toEqual([1_000, 1_000, 500]);
  });

  it('sends at most 1,000 jobs per call', async () => {
    await using queue = await producer();
    await queue.mulligan.enqueueMany(
      job,
      Array(2_500)
        .fill(null)
        .map((input) => ({ input })),
    );
    expect(queue.sent.map((jobs) => jobs.length)).toEqual([1_000, 1_000, 500]);
  });

  it.each(['memory', 'sqlite'] as const)(
    'sends 40 payloads of 1 MiB to a %s store in calls of at most 8 MiB, and all are stored',
    async (kind) => {
      await using queue = await largeProducer(kind);
      const text = 'x'.repeat(1_048_576 - 2);
      await Promise.all(Array.from({ length: 40 }, () => queue.mulligan.enqueue(job, text)));
      await Promise.all(Array.from({ length: 40 }, (_, n) => queue.mulligan.enqueue(job, text, { key: `${n}` })));
      await queue.mulligan.enqueueMany(
        job,
        Array(20)
          .fill(text)
          .map((input) => ({ input })),
      );
      expect(Math.max(...queue.bytesPerCall)).toBe(8 * 1_048_576);
      expect(queue.bytesPerCall).toHaveLength(5 + 5 + 3);
      expect((await queue.mulligan.stats()).states.ready).toBe(100);
    },
    60_000,
  );

  it('sends all jobs of a call as one statement of the caller’s transaction, also large ones', async () => {
    const perCall: number[] = [];
    const store = Object.assign(new MemoryStore(), {
      transactions: {
        enqueue: async (_: TransactionClient, jobs: readonly NewJob[]) => {
          perCall.push(jobs.length);
          return jobs.map(({ id }) => ({ id, existed: false }));
        },
        settleWith: async () => null,
        runNow: () => Promise.reject(new Error('not asked here')),
      },
    });
    await using mulligan = await Mulligan.open(store, { log: () => {}, maxPayloadBytes: 2 * 1_048_576 });
    const tx: TransactionClient = { query: async () => ({ rows: [] }) };
    const answers = await mulligan.enqueueMany(
      job,
      Array(20)
        .fill('x'.repeat(1_048_576 - 2))
        .map((input) => ({ input })),
      { tx },
    );
    expect(new Set(answers.map(({ id }) => id)).size).toBe(20);
    expect(perCall).toEqual([20]);
  });

  it('sends a payload that is larger than the bound of a call alone', async () => {
    await using queue = await largeProducer('memory');
    const texts = [10, 9 * 1_048_576, 10].map((length) => 'x'.repeat(length - 2));
    await Promise.all(texts.map((text) => queue.mulligan.enqueue(job, text)));
    expect(queue.bytesPerCall).toEqual([10, 9 * 1_048_576, 10]);
  });

  it('sends jobs again under their own ids when the store was away for a moment', async () => {
    await using queue = await producer();
    queue.outage.error = new StoreUnavailableError('the store is away');
    const answer = queue.mulligan.enqueue(job, 1);
    await queue.clock.advance(0);
    queue.outage.error = null;
    await queue.clock.advance(1_000);
    const { id, existed } = await answer;
    expect(existed).toBe(false);
    expect(queue.sent.map((jobs) => jobs.map((one) => one.id))).toEqual([[id], [id]]);
    expect((await queue.mulligan.stats()).states.ready).toBe(1);
  });

  it('rejects each caller with the store’s error during a long outage, and works again after it', async () => {
    await using queue = await producer();
    const heard: string[] = [];
    queue.mulligan.on('enqueued', ({ id }) => heard.push(id));
    queue.outage.error = new StoreUnavailableError('the store is away');
    const answers = Promise.allSettled([1, 2, 3].map((n) => queue.mulligan.enqueue(job, n)));
    await queue.clock.advance(10_000);
    for (const answer of await answers) {
      expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'STORE_UNAVAILABLE' } });
    }
    expect(heard).toEqual([]);
    queue.outage.error = null;
    const { id } = await queue.mulligan.enqueue(job, 4);
    expect(heard).toEqual([id]);
    expect((await queue.mulligan.stats()).states.ready).toBe(1);
  });

  it('does not send a job again later than a minute after the first time', async () => {
    await using queue = await producer();
    queue.outage.error = new StoreUnavailableError('the store is away');
    queue.outage.afterMs = 61_000;
    const answer = rejection(queue.mulligan.enqueue(job, 1));
    await queue.clock.advance(600_000);
    expect(await answer).toBe(queue.outage.error);
    expect(queue.sent).toHaveLength(1);
  });

  it.each([[{}], [{ key: 'k' }]])('takes a bug of ours for no outage: it is thrown at once (%o)', async (options) => {
    await using queue = await producer();
    queue.outage.error = new TypeError('the store is away: STORE_UNAVAILABLE ECONNREFUSED');
    expect(await rejection(queue.mulligan.enqueue(job, 1, options))).toBe(queue.outage.error);
    expect(queue.sent).toHaveLength(1);
    expect(queue.clock.pending).toBe(0);
  });

  it('does not send again what the store refused for good', async () => {
    await using queue = await producer();
    queue.outage.error = new StoreIncompatibleError('made by a newer version');
    expect(await rejection(queue.mulligan.enqueue(job, 1))).toBe(queue.outage.error);
    expect(queue.sent).toHaveLength(1);
  });
});

describe('an enqueue whose answer was lost', () => {
  /** Carries out the first enqueue, and loses its answer after `lateMs`. */
  class LosesAnswer extends MemoryStore {
    readonly #clock: VirtualClock;
    readonly #lateMs: number;
    #isLost = false;

    constructor(clock: VirtualClock, lateMs: number) {
      super({ clock });
      this.#clock = clock;
      this.#lateMs = lateMs;
    }

    override async enqueue(jobs: readonly NewJob[]): Promise<Enqueued[]> {
      const answers = await super.enqueue(jobs);
      if (this.#isLost) return answers;
      this.#isLost = true;
      await new Promise<void>((resolve) => this.#clock.after(this.#lateMs, resolve));
      throw new StoreUnavailableError('the connection broke before the answer came');
    }
  }

  it('is sent again and runs once, also when finished jobs are to be deleted at once', async () => {
    let runs = 0;
    const counted = defineJob<unknown>({ name: 'counted', run: () => void runs++ });
    const clock = new VirtualClock();
    // By then a worker, which prunes at least every 45 s, has run the job and looked for jobs to delete.
    const store = new LosesAnswer(clock, 59_000);
    await using mulligan = await Mulligan.open(store, {
      clock,
      jobs: [counted],
      log: () => {},
      retention: { completed: 0 },
    });
    const worker = mulligan.work();
    const answer = mulligan.enqueue(counted, 1);
    await clock.advance(60_000);
    expect(await answer).toMatchObject({ existed: false });
    await clock.advance(60_000);
    expect(runs).toBe(1);
    await worker.stop();
  });
});

describe('an enqueue without an input', () => {
  it('gives null to the handler, by definition, by name and from a handler', async () => {
    const got: unknown[] = [];
    const second = defineJob({ name: 'second', run: (input) => void got.push(input) });
    const first = defineJob({
      name: 'first',
      async run(input, { enqueue }) {
        got.push(input);
        await enqueue(second);
      },
    });
    await using queue = await testQueue({ jobs: [first, second] });
    await queue.mulligan.enqueue(first);
    await queue.mulligan.enqueue('second');
    await queue.drain();
    expect(got).toEqual([null, null, null]);
  });

  it('is checked by the schema', async () => {
    const job = defineJob({ name: 'checked', input: z.object({ to: z.string() }), run: () => {} });
    await using queue = await testQueue({ jobs: [job] });
    // @ts-expect-error its input is needed
    await expect(queue.mulligan.enqueue(job)).rejects.toThrow(InputError);
  });
});
