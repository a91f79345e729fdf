import { describe, expect, it } from 'vitest';
import { defineJob } from '../../src/definition.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { MemoryStore } from '../../src/store/memory/store.ts';
import type { RegisteredWorker } from '../../src/store/store.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { rescue } from '../../src/worker/rescue.ts';
import { type Concerns, concernsOf } from '../../web/pages/overview/concerns.ts';

/* What the overview names first, from what a real queue answers. */

const nothing: Concerns = {
  gates: [],
  limits: [],
  busiest: null,
  workers: [],
  queues: [],
  schedules: [],
  lanes: [],
  errors: [],
  ready: { count: 0, isExact: true },
  running: { count: 0, isExact: true },
  dead: { count: 0, isExact: true },
};
const texts = (concerns: Partial<Concerns>): string[] =>
  concernsOf({ ...nothing, ...concerns }, Date.now()).map(({ text }) => text);

async function open(...jobs: Parameters<typeof defineJob>[0][]): Promise<Mulligan> {
  return Mulligan.open('memory:', { jobs: jobs.map((job) => defineJob(job)), log: () => {} });
}

describe('an error', () => {
  it('is named with its job, its message and its counts when jobs died of it', async () => {
    const run = async (): Promise<never> => {
      throw new TypeError('no address');
    };
    await using mulligan = await open({ name: 'order.ship', retry: { maxAttempts: 1 }, run });
    await mulligan.enqueueMany('order.ship', [{ input: {} }, { input: {} }]);
    await mulligan.drain();
    const errors = await mulligan.errors.list();
    expect(texts({ errors })).toEqual(['order.ship: TypeError: no address; 2 dead.']);
    const [concern] = concernsOf({ ...nothing, errors }, Date.now());
    expect(concern).toMatchObject({ isBad: true, since: errors[0]?.firstSeenAt });
    expect(concern?.href).toBe(`#/failures/${errors[0]?.fingerprint}?name=order.ship`);
  });

  it('is not named while a few jobs wait for their retry', async () => {
    const run = async (): Promise<never> => {
      throw new Error('try again');
    };
    await using mulligan = await open({ name: 'order.ship', retry: { backoff: { kind: 'fixed', base: '1h' } }, run });
    const enqueue = (): Promise<unknown> => mulligan.enqueue('order.ship', {});
    for (let one = 0; one < 4; one++) await enqueue();
    await mulligan.drain();
    expect(texts({ errors: await mulligan.errors.list() })).toEqual([]);
    await enqueue();
    await mulligan.drain();
    expect(texts({ errors: await mulligan.errors.list() })).toEqual([
      'order.ship: Error: try again; 5 will be retried.',
    ]);
  });
});

describe('a worker', () => {
  it('that died with a job in it leads to the jobs that crashed', async () => {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    await using mulligan = await Mulligan.open(store, { clock, log: () => {} });
    await mulligan.enqueue('video', {});
    const quota = { queue: 'default', share: 1, retry: 0, redrive: 0, suspect: 0, maxRetriesInFlight: null };
    await store.claim({ worker: 'gone', leaseMs: 1_000, limit: 1, queues: [quota] });
    await clock.advance(2_000);
    await rescue(store, clock, () => {});
    expect(texts({ errors: await mulligan.errors.list() })).toEqual([
      'Worker processes die: 1 run crashed. First suspect: video.',
    ]);
  });

  it('that went silent is missed, unless another of its name has started since', async () => {
    await using mulligan = await open({ name: 'hook', run: async () => {} });
    mulligan.work({ name: 'web-1' });
    await expect.poll(() => mulligan.workers.list()).toHaveLength(1);
    const [live] = await mulligan.workers.list();
    const worker = live as RegisteredWorker;
    const before = worker.startedAt - 60_000;
    const silent = { ...worker, state: 'silent' as const, startedAt: before, lastSeenAt: before };
    expect(texts({ workers: [silent] })).toEqual(['1 worker went silent within the hour.']);
    expect(texts({ workers: [silent, worker] })).toEqual([]);
    expect(texts({ workers: [silent, { ...worker, name: 'web-2' }] })).toHaveLength(1);
    expect(texts({ workers: [{ ...worker, loopDelayMs: 21_000 }] })).toEqual([
      '1 worker blocked the event loop for up to 21 s: leases are in danger.',
    ]);
  });
});

describe('a limit', () => {
  it('that is full for one key says so, and that others have room', async () => {
    const held = Promise.withResolvers<void>();
    const limit = { name: 'tenant', key: ({ tenant }: { tenant: string }) => tenant, concurrency: 1 };
    await using mulligan = await open({ name: 'hook', limit, run: () => held.promise } as never);
    for (const tenant of ['acme', 'acme', 'acme', 'globex']) await mulligan.enqueue('hook', { tenant });
    mulligan.work({ poll: '10ms' });
    await expect.poll(async () => (await mulligan.limits.show('tenant'))?.limit.running).toBe(2);
    const busiest = await mulligan.limits.show('tenant');
    expect(texts({ busiest })).toEqual(['Limit tenant is full for acme: 2 jobs wait. All other keys have room.']);
    held.resolve();
  });
});
