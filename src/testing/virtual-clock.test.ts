import { describe, expect, it } from 'vitest';
import { ConfigError } from '../errors.ts';
import { VirtualClock } from './virtual-clock.ts';

describe('VirtualClock', () => {
  it('stands still until it is advanced', async () => {
    const clock = new VirtualClock({ startAt: 1_000 });
    await Promise.resolve();
    expect(clock.now()).toBe(1_000);
    await clock.advance(250);
    expect(clock.now()).toBe(1_250);
    expect(clock.monotonic()).toBe(250);
  });

  it('fires timers by due time, then in the order they were set', async () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    clock.after(20, () => fired.push('c'));
    clock.after(10, () => fired.push('a'));
    clock.after(10, () => fired.push('b'));
    clock.after(31, () => fired.push('late'));
    await clock.advance(30);
    expect(fired).toEqual(['a', 'b', 'c']);
    expect(clock.pending).toBe(1);
  });

  it('shows each timer the time at which it was due', async () => {
    const clock = new VirtualClock({ startAt: 0 });
    const seen: number[] = [];
    for (const delayMs of [5, 1, 3]) clock.after(delayMs, () => seen.push(clock.now()));
    await clock.advance(10);
    expect(seen).toEqual([1, 3, 5]);
  });

  it('fires timers that were set on the way, when they fall due in time', async () => {
    const clock = new VirtualClock({ startAt: 0 });
    const ticks: number[] = [];
    const tick = (): void => {
      ticks.push(clock.now());
      clock.after(10, tick);
    };
    clock.after(10, tick);
    await clock.advance(35);
    expect(ticks).toEqual([10, 20, 30]);
  });

  it('lets awaiting code go on between two timers', async () => {
    const clock = new VirtualClock({ startAt: 0 });
    const sleep = (ms: number): Promise<void> => new Promise((resolve) => clock.after(ms, resolve));
    const log: string[] = [];
    const slow = async (): Promise<void> => {
      for (const step of [1, 2, 3]) {
        await sleep(10);
        for (let hop = 0; hop < 50; hop++) await null;
        log.push(`step ${step} at ${clock.now()}`);
      }
    };
    const done = slow();
    clock.after(25, () => log.push('between'));
    await clock.advance(30);
    await done;
    expect(log).toEqual(['step 1 at 10', 'step 2 at 20', 'between', 'step 3 at 30']);
  });

  it('never fires a cancelled timer', async () => {
    const clock = new VirtualClock();
    const timer = clock.after(10, () => expect.unreachable());
    clock.after(5, () => timer.cancel());
    await clock.advance(20);
    timer.cancel();
    expect(clock.pending).toBe(0);
  });

  it('steps the wall clock without moving monotonic time or timers', async () => {
    const clock = new VirtualClock({ startAt: 10_000 });
    let fired = 0;
    clock.after(100, () => fired++);
    clock.step(-5_000);
    expect(clock.now()).toBe(5_000);
    clock.set(99_000);
    expect(clock.now()).toBe(99_000);
    expect(clock.monotonic()).toBe(0);
    await clock.advance(99);
    expect(fired).toBe(0);
    await clock.advance(1);
    expect(fired).toBe(1);
    expect(clock.now()).toBe(99_100);
  });

  it('repeats its random numbers and ids under the same seed, and only then', () => {
    const draw = (seed: number): unknown[] => {
      const clock = new VirtualClock({ seed });
      return [clock.random(), clock.newId(), clock.random(), clock.newId()];
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });

  it('keeps its random numbers the same however many ids are made', () => {
    const [plain, busy] = [new VirtualClock({ seed: 3 }), new VirtualClock({ seed: 3 })];
    for (let made = 0; made < 10; made++) busy.newId();
    expect(busy.random()).toBe(plain.random());
  });

  it('draws evenly from [0, 1)', () => {
    const clock = new VirtualClock({ seed: 42 });
    const tenths = new Array<number>(10).fill(0);
    for (let draw = 0; draw < 10_000; draw++) {
      const value = clock.random();
      expect(value).toBeGreaterThanOrEqual(0);
      expect(value).toBeLessThan(1);
      tenths[Math.floor(value * 10)] = (tenths[Math.floor(value * 10)] as number) + 1;
    }
    for (const count of tenths) expect(Math.abs(count - 1_000)).toBeLessThan(150);
  });

  it('makes UUIDv7 ids that sort in the order they were made', async () => {
    const clock = new VirtualClock();
    const ids: string[] = [];
    for (let made = 0; made < 5_000; made++) ids.push(clock.newId());
    await clock.advance(10);
    ids.push(clock.newId());
    expect(ids.toSorted()).toEqual(ids);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it('passes on what a timer throws and can be advanced again', async () => {
    const clock = new VirtualClock({ startAt: 0 });
    clock.after(10, () => {
      throw new RangeError('from the timer');
    });
    await expect(clock.advance(20)).rejects.toThrow(RangeError);
    expect(clock.now()).toBe(10);
    await clock.advance(10);
    expect(clock.now()).toBe(20);
  });

  it('refuses to go back, to advance twice at once, and to spin in one instant', async () => {
    const clock = new VirtualClock();
    await expect(clock.advance(-1)).rejects.toThrow(ConfigError);
    await expect(clock.advance(Number.NaN)).rejects.toThrow(ConfigError);
    await expect(clock.advance(Number.POSITIVE_INFINITY)).rejects.toThrow(ConfigError);
    const first = clock.advance(10);
    await expect(clock.advance(10)).rejects.toThrow(/under way/);
    await first;
    const spin = (): void => void clock.after(0, spin);
    spin();
    await expect(clock.advance(1)).rejects.toThrow(/one instant/);
  });

  it('treats a delay that is no number, or below zero, as none, and an endless one as never', async () => {
    const clock = new VirtualClock();
    let fired = 0;
    clock.after(Number.NaN, () => fired++);
    clock.after(-5, () => fired++);
    clock.after(Number.POSITIVE_INFINITY, () => expect.unreachable());
    await clock.advance(0);
    expect(fired).toBe(2);
    expect(clock.pending).toBe(1);
  });
});
