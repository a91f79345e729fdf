import { defineJob } from '../../src/definition.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { MemoryStore } from '../../src/store/memory/store.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';

const MINUTES = 65;
const TROUBLE = { from: 38, until: 47 };

export interface Past {
  readonly store: MemoryStore;
  /** It goes on as real time does. */
  readonly clock: VirtualClock;
}

/** An hour of ordinary traffic with some minutes of trouble, on a clock that runs ahead until now. */
export async function past(): Promise<Past> {
  const clock = new VirtualClock({ startAt: Date.now() - MINUTES * 60_000, seed: 7 });
  const store = new MemoryStore({ clock });
  let minute = 0;
  const isTrouble = (): boolean => minute >= TROUBLE.from && minute < TROUBLE.until;
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => clock.after(ms, resolve));
  const chance = (share: number): boolean => clock.random() < share;
  const jobs = [
    defineJob<object>({ name: 'image.resize', run: () => sleep(80 + 200 * clock.random()) }),
    defineJob<object>({
      name: 'report.build',
      retry: { maxAttempts: 6, backoff: { kind: 'exponential', base: '4s', factor: 2 } },
      async run() {
        await sleep(900 + 2_500 * clock.random());
        if (chance(isTrouble() ? 0.7 : 0.03)) throw new Error('the warehouse closed the connection');
      },
    }),
    defineJob<object>({
      name: 'search.index',
      retry: { maxAttempts: 8, backoff: { kind: 'exponential', base: '2s', factor: 2 } },
      async run() {
        await sleep(30 + 60 * clock.random());
        if (chance(isTrouble() ? 0.5 : 0.02)) throw new Error('the index is locked');
      },
    }),
  ] as const;
  const mulligan = await Mulligan.open(store, { jobs, clock, log: () => {} });
  const worker = mulligan.work({ concurrency: 40, poll: '1s', name: 'past' });
  for (minute = 0; minute < MINUTES; minute++) {
    const wave = 1 + 0.5 * Math.sin(minute / 7) + 0.2 * clock.random();
    for (let part = 0; part < 6; part++) {
      const input = (count: number): { input: object }[] =>
        Array.from({ length: Math.round(count * wave) }, () => ({ input: {} }));
      await mulligan.enqueueMany(jobs[0], input(5));
      await mulligan.enqueueMany(jobs[1], input(2));
      await mulligan.enqueueMany(jobs[2], input(4));
      for (let step = 0; step < 5; step++) {
        await clock.advance(2_000);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
  }
  let isClosed = false;
  const closed = worker.stop({ grace: 0 }).finally(() => {
    isClosed = true;
  });
  // Stopping waits by the clock, too.
  while (!isClosed) {
    await clock.advance(50);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await closed;
  await clock.advance(Math.max(0, Date.now() - clock.now()));
  void followRealTime(clock);
  return { store, clock };
}

async function followRealTime(clock: VirtualClock): Promise<never> {
  for (;;) {
    await clock.advance(Math.max(0, Date.now() - clock.now()));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
