import { describe, expect, it, vi } from 'vitest';
import { defineJob } from './definition.ts';
import { StoreUnavailableError } from './errors.ts';
import type { LimitOptions } from './limit/options.ts';
import { Mulligan, type MulliganOptions } from './mulligan.ts';
import { defineSchedule } from './schedule-options.ts';
import { MemoryStore } from './store/memory/store.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

type Input = { readonly shop: string };

const shopJob = (limit: Omit<LimitOptions<Input>, 'name' | 'key'>, name = 'sync') =>
  defineJob<Input>({ name, limit: { name: 'shopify', key: ({ shop }) => shop, ...limit }, run() {} });

/** A store whose writes of limits are counted. It outlives the queues that are opened on it. */
function counted() {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const writes = vi.spyOn(store, 'writeLimits');
  const open = (options: MulliganOptions) => Mulligan.open(store, { clock, log: () => {}, ...options });
  return { clock, store, writes, open };
}

describe('Mulligan.open', () => {
  it('stores the limits of its definitions, and writes nothing when they are stored already', async () => {
    const { open, writes } = counted();
    const rate = { limit: 90, per: '10s' } as const;
    const mulligan = await open({ jobs: [shopJob({ concurrency: 2, rate })] });
    expect(await mulligan.limits.list()).toEqual([
      {
        name: 'shopify',
        code: { concurrency: 2, total: null, rate: { limit: 90, perMs: 10_000, burst: 2 } },
        set: null,
        settings: { concurrency: 2, total: null, rate: { limit: 90, perMs: 10_000, burst: 2 } },
        running: 0,
        waiting: 0,
        keysSet: 0,
      },
    ]);
    expect(writes).toHaveBeenCalledTimes(1);
    await open({ jobs: [shopJob({ concurrency: 2, rate }), defineJob({ name: 'other', run() {} })] });
    expect(writes).toHaveBeenCalledTimes(1);
  });

  it('changes a limit that code gives otherwise than before, and leaves what an operator set', async () => {
    const { open } = counted();
    const first = await open({ jobs: [shopJob({ concurrency: 2 })] });
    await first.limits.set('shopify', { total: 9 });
    const second = await open({ jobs: [shopJob({ concurrency: 4 })] });
    const [limit] = await second.limits.list();
    expect(limit).toMatchObject({
      code: { concurrency: 4 },
      set: { total: 9 },
      settings: { concurrency: 4, total: 9 },
    });
  });

  it('refuses two definitions that say different things of one limit', async () => {
    const { open, writes } = counted();
    const jobs = [shopJob({ concurrency: 2 }, 'sync'), shopJob({ concurrency: 3 }, 'price')];
    await expect(open({ jobs })).rejects.toThrow(
      /expected one meaning of the limit shopify, got two: sync says .*"concurrency":2.* price says .*"concurrency":3/,
    );
    await expect(
      open({ jobs: [shopJob({ total: 1 }), shopJob({ concurrency: () => 1, total: 1 }, 'b')] }),
    ).rejects.toThrow(
      /got two: sync says \{"concurrency":null,.*\}, b says \{"total":1,.*\} and a concurrency that is a function of the key\. Give/,
    );
    expect(writes).not.toHaveBeenCalled();
    await open({ jobs: [shopJob({ concurrency: 2 }, 'sync'), shopJob({ concurrency: 2 }, 'price')] });
  });

  it('gives all keys the concurrency of code, whatever was computed for them before or is by a process of an older deploy', async () => {
    const { open } = counted();
    const tiered = shopJob({ concurrency: () => 7 });
    const first = await open({ jobs: [tiered] });
    await first.enqueue(tiered, { shop: 'a' });
    expect(await concurrencyOf(first, 'a')).toBe(7);
    const second = await open({ jobs: [shopJob({ concurrency: 2 })] });
    await first.enqueue(tiered, { shop: 'b' });
    expect([await concurrencyOf(second, 'a'), await concurrencyOf(second, 'b')]).toEqual([2, 2]);
    // A deploy that is rolled back.
    await open({ jobs: [tiered] });
    expect([await concurrencyOf(first, 'a'), await concurrencyOf(first, 'b')]).toEqual([7, 7]);
  });

  it('leaves keys whose concurrency is not computed yet the one that held for all', async () => {
    const { open, writes } = counted();
    const fixed = shopJob({ concurrency: 2 });
    const first = await open({ jobs: [fixed] });
    await first.enqueue(fixed, { shop: 'a' });
    const tiered = shopJob({ concurrency: () => 7 });
    await open({ jobs: [tiered] });
    const before = writes.mock.calls.length;
    const second = await open({ jobs: [tiered] });
    expect(writes.mock.calls.length).toBe(before);
    await first.enqueue(fixed, { shop: 'b' });
    expect([await concurrencyOf(second, 'a'), await concurrencyOf(second, 'b')]).toEqual([2, 2]);
    await second.enqueue(tiered, { shop: 'a' });
    expect([await concurrencyOf(second, 'a'), await concurrencyOf(second, 'b')]).toEqual([7, 2]);
  });
});

async function concurrencyOf(mulligan: Mulligan, key: string): Promise<number | null | undefined> {
  return (await mulligan.limits.show('shopify', { key }))?.keys[0]?.settings.concurrency;
}

describe('an enqueue with a definition that the queue was not opened with', () => {
  const syncJob = (concurrency: number) => shopJob({ concurrency, onLimit: 'cancel-newest' });

  it('stores its limits first, once', async () => {
    const { open, writes } = counted();
    const mulligan = await open({});
    const job = syncJob(1);
    const answers = await Promise.all([1, 2, 3].map(() => mulligan.enqueue(job, { shop: 'a' })));
    expect(answers.map(({ existed }) => existed)).toEqual([false, true, true]);
    expect(await mulligan.enqueueMany(job, [{ input: { shop: 'a' } }])).toMatchObject([{ existed: true }]);
    expect(await mulligan.limits.list()).toMatchObject([{ name: 'shopify', code: { concurrency: 1 } }]);
    expect(writes).toHaveBeenCalledTimes(1);
  });

  it('leaves what a process has stored that was opened with the limit', async () => {
    const { open } = counted();
    await open({ jobs: [syncJob(4)] });
    const mulligan = await open({});
    await mulligan.enqueue(syncJob(2), { shop: 'a' });
    expect(await concurrencyOf(mulligan, 'a')).toBe(4);
  });

  it('stores its limits when the store is back, if it was away', async () => {
    const { open, store, clock } = counted();
    const mulligan = await open({});
    vi.spyOn(store, 'limits').mockRejectedValueOnce(new StoreUnavailableError('away'));
    const answers = Promise.all([1, 2].map(() => mulligan.enqueue(syncJob(1), { shop: 'a' })));
    await clock.advance(1_000);
    expect((await answers).filter(({ existed }) => existed).length).toBe(1);
  });
});

describe('a concurrency for each key', () => {
  const tiers: Record<string, number> = { gold: 5, free: 1 };
  const tiered = () => shopJob({ concurrency: (key) => tiers[key] ?? 2 });

  it('is stored before the jobs, once per key and value', async () => {
    const { open, store, writes } = counted();
    const order: string[] = [];
    writes.mockImplementation(async (all) => void order.push(...all.map(({ key }) => `tier ${key}`)));
    const enqueue = store.enqueue.bind(store);
    vi.spyOn(store, 'enqueue').mockImplementation((jobs) => {
      order.push('jobs');
      return enqueue(jobs);
    });
    const job = tiered();
    const mulligan = await open({});
    await mulligan.enqueue(job, { shop: 'gold' });
    await mulligan.enqueue(job, { shop: 'gold' });
    await mulligan.enqueueMany(job, [{ input: { shop: 'free' } }, { input: { shop: 'gold' } }]);
    expect(order).toEqual(['tier null', 'tier gold', 'jobs', 'jobs', 'tier free', 'jobs']);
    tiers.gold = 6;
    await mulligan.enqueue(job, { shop: 'gold' });
    tiers.gold = 5;
    expect(order.slice(-2)).toEqual(['tier gold', 'jobs']);
  });

  it('is not written again by another process', async () => {
    const { open, writes } = counted();
    const job = tiered();
    await (await open({ jobs: [job] })).enqueue(job, { shop: 'gold' });
    const other = await open({ jobs: [job] });
    const before = writes.mock.calls.length;
    await other.enqueue(job, { shop: 'gold' });
    expect(writes.mock.calls.length).toBe(before);
    const details = await other.limits.show('shopify', { key: 'gold' });
    expect(details?.keys).toMatchObject([
      { key: 'gold', code: { concurrency: 5 }, settings: { concurrency: 5 }, waiting: 2 },
    ]);
  });

  it('is stored for the job of a schedule', async () => {
    const { open } = counted();
    const job = tiered();
    const schedules = [defineSchedule({ name: 'nightly', job, input: { shop: 'free' }, every: '1h' })];
    const mulligan = await open({ jobs: [job], schedules });
    expect((await mulligan.limits.show('shopify', { key: 'free' }))?.keys).toMatchObject([
      { code: { concurrency: 1 } },
    ]);
  });

  it('refuses what is no number of jobs, before anything is stored', async () => {
    const { open, store } = counted();
    const mulligan = await open({});
    await expect(mulligan.enqueue(shopJob({ concurrency: () => 0 }), { shop: 'a' })).rejects.toThrow(
      /sync: limit shopify: concurrency: expected a whole number from 1/,
    );
    expect((await store.list({ limit: 1 })).length).toBe(0);
  });
});

describe('limits.set and limits.reset', () => {
  it('change one value and keep the others, and go back to what code says', async () => {
    const { open } = counted();
    const { limits } = await open({ jobs: [shopJob({ concurrency: 2, rate: { limit: 5, per: '1s' } })] });
    await limits.set('shopify', { concurrency: 4 });
    const changed = await limits.set('shopify', { rate: { limit: 20, per: '1m', burst: 3 } });
    expect(changed.limit.settings).toEqual({
      concurrency: 4,
      total: null,
      rate: { limit: 20, perMs: 60_000, burst: 3 },
    });
    const faster = await limits.set('shopify', { rate: { limit: 100, per: '1m' } });
    expect(faster.limit.settings.rate).toEqual({ limit: 100, perMs: 60_000, burst: 3 });
    const unbounded = await limits.set('shopify', { rate: null });
    expect(unbounded.limit.settings).toEqual({ concurrency: 4, total: null, rate: null });
    const reset = await limits.reset('shopify');
    expect(reset.limit).toMatchObject({ set: null, settings: { concurrency: 2, rate: { limit: 5 } } });
  });

  it('lose none of the values that several calls change at once', async () => {
    const { open } = counted();
    const { limits } = await open({ jobs: [shopJob({ concurrency: 2 })] });
    await Promise.all([
      limits.set('shopify', { concurrency: 4 }),
      limits.set('shopify', { total: 9 }),
      limits.set('shopify', { concurrency: 5 }, { key: 'gold' }),
      limits.set('shopify', { rate: { limit: 5, per: '1s' } }, { key: 'gold' }),
    ]);
    const gold = await limits.show('shopify', { key: 'gold' });
    expect(gold?.limit.set).toEqual({ concurrency: 4, total: 9 });
    expect(gold?.keys[0]?.set).toEqual({ concurrency: 5, rate: { limit: 5, perMs: 1_000, burst: 1 } });
  });

  it('change one key, which comes before what holds for all', async () => {
    const { open } = counted();
    const { limits } = await open({ jobs: [shopJob({ concurrency: 2 })] });
    await limits.set('shopify', { concurrency: 3 });
    const { limit, keys } = await limits.set('shopify', { concurrency: 8 }, { key: 'gold' });
    expect([limit.settings.concurrency, keys[0]?.settings.concurrency]).toEqual([3, 8]);
    expect((await limits.show('shopify', { key: 'other' }))?.keys).toEqual([
      expect.objectContaining({ key: 'other', settings: { concurrency: 3, total: null, rate: null }, running: 0 }),
    ]);
    await limits.set('shopify', { rate: { limit: 20, per: '1m', burst: 9 } });
    const ofKey = await limits.set('shopify', { rate: { limit: 30, per: '1m' } }, { key: 'silver' });
    expect(ofKey.keys[0]?.settings.rate?.burst).toBe(9);
    await limits.reset('shopify', { key: 'silver' });
    await limits.set('shopify', { rate: null });
    const after = await limits.reset('shopify', { key: 'gold' });
    expect(after.keys[0]?.settings.concurrency).toBe(3);
    expect(after.limit.set).toEqual({ concurrency: 3, rate: null });
  });

  it('know a key as its function returns it, and as it is listed', async () => {
    const { open } = counted();
    const job = shopJob({ concurrency: 2 });
    const mulligan = await open({ jobs: [job] });
    const long = 'x'.repeat(500);
    await mulligan.enqueue(job, { shop: long });
    const listed = (await mulligan.limits.show('shopify'))?.keys[0]?.key as string;
    expect(listed).toMatch(/^sha256:/);
    for (const key of [long, listed]) {
      expect((await mulligan.limits.show('shopify', { key }))?.keys[0]).toMatchObject({ key: listed, waiting: 1 });
    }
    expect((await mulligan.limits.set('shopify', { concurrency: 1 }, { key: 42 })).keys[0]?.key).toBe('42');
  });

  it('refuse an unknown name, an unknown value and a total for one key', async () => {
    const { open } = counted();
    const { limits } = await open({ jobs: [shopJob({ concurrency: 2 })] });
    expect(await limits.show('shopifi')).toBe(null);
    await expect(limits.set('shopifi', { concurrency: 1 })).rejects.toThrow(/got "shopifi"\. Did you mean shopify\?/);
    await expect(limits.reset('nope')).rejects.toThrow(/It is known once a process was opened/);
    await expect(limits.set(undefined as never, {})).rejects.toThrow(
      "limits.set: the limit's name: expected a text of 1 to 100 characters",
    );
    await expect(limits.set('shopify', {})).rejects.toThrow(/expected concurrency, total or rate, got none/);
    await expect(limits.set('shopify', { concurrency: -1 })).rejects.toThrow(/limits\.set: concurrency: expected/);
    await expect(limits.set('shopify', { rate: { limit: 2, per: '1s', burst: 3 } })).rejects.toThrow(/rate: burst/);
    await expect(limits.set('shopify', { total: 3 }, { key: 'a' })).rejects.toThrow(/total without a key/);
    await expect(limits.show('shopify', { key: {} as string })).rejects.toThrow(/limits\.show: key: expected a text/);
  });
});

describe('a changed limit', () => {
  it('holds for running workers at once: raised, more start; lowered, what runs goes on', async () => {
    const { clock, open } = counted();
    const ends: (() => void)[] = [];
    let most = 0;
    let running = 0;
    const job = defineJob<Input>({
      name: 'sync',
      limit: { name: 'shopify', key: ({ shop }) => shop, concurrency: 1 },
      async run() {
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => ends.push(resolve));
        running--;
      },
    });
    const mulligan = await open({ jobs: [job] });
    await mulligan.enqueueMany(
      job,
      Array.from({ length: 8 }, () => ({ input: { shop: 'a' } })),
    );
    const worker = mulligan.work({ poll: '1h' });
    await clock.advance(100);
    expect(running).toBe(1);
    await mulligan.limits.set('shopify', { concurrency: 4 });
    await clock.advance(2_000);
    expect(running).toBe(4);
    await mulligan.limits.set('shopify', { concurrency: 2 });
    await clock.advance(2_000);
    expect(running).toBe(4);
    most = 0;
    for (let ended = 0; ended < 3; ended++) {
      ends.shift()?.();
      await clock.advance(100);
    }
    expect(running).toBe(2);
    while (ends.length > 0) {
      ends.shift()?.();
      await clock.advance(100);
    }
    expect(await mulligan.jobs.count({ state: 'completed' })).toMatchObject({ count: 8 });
    const stopped = worker.stop();
    await clock.advance(1_000);
    await stopped;
  });
});
