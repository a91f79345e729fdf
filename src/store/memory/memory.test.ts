import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../errors.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { die, newJob, newJobs, quota, settleOne, startOne } from '../conformance/builders.ts';
import { type StoreHarness, storeConformance } from '../conformance/index.ts';
import { MemoryStore } from './store.ts';

function openMemory(): StoreHarness & { clock: VirtualClock } {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  return { clock, store, advance: (ms) => clock.advance(ms), close: () => store.close() };
}

describe('the memory store keeps the contract', () => {
  for (const { verb, name, skip, run } of storeConformance(openMemory)) {
    it.skipIf(skip !== null)(`${verb}: ${name}`, run);
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

  it('hints once for the writes of one tick', async () => {
    const { store } = openMemory();
    let heard = 0;
    store.onWork(() => heard++);
    await Promise.all(Array.from({ length: 10 }, () => store.enqueue(newJobs(2))));
    await new Promise(setImmediate);
    expect(heard).toBe(1);
  });
});
