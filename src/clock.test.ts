import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { idMaker, nextTurn, systemClock } from './clock.ts';

const DAY_MS = 86_400_000;

describe('a timer of the system clock', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Days until it fires; null when it did not within a year. */
  async function firesAfter(delayMs: number): Promise<number | null> {
    let fired = false;
    const timer = systemClock.after(delayMs, () => {
      fired = true;
    });
    for (let day = 0; day <= 365; day++) {
      if (fired) return day;
      await vi.advanceTimersByTimeAsync(DAY_MS);
    }
    timer.cancel();
    return fired ? 365 : null;
  }

  it('fires after its delay, also when that is longer than Node.js can wait at once', async () => {
    expect(await firesAfter(DAY_MS)).toBe(1);
    expect(await firesAfter(20 * DAY_MS)).toBe(20);
    // Node.js alone would fire this one at once: 25 days do not fit into 31 bits.
    expect(await firesAfter(25 * DAY_MS)).toBe(25);
    expect(await firesAfter(90 * DAY_MS)).toBe(90);
  });

  it.each([0, 10, 30, 60, 89])('of 90 days can be cancelled after %i', async (days) => {
    let fired = false;
    const timer = systemClock.after(90 * DAY_MS, () => {
      fired = true;
    });
    await vi.advanceTimersByTimeAsync(days * DAY_MS);
    timer.cancel();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(100 * DAY_MS);
    expect(fired).toBe(false);
  });

  it('of no delay fires in the next turn, and can be cancelled before', async () => {
    const fired: string[] = [];
    systemClock.after(0, () => fired.push('kept'));
    systemClock.after(0, () => fired.push('cancelled')).cancel();
    expect(fired).toEqual([]);
    await vi.runAllTimersAsync();
    expect(fired).toEqual(['kept']);
  });
});

describe('the system clock', () => {
  it('never runs backwards, and draws from 0 to 1', () => {
    let last = systemClock.monotonic();
    for (let look = 0; look < 1_000; look++) {
      const now = systemClock.monotonic();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
      const drawn = systemClock.random();
      expect(drawn >= 0 && drawn < 1).toBe(true);
    }
  });

  it('runs everything that is ready before the next turn', async () => {
    const order: string[] = [];
    const turn = nextTurn(systemClock).then(() => order.push('turn'));
    await Promise.resolve().then(() => Promise.resolve().then(() => order.push('promise')));
    await turn;
    expect(order).toEqual(['promise', 'turn']);
  });
});

describe('ids', () => {
  const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

  it('are UUIDs of version 7 that carry the time', () => {
    const at = 1_767_225_600_123;
    const id = idMaker(
      () => at,
      (count) => new Uint8Array(count).fill(0xff),
    )();
    expect(id).toMatch(uuid7);
    expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(at);
  });

  it('are never the same twice', () => {
    const ids = Array.from({ length: 20_000 }, () => systemClock.newId());
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(uuid7);
  });

  it('sort in the order they were made, whatever the wall clock does', () => {
    const steps = fc.array(fc.integer({ min: -5_000, max: 5_000 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 50 }), (moves, perMove) => {
        let now = 1_767_225_600_000;
        const newId = idMaker(
          () => now,
          (count) => new Uint8Array(count),
        );
        const ids: string[] = [];
        for (const move of moves) {
          now += move;
          for (let made = 0; made < perMove; made++) ids.push(newId());
        }
        expect(ids).toEqual([...new Set(ids)].toSorted());
      }),
    );
  });

  it('stay in order and apart beyond 4,096 in one millisecond', () => {
    const newId = idMaker(
      () => 1_767_225_600_000,
      (count) => new Uint8Array(count),
    );
    const ids = Array.from({ length: 10_000 }, newId);
    expect(ids).toEqual([...new Set(ids)].toSorted());
  });
});
