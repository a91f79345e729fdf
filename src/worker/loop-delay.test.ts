import { expect, it } from 'vitest';
import { systemClock, type Timer } from '../clock.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { LoopDelay } from './loop-delay.ts';

it('the longest delay is kept for minutes, then forgotten', async () => {
  let sample: (lateMs: number) => void = () => {};
  let isWatched = true;
  class WatchedClock extends VirtualClock {
    watchLoop(callback: (lateMs: number) => void): Timer {
      sample = callback;
      return {
        cancel() {
          isWatched = false;
        },
      };
    }
  }
  const clock = new WatchedClock();
  const delay = new LoopDelay(clock);
  delay.start();
  expect(delay.longestMs).toBe(0);
  sample(7_000.4);
  sample(3);
  expect(delay.longestMs).toBe(7_000);
  await clock.advance(150_000);
  sample(12);
  expect(delay.longestMs).toBe(7_000);
  await clock.advance(150_000);
  sample(3);
  expect(delay.longestMs).toBe(12);
  delay.stop();
  expect(isWatched).toBe(false);
});

it('there is none under a clock whose time is not that of the event loop', () => {
  const clock = new VirtualClock();
  const delay = new LoopDelay(clock);
  delay.start();
  expect(delay.longestMs).toBeNull();
  expect(clock.pending).toBe(0);
});

it('the clock of the system notices code that blocks the event loop', async () => {
  const noticed = Promise.withResolvers<void>();
  const watch = systemClock.watchLoop?.((lateMs) => {
    if (lateMs > 100) noticed.resolve();
  });
  const endsAt = systemClock.monotonic() + 250;
  while (systemClock.monotonic() < endsAt);
  await noticed.promise;
  watch?.cancel();
});
