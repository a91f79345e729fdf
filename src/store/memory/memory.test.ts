import { describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { ConfigError } from '../../errors.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import {
  bury,
  complete,
  die,
  newJob,
  newJobs,
  quota,
  redrive,
  retryIn,
  settleOne,
  startOne,
} from '../conformance/builders.ts';
import { type StoreHarness, storeConformance } from '../conformance/index.ts';
import type { ClaimedJob } from '../store.ts';
import { MemoryStore } from './store.ts';

function openMemory(): StoreHarness & { clock: VirtualClock; store: MemoryStore } {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  return { clock, store, advance: (ms) => clock.advance(ms), close: () => store.close() };
}

describe('the memory store keeps the contract', () => {
  for (const { verb, name, run } of storeConformance(openMemory)) {
    it(`${verb}: ${name}`, run);
  }
});

describe('the conformance suite', () => {
  it('refuses to skip a case it does not know', () => {
    expect(() => storeConformance(openMemory, { skip: { 'no such case': 'because' } })).toThrow(ConfigError);
  });

  it('hands out a skipped case with its reason', () => {
    const name = 'an empty store has no rows';
    const skipped = storeConformance(openMemory, { skip: { [name]: 'because' } }).filter((one) => one.skip !== null);
    expect(skipped).toMatchObject([{ verb: 'stats', name, skip: 'because' }]);
  });

  it('closes the store of a case that failed', async () => {
    let closed = 0;
    const open = (): StoreHarness => {
      const harness = openMemory();
      const store = new Proxy(harness.store, { get: () => () => Promise.reject(new Error('broken')) });
      return { ...harness, store, close: () => void closed++ };
    };
    await expect(storeConformance(open)[0]?.run()).rejects.toThrow('broken');
    expect(closed).toBe(1);
  });
});

describe('the memory store', () => {
  it('hands out frozen policies, errors and ledger rows, which no caller can change', async () => {
    const { store } = openMemory();
    await settleOne(store, await startOne(store), die());
    const [job] = await store.list({ limit: 1 });
    const [record] = await store.runs(job?.id as string);
    for (const part of [job?.policy, job?.policy.backoff, job?.lastError, record, record?.decision]) {
      expect(part).toBeTypeOf('object');
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  it('claims nothing early when its clock steps back', async () => {
    const { store, clock } = openMemory();
    const first = newJob({ priority: 0 });
    await store.enqueue([first, newJob({ delayMs: 1_000 }), newJob({ delayMs: 5_000, priority: 0 })]);
    const request = { worker: 'w', leaseMs: 1_000, limit: 1, queues: [quota()] };
    await clock.advance(6_000);
    // All three are due, and the store has seen that they are.
    expect((await store.claim(request)).jobs).toMatchObject([{ id: first.id }]);
    clock.step(-3_000);
    expect((await store.claim(request)).jobs).toMatchObject([{ priority: 5 }]);
    const { jobs, now, nextDueAt } = await store.claim(request);
    expect(jobs).toEqual([]);
    expect(nextDueAt).toBe(now + 2_000);
    clock.step(3_000);
    expect((await store.claim(request)).jobs).toMatchObject([{ priority: 0 }]);
  });

  it('hints no more to a listener that another one stopped', async () => {
    const { store } = openMemory();
    store.onWork(() => stop());
    const stop = store.onWork(() => expect.unreachable());
    await store.enqueue([newJob()]);
    await new Promise(setImmediate);
  });

  describe('hints', () => {
    async function hintsOf(store: MemoryStore, write: () => Promise<unknown>): Promise<number> {
      await new Promise(setImmediate);
      let heard = 0;
      const stop = store.onWork(() => heard++);
      await write();
      await new Promise(setImmediate);
      stop();
      return heard;
    }

    it('at nothing that no worker could claim or wait for', async () => {
      const { store } = openMemory();
      const [first, second] = [await startOne(store), await startOne(store)];
      expect(await hintsOf(store, () => settleOne(store, first, complete))).toBe(0);
      expect(await hintsOf(store, () => settleOne(store, second, retryIn(1_000)))).toBe(0);
      const dead = await bury(store);
      expect(await hintsOf(store, () => redrive(store, { ids: [] }))).toBe(0);
      expect(await hintsOf(store, () => redrive(store, { ids: [dead] }))).toBe(1);
    });

    it('at the end of a retry, which may leave room for another one', async () => {
      const { store } = openMemory();
      await settleOne(store, await startOne(store), retryIn(0));
      const [retry] = (await store.claim({ worker: 'w', leaseMs: 1_000, limit: 1, queues: [quota()] })).jobs;
      expect(await hintsOf(store, () => settleOne(store, retry as ClaimedJob, complete))).toBe(1);
    });

    it('at nothing once it is closed', async () => {
      const { store } = openMemory();
      expect(
        await hintsOf(store, async () => {
          const enqueued = store.enqueue([newJob()]);
          await store.close();
          await enqueued;
        }),
      ).toBe(0);
    });
  });

  it('reckons with the time of the system when it is given no clock', async () => {
    const before = systemClock.now();
    const { now } = await new MemoryStore().stats();
    expect(now).toBeGreaterThanOrEqual(before);
    expect(now).toBeLessThanOrEqual(systemClock.now());
  });

  it('hints once for the writes of one tick', async () => {
    const { store } = openMemory();
    let heard = 0;
    store.onWork(() => heard++);
    await Promise.all(Array.from({ length: 10 }, () => store.enqueue(newJobs(2))));
    await new Promise(setImmediate);
    expect(heard).toBe(1);
  });
});
