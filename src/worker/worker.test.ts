import { describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../errors.ts';
import { defineJob, type EventMap, type Mulligan, RetryAfter, Unrecoverable } from '../index.ts';
import { Mulligan as Queue } from '../mulligan.ts';
import type { LogEntry } from '../observe/log.ts';
import { MemoryStore } from '../store/memory/store.ts';
import type { Claim, ClaimRequest, SettleAnswer, Settlement } from '../store/store.ts';
import { testQueue } from '../testing/queue.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';

const soon = { backoff: { kind: 'fixed', base: '1s' }, jitter: 'none' } as const;

/** A handler that waits until the test lets it go, or its signal aborts. */
function gate() {
  const opened = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  return {
    open: () => opened.resolve(),
    reached: reached.promise,
    async pass(signal?: AbortSignal) {
      reached.resolve();
      await new Promise<void>((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
        opened.promise.then(resolve);
      });
    },
  };
}

async function ledger(mulligan: Mulligan, id: string) {
  return (await mulligan.jobs.runs(id)).map(({ run, attempt, outcome, counted, decision }) => ({
    run,
    attempt,
    outcome,
    counted,
    decided: decision.kind,
  }));
}

describe('a run', () => {
  it('completes its job and writes one ledger row', async () => {
    const job = defineJob<{ n: number }>({ name: 'job', run: ({ n }) => n });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, { n: 1 });
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1, attempts: 1 });
    expect(await ledger(queue.mulligan, id)).toEqual([
      { run: 1, attempt: 1, outcome: 'completed', counted: true, decided: 'complete' },
    ]);
  });

  it('is retried by its policy until it succeeds, with every reason on the ledger', async () => {
    const job = defineJob({
      name: 'job',
      retry: soon,
      run(_, { attempt }) {
        if (attempt < 3) throw new Error(`attempt ${attempt}`);
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    const runs = await queue.mulligan.jobs.runs(id);
    expect(runs.map(({ outcome }) => outcome)).toEqual(['failed', 'failed', 'completed']);
    expect(runs[0]).toMatchObject({
      error: { name: 'Error', message: 'attempt 1' },
      decision: { kind: 'retry', why: 'backoff', delayMs: 1_000 },
    });
    expect((runs[1]?.startedAt as number) - (runs[0]?.endedAt as number)).toBe(1_000);
    expect(await queue.mulligan.stats()).toMatchObject({
      totalRetries: 2,
      successfulRetries: 1,
      retrySuccessRate: 0.5,
    });
  });

  it('that fails stores the stack of its handler, without the way through the worker that led there', async () => {
    const job = defineJob({
      name: 'job',
      retry: { maxAttempts: 1 },
      run() {
        throw new Error('no');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    const [run] = await queue.mulligan.jobs.runs(id);
    const stack = run?.error?.stack ?? '';
    const files = [...stack.matchAll(/(\w+(?:\.test)?)\.ts:/g)].map(([, file]) => file);
    expect(files).toEqual(['worker.test', 'run']);
  });

  it('sees its attempt, its cap and what went wrong last time', async () => {
    const seen: unknown[] = [];
    const job = defineJob({
      name: 'job',
      retry: { ...soon, maxAttempts: 2 },
      run(_, { attempt, run, maxAttempts, lastError, job: { name } }) {
        seen.push({ attempt, run, maxAttempts, name, last: lastError?.message });
        throw new Error('no');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(seen).toEqual([
      { attempt: 1, run: 1, maxAttempts: 2, name: 'job', last: undefined },
      { attempt: 2, run: 2, maxAttempts: 2, name: 'job', last: 'no' },
    ]);
  });

  it('that exhausts its attempts leaves a dead job and calls onDead once', async () => {
    const dead: unknown[] = [];
    const job = defineJob<{ n: number }>({
      name: 'job',
      retry: { ...soon, maxAttempts: 2 },
      run() {
        throw new Error('no');
      },
      onDead: (one) => dead.push(one),
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, { n: 7 });
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'dead', deadReason: 'exhausted', attempts: 2 });
    expect(dead).toMatchObject([{ id, payload: { n: 7 }, attempts: 2, error: { message: 'no' } }]);
  });

  it('that says Unrecoverable is not retried', async () => {
    const job = defineJob({
      name: 'job',
      run() {
        throw new Unrecoverable('never');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ deadReason: 'unrecoverable', attempts: 1 });
  });

  it('that says RetryAfter waits at least that long', async () => {
    const job = defineJob({
      name: 'job',
      run(_, { attempt }) {
        if (attempt === 1) throw new RetryAfter('10m');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    const [first, second] = await queue.mulligan.jobs.runs(id);
    expect(first?.decision).toMatchObject({ kind: 'retry', why: 'retry-after' });
    expect((second?.startedAt as number) - (first?.endedAt as number)).toBeGreaterThanOrEqual(600_000);
  });

  it('that snoozes comes back later and spends no attempt', async () => {
    const job = defineJob({
      name: 'job',
      retry: { maxAttempts: 1 },
      run(_, context) {
        if (context.run < 3) context.snooze('1h');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 3, attempts: 1 });
    expect((await ledger(queue.mulligan, id))[0]).toMatchObject({ outcome: 'snoozed', counted: false });
  });

  it('beyond its timeout is aborted through its signal and fails', async () => {
    const reasons: unknown[] = [];
    const job = defineJob({
      name: 'job',
      timeout: '5s',
      retry: { maxAttempts: 1 },
      async run(_, { signal }) {
        await gate()
          .pass(signal)
          .catch((reason: Error) => {
            reasons.push(reason.name);
            throw reason;
          });
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(reasons).toEqual(['TimeoutError']);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'dead', lastError: { name: 'TimeoutError' } });
  });

  it('that returns after its timeout, and within the grace, has completed', async () => {
    const job = defineJob({
      name: 'job',
      timeout: '5s',
      retry: { maxAttempts: 1 },
      run: (_, { signal }) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())),
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1 });
  });

  it('that ignores its signal loses its place after a grace', async () => {
    const job = defineJob({ name: 'job', timeout: '1s', retry: { maxAttempts: 1 }, run: () => new Promise(() => {}) });
    await using queue = await testQueue({ jobs: [job], work: { concurrency: 1 } });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'dead', lastError: { name: 'TimeoutError' } });
    expect(queue.worker.running).toBe(0);
  });

  it('of a job past its deadline does not start', async () => {
    let starts = 0;
    const job = defineJob({
      name: 'job',
      retry: { ...soon, deadline: '1h', maxAttempts: 10 },
      run() {
        starts++;
        throw new Error('no');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(0);
    await queue.mulligan.queues.pause('default');
    await queue.clock.advance(7_200_000);
    await queue.mulligan.queues.resume('default');
    await queue.drain();
    expect(starts).toBe(1);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'dead', deadReason: 'deadline', attempts: 1 });
  });

  it('can throw anything at all', async () => {
    const things = [
      undefined,
      null,
      0,
      'text',
      Symbol('s'),
      { a: 1 },
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('trap');
          },
        },
      ),
    ];
    const job = defineJob<number>({
      name: 'job',
      retry: { maxAttempts: 1 },
      run: (index) => {
        throw things[index];
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    await queue.mulligan.enqueueMany(
      job,
      [...things.keys()].map((input) => ({ input })),
    );
    await queue.drain();
    expect((await queue.mulligan.stats()).states.dead).toBe(things.length);
  });

  it('of an unknown job is handed back uncounted, and dies only after a long time', async () => {
    await using queue = await testQueue({ jobs: [], work: { unknownJobTimeout: '1h' } });
    const { id } = await queue.mulligan.enqueue('unheard.of', null);
    await queue.clock.advance(59 * 60_000);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'ready', attempts: 0, runs: 1 });
    await queue.clock.advance(2 * 60_000);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'dead', deadReason: 'no-handler', attempts: 0 });
    expect(await queue.mulligan.jobs.runs(id)).toHaveLength(2);
  });
});

describe('once', () => {
  it('runs an effect until its result is recorded, and hands that to later runs', async () => {
    let charged = 0;
    const results: unknown[] = [];
    const charging = defineJob({
      name: 'charging',
      retry: soon,
      async run(_, context) {
        const twice = await Promise.all([
          context.once('charge', () => ({ receipt: ++charged })),
          context.once('charge', () => ({ receipt: ++charged })),
        ]);
        results.push(...twice);
        if (context.attempt < 3) throw new Error('after the charge');
      },
    });
    await using queue = await testQueue({ jobs: [charging] });
    await queue.mulligan.enqueue(charging, null);
    await queue.drain();
    expect(charged).toBe(1);
    expect(results).toEqual(Array(6).fill({ receipt: 1 }));
  });

  it('runs an effect again that failed', async () => {
    let tries = 0;
    const job = defineJob({
      name: 'job',
      retry: soon,
      run: (_, context) =>
        context.once('effect', () => {
          if (++tries < 2) throw new Error('not yet');
        }),
    });
    await using queue = await testQueue({ jobs: [job] });
    await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(tries).toBe(2);
    expect((await queue.mulligan.stats()).states.completed).toBe(1);
  });

  it('lets a run end only when what is under way is recorded, however the handler ended', async () => {
    const [failing, returning, snoozing] = [gate(), gate(), gate()];
    const effects: string[] = [];
    const ends = { failing, returning, snoozing };
    const job = defineJob<keyof typeof ends>({
      name: 'job',
      retry: soon,
      resource: false,
      run(how, { once, run, snooze }) {
        void once('effect', () => {
          effects.push(how);
          return ends[how].pass();
        });
        if (run > 1 || how === 'returning') return;
        if (how === 'snoozing') snooze('1s');
        throw new Error('the handler fails while its effect is under way');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const all = ['failing', 'returning', 'snoozing'] as const;
    for (const how of all) await queue.mulligan.enqueue(job, how);
    await queue.clock.advance(60_000);
    expect((await queue.mulligan.stats()).states).toMatchObject({ running: 3 });
    for (const how of all) ends[how].open();
    await queue.drain();
    expect(effects).toEqual(all);
    expect((await queue.mulligan.stats()).states).toMatchObject({ completed: 3 });
  });

  it('begins no effect once the handler has ended, and says what to do', async () => {
    const slow = gate();
    let late: unknown = null;
    let effects = 0;
    const job = defineJob({
      name: 'job',
      retry: { maxAttempts: 1 },
      resource: false,
      run: (_, { once }) =>
        Promise.all([
          Promise.reject(new Error('the first call fails')),
          once('slow', () => slow.pass())
            .then(() => once('next', () => ++effects))
            .catch((error: unknown) => {
              late = error;
            }),
        ]),
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(1_000);
    slow.open();
    await queue.drain();
    expect(effects).toBe(0);
    expect(late).toMatchObject({
      code: 'CONFIG',
      message:
        'once("next"): expected a call while the handler runs, got one after it had ended; the effect did not begin. Await every effect, for example with Promise.allSettled.',
    });
    expect((await queue.mulligan.jobs.get(id))?.lastError?.message).toBe('the first call fails');
  });

  it('tells of an effect that failed after its handler had returned', async () => {
    const slow = gate();
    const logged: LogEntry[] = [];
    const job = defineJob({
      name: 'job',
      run(_, { once }) {
        void once('slow', () => slow.pass().then(() => Promise.reject(new Error('too late to be heard'))));
      },
    });
    await using queue = await testQueue({ jobs: [job], log: (entry) => logged.push(entry) });
    await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(1_000);
    slow.open();
    await queue.drain();
    expect(logged).toMatchObject([
      {
        level: 'warn',
        message: 'an effect inside once failed after its handler had returned',
        error: { message: 'too late to be heard' },
      },
    ]);
  });

  it('keeps a run that failed for 5 s after its timeout, and the outcome is what the handler threw', async () => {
    const effects: number[] = [];
    const job = defineJob({
      name: 'job',
      retry: { maxAttempts: 1 },
      resource: false,
      timeout: '10s',
      run(_, { once, signal }) {
        void once('obedient', async () => {
          effects.push(1);
          await gate()
            .pass(signal)
            .catch(() => effects.push(2));
        });
        void once('deaf', () => gate().pass());
        throw new Error('what the handler threw');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(10_000);
    expect(effects).toEqual([1, 2]);
    await queue.clock.advance(4_000);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'running' });
    await queue.clock.advance(1_000);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({
      state: 'dead',
      lastError: { message: 'what the handler threw' },
    });
  });
});

describe('a running job', () => {
  it('keeps its lease by heartbeats for as long as it runs', async () => {
    const door = gate();
    const job = defineJob({ name: 'job', run: () => door.pass() });
    await using queue = await testQueue({ jobs: [job], work: { lease: '3s' } });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(60_000);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'running', runs: 1 });
    door.open();
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1 });
  });

  it('is cancelled through its signal, within a heartbeat', async () => {
    const job = defineJob({ name: 'job', run: (_, { signal }) => gate().pass(signal) });
    await using queue = await testQueue({ jobs: [job], work: { lease: '3s' } });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(100);
    expect(await queue.mulligan.jobs.cancel(id)).toBe('cancelling');
    await queue.clock.advance(1_000);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'cancelled' });
    expect(await ledger(queue.mulligan, id)).toMatchObject([{ outcome: 'cancelled', decided: 'cancel' }]);
  });

  it.each([
    ['failed', () => Promise.reject(new Error('no'))],
    ['snoozed', (_, { snooze }) => snooze('1h')],
  ] satisfies [string, Parameters<typeof defineJob>[0]['run']][])(
    'is reported as cancelled when a cancel comes between decision and settlement: %s',
    async (outcome, run) => {
      const clock = new VirtualClock();
      class Overtaking extends MemoryStore {
        override async settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]> {
          await this.cancel(settlements.map(({ id }) => id));
          return super.settle(settlements);
        }
      }
      const job = defineJob({ name: 'job', retry: soon, run });
      await using mulligan = await Queue.open(new Overtaking({ clock }), { jobs: [job], clock, log: () => {} });
      const told: string[] = [];
      for (const name of ['cancelled', 'retrying', 'released'] as const) {
        mulligan.on(name, (event) => told.push(`${name} after it ${event.outcome}`));
      }
      mulligan.work();
      const { id } = await mulligan.enqueue(job, null);
      await clock.advance(1_000);
      expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'cancelled' });
      expect(told).toEqual([`cancelled after it ${outcome}`]);
    },
  );

  it('shows its progress to others', async () => {
    const job = defineJob({
      name: 'job',
      async run(_, context) {
        context.progress({ done: 3, of: 4 });
        await gate().pass(context.signal);
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(1_000);
    expect((await queue.mulligan.jobs.get(id))?.progress).toEqual({ done: 3, of: 4 });
  });

  it('is told what to do about progress or a result that is too large', async () => {
    const large = 'x'.repeat(300_000);
    const job = defineJob<'progress' | 'once'>({
      name: 'job',
      retry: { maxAttempts: 1 },
      run: (what, { progress, once }) => (what === 'once' ? once('effect', () => large) : progress(large)),
    });
    await using queue = await testQueue({ jobs: [job] });
    for (const [what, complaint] of [
      [
        'progress',
        'progress: expected at most 16384 bytes of JSON, got 300002. It travels with heartbeats: tell how far the run is, and store data elsewhere.',
      ],
      [
        'once',
        'once("effect"): the effect is done and will not be repeated, but its result cannot be stored: once("effect"): expected at most 262144 bytes of JSON, got 300002. Store the data elsewhere and answer a reference to it, or raise maxPayloadBytes.',
      ],
    ] as const) {
      const { id } = await queue.mulligan.enqueue(job, what);
      await queue.drain();
      expect((await queue.mulligan.jobs.get(id))?.lastError?.message).toBe(complaint);
    }
  });

  it('may extend its lease beyond what heartbeats give', async () => {
    const job = defineJob({
      name: 'job',
      async run(_, context) {
        await context.extend('10m');
        await gate().pass(context.signal);
      },
    });
    await using queue = await testQueue({ jobs: [job], work: { lease: '3s' } });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(2_000);
    const { leaseEndsAt } = (await queue.mulligan.jobs.get(id)) as { leaseEndsAt: number };
    expect(leaseEndsAt - queue.clock.now()).toBeGreaterThan(590_000);
  });
});

describe('fetching', () => {
  it('starts a retry when it falls due, not at the next poll', async () => {
    const job = defineJob({
      name: 'job',
      retry: { backoff: { kind: 'fixed', base: 50 }, jitter: 'none' },
      run(_, { attempt }) {
        if (attempt < 3) throw new Error('no');
      },
    });
    await using queue = await testQueue({ jobs: [job], work: { poll: '1h' } });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(1_000);
    const [first, second, third] = (await queue.mulligan.jobs.runs(id)).map(({ startedAt }) => startedAt);
    expect([(second as number) - (first as number), (third as number) - (second as number)]).toEqual([50, 50]);
  });

  it('goes on after a poll found no room while jobs were claimed ahead', async () => {
    const clock = new VirtualClock();
    const job = defineJob<number>({
      name: 'job',
      run: (ms) => new Promise<void>((resolve) => clock.after(ms, resolve)),
    });
    const mulligan = await Queue.open(new MemoryStore({ clock }), { jobs: [job], clock });
    mulligan.work({ concurrency: 4, poll: '1s' });
    // Short runs make the worker claim ahead; long ones then keep what it claimed waiting while it polls.
    await mulligan.enqueueMany(
      job,
      Array(20)
        .fill(1)
        .map((input) => ({ input })),
    );
    await mulligan.enqueueMany(
      job,
      Array(7)
        .fill(1)
        .map((input) => ({ input })),
      { delay: '30s' },
    );
    await clock.advance(3_000);
    await mulligan.enqueueMany(
      job,
      Array(7)
        .fill(5_000)
        .map((input) => ({ input })),
    );
    await clock.advance(60_000);
    expect((await mulligan.stats()).states).toMatchObject({ completed: 34, ready: 0 });
  });
});

describe('a worker that stops', () => {
  it('lets runs finish within the grace', async () => {
    const door = gate();
    const job = defineJob({ name: 'job', run: () => door.pass() });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(0);
    const stopped = queue.worker.stop({ grace: '1m' });
    await queue.clock.advance(1_000);
    door.open();
    await queue.clock.advance(0);
    await stopped;
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'completed' });
  });

  it('hands back what does not finish, uncounted', async () => {
    const job = defineJob({ name: 'job', retry: { maxAttempts: 1 }, run: (_, { signal }) => gate().pass(signal) });
    await using queue = await testQueue({ jobs: [job], work: { concurrency: 5 } });
    await queue.mulligan.enqueueMany(
      job,
      Array(20)
        .fill(null)
        .map((input) => ({ input })),
    );
    await queue.clock.advance(0);
    const stopped = queue.worker.stop({ grace: '1s' });
    await queue.clock.advance(10_000);
    await stopped;
    const jobs = await queue.mulligan.jobs.list({ limit: 100 });
    expect(jobs.map(({ state, attempts }) => ({ state, attempts }))).toEqual(
      Array(20).fill({ state: 'ready', attempts: 0 }),
    );
  });

  it('takes the shorter grace of two', async () => {
    const job = defineJob({ name: 'job', run: (_, { signal }) => gate().pass(signal) });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(0);
    const patient = queue.worker.stop({ grace: '1h' });
    await queue.clock.advance(60_000);
    expect(queue.worker.running).toBe(1);
    const hasty = queue.worker.stop({ grace: 0 });
    await queue.clock.advance(1_000);
    await Promise.all([patient, hasty]);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
  });

  it('claims nothing more, and stopping twice is stopping once', async () => {
    const job = defineJob({ name: 'job', run: () => {} });
    await using queue = await testQueue({ jobs: [job] });
    await Promise.all([queue.worker.stop(), queue.worker.stop()]);
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(60_000);
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'ready', runs: 0 });
  });

  it('leaves no timer behind', async () => {
    const job = defineJob({ name: 'job', timeout: '1m', run: () => {} });
    const queue = await testQueue({ jobs: [job] });
    await queue.mulligan.enqueue(job, null);
    await queue.drain();
    await queue[Symbol.asyncDispose]();
    expect(queue.clock.pending).toBe(0);
  });
});

describe('settling', () => {
  /** A memory store whose chosen verbs fail as long as `down` says so. */
  async function flakyQueue(verbs: readonly string[], jobs: Parameters<typeof testQueue>[0]['jobs']) {
    const clock = new VirtualClock();
    const outage = { down: false };
    const store = new Proxy(new MemoryStore({ clock }), {
      get(target, verb: string) {
        const value = Reflect.get(target, verb, target);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) =>
          outage.down && verbs.includes(verb)
            ? Promise.reject(new StoreUnavailableError('the store is away'))
            : value.apply(target, args);
      },
    });
    const logged: string[] = [];
    const mulligan = await Queue.open(store, { jobs, clock, log: ({ message }) => logged.push(message) });
    return { clock, outage, mulligan, logged };
  }

  it('is retried while the lease lasts: an outage does not turn a success into a failure', async () => {
    let starts = 0;
    const job = defineJob({ name: 'job', run: () => void starts++ });
    const { clock, outage, mulligan } = await flakyQueue(['settle'], [job]);
    mulligan.work({ lease: '30s' });
    outage.down = true;
    const { id } = await mulligan.enqueue(job, null);
    await clock.advance(10_000);
    outage.down = false;
    await clock.advance(5_000);
    expect(starts).toBe(1);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 1 });
  });

  it('is sent again after the lease has ended, and refused when the job was rescued meanwhile', async () => {
    let starts = 0;
    const lost: EventMap['lease-lost'][] = [];
    const job = defineJob({ name: 'job', run: () => void starts++ });
    const { clock, outage, mulligan } = await flakyQueue(['settle', 'heartbeat', 'claim'], [job]);
    mulligan.on('lease-lost', (event) => lost.push(event));
    const { id } = await mulligan.enqueue(job, null);
    mulligan.work({ lease: '3s' });
    await Promise.resolve();
    outage.down = true;
    await clock.advance(20_000);
    expect(lost).toEqual([]);
    outage.down = false;
    await clock.advance(60_000);
    expect(lost).toMatchObject([{ id, run: 1 }]);
    expect(starts).toBe(2);
    expect(await ledger(mulligan, id)).toMatchObject([{ outcome: 'crashed' }, { outcome: 'completed', run: 2 }]);
  });

  it('is given up, too, when all other calls are answered; the log says so, and a stop does not wait for it for ever', async () => {
    const failures: EventMap['settle-failed'][] = [];
    const job = defineJob({ name: 'job', run: () => {} });
    const { clock, outage, mulligan, logged } = await flakyQueue(['settle'], [job]);
    mulligan.on('settle-failed', (event) => failures.push(event));
    const worker = mulligan.work({ lease: '3s' });
    outage.down = true;
    const { id } = await mulligan.enqueue(job, null);
    await clock.advance(2_000);
    expect(logged).toEqual(['outcomes could not be recorded; trying again']);
    const stopped = worker.stop();
    await clock.advance(10_000);
    await stopped;
    expect(failures).toMatchObject([{ id, run: 1 }]);
  });

  it('is left alone by a stop that comes meanwhile: its handler has nothing to stop any more', async () => {
    let signal: AbortSignal | null = null;
    const job = defineJob({
      name: 'job',
      run(_, context) {
        signal = context.signal;
      },
    });
    const { clock, outage, mulligan, logged } = await flakyQueue(['settle'], [job]);
    const worker = mulligan.work();
    outage.down = true;
    await mulligan.enqueue(job, null);
    await clock.advance(100);
    const stopped = worker.stop({ grace: 0 });
    await clock.advance(8_000);
    outage.down = false;
    await clock.advance(5_000);
    await stopped;
    expect(signal).toMatchObject({ aborted: false });
    expect(logged.filter((message) => message.includes('did not stop'))).toEqual([]);
  });

  it('of a run that was taken over changes nothing, and is reported', async () => {
    const door = gate();
    const lost: EventMap['lease-lost'][] = [];
    const job = defineJob({ name: 'job', retry: soon, run: (_, { run }) => (run === 1 ? door.pass() : undefined) });
    const { clock, outage, mulligan } = await flakyQueue(['heartbeat'], [job]);
    mulligan.on('lease-lost', (event) => lost.push(event));
    outage.down = true;
    const { id } = await mulligan.enqueue(job, null);
    mulligan.work({ lease: '3s' });
    await clock.advance(30_000);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'completed', runs: 2 });
    door.open();
    await clock.advance(0);
    expect(lost).toMatchObject([{ id, run: 1 }]);
    expect(await ledger(mulligan, id)).toMatchObject([{ outcome: 'crashed' }, { outcome: 'completed' }]);
  });

  it.each(['claim', 'settle', 'heartbeat', 'expired'])(
    'reports a mistake in our own code as that, not as an outage, when it comes up in %s',
    async (verb) => {
      const clock = new VirtualClock();
      const store = new MemoryStore({ clock });
      const broken = new Proxy(store, {
        get(target, name) {
          if (name === verb) return async () => (undefined as unknown as { rows: unknown[] }).rows;
          const value = Reflect.get(target, name);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
      const job = defineJob({ name: 'job', run: () => new Promise<void>((resolve) => clock.after(5_000, resolve)) });
      const logged: { message: string; error: unknown }[] = [];
      const mulligan = await Queue.open(broken, {
        jobs: [job],
        clock,
        log: ({ message, error }) => logged.push({ message, error }),
      });
      mulligan.work({ lease: '6s' });
      await mulligan.enqueue(job, null);
      await clock.advance(6_000);
      expect(logged[0]).toEqual({
        message: 'an unexpected error in Mulligan or in its store; trying again. Please report it',
        error: expect.any(TypeError),
      });
      expect(logged.filter(({ message }) => message.includes('does not answer'))).toEqual([]);
    },
  );

  it('reports an outage of the store once, and its end once', async () => {
    const job = defineJob({ name: 'job', run: () => {} });
    const { clock, outage, mulligan, logged } = await flakyQueue(['claim'], [job]);
    mulligan.work();
    await clock.advance(1_000);
    outage.down = true;
    await clock.advance(600_000);
    outage.down = false;
    await clock.advance(10_000);
    expect(logged).toEqual(['the store does not answer; trying again until it does', 'the store answers again']);
  });
});

describe('poison', () => {
  it('is buried after three crashes, while jobs beside it survive', async () => {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    const policy = { retry: soon };
    const jobs = [
      defineJob({ name: 'killer', ...policy, run: () => {} }),
      defineJob({ name: 'innocent', ...policy, run: () => {} }),
    ];
    const mulligan = await Queue.open(store, { jobs, clock, log: () => {} });
    const { id } = await mulligan.enqueue('killer', null);
    await mulligan.enqueueMany(
      'innocent',
      Array(9)
        .fill(null)
        .map((input) => ({ input })),
    );
    const quota = { queue: 'default', share: 10, retry: 5, redrive: 5, suspect: 0, maxRetriesInFlight: null };
    // Two processes die with everything they hold.
    for (let crash = 1; crash <= 2; crash++) {
      await clock.advance(5_000);
      const claim = await store.claim({ worker: `victim-${crash}`, leaseMs: 1_000, limit: 10, queues: [quota] });
      expect(claim.jobs).toHaveLength(10);
      await clock.advance(2_000);
      const rescuer = mulligan.work({ queues: ['elsewhere'], lease: '1s' });
      await clock.advance(3_000);
      await rescuer.stop();
    }
    const states = (await mulligan.jobs.list()).map(({ lane, crashes }) => `${lane} ${crashes}`);
    expect(new Set(states)).toEqual(new Set(['suspect 2']));

    // Suspects are claimed one at a time, and this one runs alone: the third crash can only bury the killer.
    const trial = await store.claim({
      worker: 'victim-3',
      leaseMs: 1_000,
      limit: 1,
      queues: [{ ...quota, share: 1, suspect: 1 }],
    });
    expect(trial.jobs.map((job) => job.name)).toEqual(['killer']);
    await store.heartbeat([{ id, run: 3, worker: 'victim-3', leaseMs: 1_000, alone: true }]);
    await clock.advance(2_000);
    mulligan.work({ lease: '1s', concurrency: 10 });
    await clock.advance(60_000);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'dead', deadReason: 'poison', crashes: 3 });
    expect((await mulligan.stats()).states).toMatchObject({ completed: 9, dead: 1 });
  });

  it('runs alone: a worker starts a suspect only when nothing else runs in it', async () => {
    let running = 0;
    const companions: Record<string, number[]> = { suspect: [], other: [] };
    const work = async (kind: string) => {
      running++;
      companions[kind]?.push(running);
      await new Promise<void>((resolve) => clock.after(100, resolve));
      running--;
    };
    const jobs = [
      defineJob({ name: 'suspect', retry: { ...soon, maxCrashes: 2 }, run: () => work('suspect') }),
      defineJob({ name: 'other', run: () => work('other') }),
    ];
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    const mulligan = await Queue.open(store, { jobs, clock, log: () => {} });
    await mulligan.enqueueMany(
      'suspect',
      Array(3)
        .fill(null)
        .map((input) => ({ input })),
    );
    const quota = { queue: 'default', share: 10, retry: 5, redrive: 5, suspect: 0, maxRetriesInFlight: null };
    await store.claim({ worker: 'victim', leaseMs: 1_000, limit: 10, queues: [quota] });
    await mulligan.enqueueMany(
      'other',
      Array(100)
        .fill(null)
        .map((input) => ({ input })),
    );
    mulligan.work({ concurrency: 10, lease: '3s' });
    await clock.advance(60_000);
    expect((await mulligan.stats()).states.completed).toBe(103);
    expect(companions.suspect).toEqual([1, 1, 1]);
    expect(Math.max(...(companions.other as number[]))).toBe(10);
  });
});

describe('a suspect', () => {
  /** One suspect in the queue `b`, and `others` jobs of 100 ms in the queue `a`. */
  async function suspectAmong(others: number) {
    const clock = new VirtualClock();
    /** Outcomes are recorded before a suspect is found. */
    class Slow extends MemoryStore {
      override async claim(request: ClaimRequest): Promise<Claim> {
        if (request.queues[0]?.suspect) await new Promise<void>((resolve) => clock.after(50, resolve));
        return super.claim(request);
      }
    }
    const store = new Slow({ clock });
    const ended: string[] = [];
    const work = async (name: string): Promise<void> => {
      await new Promise<void>((resolve) => clock.after(100, resolve));
      ended.push(name);
    };
    const jobs = [
      defineJob({ name: 'other', queue: 'a', run: () => work('other') }),
      defineJob({ name: 'suspect', queue: 'b', retry: { ...soon, maxCrashes: 2 }, run: () => work('suspect') }),
    ];
    const mulligan = await Queue.open(store, { jobs, clock, log: () => {} });
    await mulligan.enqueue('suspect', null);
    const quota = { queue: 'b', share: 1, retry: 0, redrive: 0, suspect: 0, maxRetriesInFlight: null };
    await store.claim({ worker: 'victim', leaseMs: 1_000, limit: 1, queues: [quota] });
    await clock.advance(2_000);
    const rescuer = mulligan.work({ queues: ['elsewhere'], lease: '1s' });
    await clock.advance(3_000);
    await rescuer.stop();
    await mulligan.enqueueMany(
      'other',
      Array(others)
        .fill(null)
        .map((input) => ({ input })),
    );
    await clock.advance(10);
    return { clock, mulligan, ended };
  }

  it('is not passed over for the work of another queue', async () => {
    const { clock, mulligan, ended } = await suspectAmong(2_000);
    mulligan.work({ concurrency: 10, lease: '3s' });
    await clock.advance(3_000);
    expect(ended).toContain('suspect');
    expect(ended.length).toBeLessThan(2_000);
  });

  it('that waits keeps its worker from being idle', async () => {
    const { clock, mulligan, ended } = await suspectAmong(1);
    const worker = mulligan.work({ concurrency: 10, lease: '3s' });
    let seen: string[] = [];
    void worker.whenIdle().then(() => {
      seen = [...ended];
    });
    await clock.advance(1_000);
    expect(seen).toEqual(['other', 'suspect']);
  });
});

describe('a job that was cancelled while it waited for its place', () => {
  it('is not started any more', async () => {
    const clock = new VirtualClock();
    let started = 0;
    const job = defineJob({
      name: 'job',
      run: async () => {
        started++;
        await new Promise<void>((resolve) => clock.after(started > 100 ? 5_000 : 1, resolve));
      },
    });
    const mulligan = await Queue.open(new MemoryStore({ clock }), { jobs: [job], clock, log: () => {} });
    mulligan.work({ concurrency: 1, lease: '3s' });
    // Short runs make the worker claim ahead.
    await mulligan.enqueueMany(
      job,
      Array(100)
        .fill(null)
        .map((input) => ({ input })),
    );
    await clock.advance(200);
    expect(started).toBe(100);
    const [, second] = await mulligan.enqueueMany(job, [{ input: null }, { input: null }]);
    await clock.advance(1_000);
    const { id } = second as { id: string };
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'running' });
    expect(await mulligan.jobs.cancel(id)).toBe('cancelling');
    await clock.advance(10_000);
    expect(started).toBe(101);
    expect(await mulligan.jobs.get(id)).toMatchObject({
      state: 'cancelled',
      attempts: 0,
      firstStartedAt: expect.anything(),
    });
    expect(await ledger(mulligan, id)).toMatchObject([{ outcome: 'released', counted: false, decided: 'cancel' }]);
  });
});

describe('a deadline', () => {
  it('does not run while no worker knows the job', async () => {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    const old = await Queue.open(store, { clock, log: () => {} });
    const { id } = await old.enqueue('new', null, { retry: { deadline: '1m' } });
    const oldWorker = old.work();
    await clock.advance(10 * 60_000);
    const stopped = oldWorker.stop();
    await clock.advance(0);
    await stopped;
    const job = defineJob({ name: 'new', run: () => {} });
    const deployed = await Queue.open(store, { jobs: [job], clock, log: () => {} });
    deployed.work();
    await clock.advance(60_000);
    expect(await deployed.jobs.get(id)).toMatchObject({ state: 'completed', attempts: 1 });
  });
});

describe('a job that no worker knows', () => {
  it('is buried by how long that has been so, not by its age', async () => {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    const job = defineJob({ name: 'job', run: (_, { snooze }) => snooze('10m') });
    const known = await Queue.open(store, { jobs: [job], clock, log: () => {} });
    const { id } = await known.enqueue(job, null);
    const worker = known.work();
    await clock.advance(2 * 3_600_000);
    const stopped = worker.stop();
    await clock.advance(0);
    await stopped;
    const rolledBack = await Queue.open(store, { clock, log: () => {} });
    rolledBack.work({ unknownJobTimeout: '1h' });
    await clock.advance(15 * 60_000);
    expect((await ledger(rolledBack, id)).at(-1)).toMatchObject({ outcome: 'released', decided: 'release' });
    await clock.advance(2 * 3_600_000);
    expect(await rolledBack.jobs.get(id)).toMatchObject({ state: 'dead', deadReason: 'no-handler' });
  });
});

describe('a handler that lost its place', () => {
  it('is told so when it asks for a longer lease', async () => {
    const clock = new VirtualClock();
    const answer = Promise.withResolvers<unknown>();
    const job = defineJob({
      name: 'job',
      timeout: '1s',
      retry: { maxAttempts: 1 },
      async run(_, { extend }) {
        await new Promise<void>((resolve) => clock.after(10_000, resolve));
        extend('10m').then(answer.resolve, answer.resolve);
      },
    });
    const mulligan = await Queue.open(new MemoryStore({ clock }), { jobs: [job], clock, log: () => {} });
    mulligan.work();
    await mulligan.enqueue(job, null);
    await clock.advance(11_000);
    expect(await answer.promise).toMatchObject({ code: 'LEASE_LOST' });
  });
});

describe('events', () => {
  it('tell the way of a job, with the decision', async () => {
    const seen: unknown[] = [];
    const job = defineJob({
      name: 'job',
      retry: { ...soon, maxAttempts: 2 },
      run() {
        throw new Error('no');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    for (const name of ['enqueued', 'started', 'retrying', 'dead'] as const) {
      queue.mulligan.on(name, (event) => seen.push({ event: name, id: event.id }));
    }
    queue.mulligan.on('retrying', ({ decision, delayMs }) => seen.push({ rule: decision.rule, delayMs }));
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(seen).toEqual([
      { event: 'enqueued', id },
      { event: 'started', id },
      { event: 'retrying', id },
      { rule: 'default', delayMs: 1_000 },
      { event: 'started', id },
      { event: 'dead', id },
    ]);
  });

  it('reach a listener that throws without harm to the queue', async () => {
    const job = defineJob({ name: 'job', run: () => {} });
    await using queue = await testQueue({ jobs: [job] });
    queue.mulligan.on('started', () => {
      throw new Error('listener');
    });
    const { id } = await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(await queue.mulligan.jobs.get(id)).toMatchObject({ state: 'completed' });
  });
});

describe('the events of a run', () => {
  it('say how long it waited, how long it took, and how long it will wait again', async () => {
    const seen: unknown[] = [];
    const job = defineJob({
      name: 'job',
      async run(_, { run, snooze }) {
        await new Promise<void>((resolve) => queue.clock.after(3_000, resolve));
        if (run === 1) snooze('1m');
      },
    });
    await using queue = await testQueue({ jobs: [job], work: { concurrency: 1 } });
    queue.mulligan.on('started', ({ waitedMs }) => seen.push({ waitedMs }));
    queue.mulligan.on('released', ({ outcome, durationMs, delayMs }) => seen.push({ outcome, durationMs, delayMs }));
    queue.mulligan.on('completed', ({ outcome, durationMs }) => seen.push({ outcome, durationMs }));
    await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(seen).toEqual([
      { waitedMs: 0 },
      { outcome: 'snoozed', durationMs: 3_000, delayMs: 60_000 },
      { waitedMs: 0 },
      { outcome: 'completed', durationMs: 3_000 },
    ]);
  });

  it('count the wait for a place, too', async () => {
    const waits: number[] = [];
    const job = defineJob({
      name: 'job',
      run: () => new Promise<void>((resolve) => void queue.clock.after(3_000, resolve)),
    });
    await using queue = await testQueue({ jobs: [job], work: { concurrency: 1 } });
    queue.mulligan.on('started', ({ waitedMs }) => waits.push(waitedMs));
    await queue.mulligan.enqueueMany(job, [{ input: null }, { input: null }]);
    await queue.drain();
    expect(waits).toEqual([0, 3_000]);
  });
});

describe('a worker', () => {
  /** One whose store can be listened to, and answers as the test says. */
  async function watched(
    jobs: Parameters<typeof testQueue>[0]['jobs'],
    change: (store: MemoryStore, clock: VirtualClock) => object,
  ) {
    const clock = new VirtualClock();
    const inner = new MemoryStore({ clock });
    const changed = change(inner, clock);
    const store = new Proxy(inner, {
      get(target, verb) {
        const value = Reflect.get(verb in changed ? changed : target, verb);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const logged: string[] = [];
    const mulligan = await Queue.open(store, { jobs, clock, log: ({ message }) => logged.push(message) });
    return { clock, mulligan, logged };
  }

  it('is idle once it holds nothing and found nothing, and not while a job runs or is recorded', async () => {
    const door = gate();
    const job = defineJob({ name: 'job', run: () => door.pass() });
    await using queue = await testQueue({ jobs: [job] });
    await queue.clock.advance(0);
    await queue.worker.whenIdle();
    await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(0);
    let isIdle = false;
    const idle = queue.worker.whenIdle().then(() => {
      isIdle = true;
    });
    await queue.clock.advance(10_000);
    expect(isIdle).toBe(false);
    door.open();
    await queue.clock.advance(0);
    await idle;
    expect((await queue.mulligan.stats()).states.completed).toBe(1);
  });

  it('that has stopped is idle', async () => {
    const job = defineJob({ name: 'job', run: (_, { signal }) => gate().pass(signal) });
    await using queue = await testQueue({ jobs: [job] });
    await queue.mulligan.enqueue(job, null);
    await queue.clock.advance(0);
    const idle = queue.worker.whenIdle();
    const stopped = queue.worker.stop({ grace: 0 });
    await queue.clock.advance(0);
    await Promise.all([stopped, idle]);
    await queue.worker.whenIdle();
  });

  it('starts the fresh jobs of a claim before its retries', async () => {
    const order: number[] = [];
    const job = defineJob<number>({
      name: 'job',
      retry: { backoff: { kind: 'fixed', base: '1s' }, jitter: 'none' },
      run(n, { attempt }) {
        if (attempt === 1 && n === 1) throw new Error('again');
        order.push(n);
      },
    });
    await using queue = await testQueue({ jobs: [job], work: { retryShare: 1, concurrency: 2 } });
    await queue.mulligan.enqueue(job, 1);
    await queue.clock.advance(0);
    await queue.mulligan.enqueue(job, 2, { delay: '1s' });
    await queue.drain();
    expect(order).toEqual([2, 1]);
  });

  it('claims ahead when its jobs are short, and no further than nine for each place', async () => {
    const limits: number[] = [];
    const job = defineJob({ name: 'job', run: () => {} });
    const { clock, mulligan } = await watched([job], (store) => ({
      claim(request: Parameters<MemoryStore['claim']>[0]) {
        limits.push(request.limit);
        return store.claim(request);
      },
    }));
    await mulligan.enqueueMany(
      job,
      Array(100)
        .fill(null)
        .map((input) => ({ input })),
    );
    mulligan.work({ concurrency: 2 });
    await clock.advance(1_000);
    expect(limits[0]).toBe(2);
    expect(Math.max(...limits)).toBe(20);
    const closed = mulligan.close({ grace: 0 });
    await clock.advance(1_000);
    await closed;
  });

  it('hands back what a claim brings after it was told to stop, without running it', async () => {
    let runs = 0;
    const job = defineJob({ name: 'job', run: () => void runs++ });
    const answered = Promise.withResolvers<void>();
    const { clock, mulligan } = await watched([job], (store) => ({
      async claim(request: Parameters<MemoryStore['claim']>[0]) {
        const claim = await store.claim(request);
        await answered.promise;
        return claim;
      },
    }));
    const { id } = await mulligan.enqueue(job, null);
    const worker = mulligan.work({ concurrency: 1 });
    await clock.advance(10);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'running' });
    const stopped = worker.stop();
    await clock.advance(10);
    answered.resolve();
    await clock.advance(1_000);
    await stopped;
    expect(runs).toBe(0);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'ready', runs: 1, attempts: 0 });
    expect(clock.pending).toBe(0);
  });

  it('lets go of a job that was taken from it, and can be stopped', async () => {
    const lost: EventMap['lease-lost'][] = [];
    const job = defineJob({ name: 'job', run: (_, { signal }) => gate().pass(signal) });
    const { clock, mulligan } = await watched([job], () => ({ heartbeat: async () => [{ kept: false }] }));
    mulligan.on('lease-lost', (event) => lost.push(event));
    const { id } = await mulligan.enqueue(job, null);
    const worker = mulligan.work({ lease: '30s' });
    await clock.advance(10_000);
    expect(lost).toMatchObject([{ id, run: 1 }]);
    expect(worker.running).toBe(0);
    const stopped = worker.stop({ grace: 0 });
    await clock.advance(1_000);
    await stopped;
  });

  it.each([
    ['30s', 14_000, []],
    ['1s', 2_900, []],
    ['1s', 3_100, ['the store does not answer; trying again until it does']],
  ] as const)('with a lease of %s that is answered after %d ms logs %o', async (lease, travelMs, said) => {
    const job = defineJob({ name: 'job', run: () => {} });
    const { clock, mulligan, logged } = await watched([job], (store, time) => ({
      async expired(limit: number) {
        await new Promise<void>((resolve) => void time.after(travelMs, resolve));
        return store.expired(limit);
      },
    }));
    mulligan.work({ lease });
    await clock.advance(35_000);
    expect(logged.slice(0, 1)).toEqual(said);
  });
});

it('a run that fails is tried again when the backoff of its own definition says', async () => {
  const job = defineJob({
    name: 'job',
    retry: { ...soon, maxAttempts: 3 },
    backoff: ({ attempt, error }) => ((error as Error).message === 'no' ? attempt * 10_000 : null),
    run() {
      throw new Error('no');
    },
  });
  await using queue = await testQueue({ jobs: [job] });
  const { id } = await queue.mulligan.enqueue(job, null);
  await queue.drain();
  const decisions = (await queue.mulligan.jobs.runs(id)).map(({ decision }) => decision);
  expect(decisions).toMatchObject([
    { kind: 'retry', delayMs: 10_000 },
    { kind: 'retry', delayMs: 20_000 },
    { kind: 'dead', reason: 'exhausted' },
  ]);
});
