import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { defineJob, Mulligan } from '../../src/index.ts';
import type { ClaimRequest } from '../../src/store/store.ts';
import { MemoryStore, VirtualClock } from '../../src/testing/index.ts';
import { anything, duration, goodName, mostly, name, optionsOf, recipes } from './arbitraries.ts';
import { hold } from './cases.ts';
import { allOrNothing, answerOf, watchRejections } from './rules.ts';

watchRejections();

const job = defineJob({ name: 'job', run: () => {} });

async function open(): Promise<{ mulligan: Mulligan; store: MemoryStore; clock: VirtualClock }> {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const mulligan = await Mulligan.open(store, { clock, jobs: [job], log: () => {} });
  await mulligan.enqueue(job, 1, { delay: '1h' });
  return { mulligan, store, clock };
}

/** Closing waits for timers of its own, which only fire when time moves. */
async function closing<T>(clock: VirtualClock, closed: Promise<T>): Promise<T> {
  let isOver = false;
  const over = closed.finally(() => (isOver = true));
  over.catch(() => {});
  while (!isOver) await clock.advance(100);
  return over;
}

const ofQueue = {
  weight: mostly(fc.double({ min: 0.001, max: 1_000, noNaN: true }), fc.double()),
  retryShare: mostly(fc.double({ min: 0, max: 1, noNaN: true }), fc.double()),
  maxRetriesInFlight: fc.integer({ min: 0, max: 5 }),
};

const options = optionsOf({
  queues: fc.oneof(
    fc.array(mostly(name, recipes(anything)), { maxLength: 3 }),
    fc.dictionary(goodName, recipes(optionsOf(ofQueue)), { maxKeys: 3 }),
  ),
  concurrency: fc.integer({ min: 0, max: 10_001 }),
  lease: fc.oneof(fc.constantFrom('1s', '30s', '365d', '366d', Number.MAX_SAFE_INTEGER), duration),
  retryShare: ofQueue.retryShare,
  maxRetriesInFlight: ofQueue.maxRetriesInFlight,
  poll: duration,
  unknownJobTimeout: duration,
  rejectedPayloadTimeout: duration,
  name: name,
});

/** What a worker asks a store for must be something that any store can answer. */
function expectSane({ leaseMs, limit, queues }: ClaimRequest, now: number): void {
  expect(Number.isSafeInteger(now + leaseMs)).toBe(true);
  expect(Number.isSafeInteger(limit) && limit >= 1).toBe(true);
  for (const { queue, share, retry } of queues) {
    expect([typeof queue, Number.isFinite(share), Number.isFinite(retry)]).toEqual(['string', true, true]);
  }
}

it('work starts a worker that can be stopped, or says what it expected', async () => {
  await hold(
    'work: options',
    fc.asyncProperty(options, async (recipe) => {
      const { mulligan, store, clock } = await open();
      const claim = vi.spyOn(store, 'claim');
      await allOrNothing(store, async () => {
        const worker = mulligan.work(recipe.make() as never);
        await clock.advance(0);
        await closing(clock, worker.stop({ grace: 0 }));
        for (const [request] of claim.mock.calls) expectSane(request, clock.now());
      });
      await closing(clock, mulligan.close({ grace: 0 }));
    }),
  );
});

it('stop stops, or rejects with what it expected and lets the worker work', async () => {
  await hold(
    'stop: options',
    fc.asyncProperty(optionsOf({ grace: duration }), async (recipe) => {
      const { mulligan, clock } = await open();
      const worker = mulligan.work();
      let stopping: Promise<void> | null = null;
      try {
        stopping = worker.stop(recipe.make() as never);
      } catch {}
      expect(stopping, 'a promise, for bad input too').not.toBeNull();
      await answerOf(() => closing(clock, stopping as Promise<void>));
      await closing(clock, mulligan.close({ grace: 0 }));
    }),
  );
});

it('close closes, or says what it expected and leaves the queue open', async () => {
  await hold(
    'close: options',
    fc.asyncProperty(optionsOf({ grace: duration }), fc.boolean(), async (recipe, withWorker) => {
      const { mulligan, store, clock } = await open();
      if (withWorker) mulligan.work();
      const answer = await answerOf(() => closing(clock, mulligan.close(recipe.make() as never)));
      if ('value' in answer) {
        expect(await answerOf(() => mulligan.enqueue(job, 2))).toMatchObject({ error: { code: 'CLOSED' } });
        return;
      }
      expect(answer.error.code).toBe('CONFIG');
      await mulligan.enqueue(job, 2);
      await closing(clock, mulligan.close({ grace: 0 }));
      expect(await answerOf(() => store.stats())).toMatchObject({ error: { code: 'CLOSED' } });
    }),
  );
});
