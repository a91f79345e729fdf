import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Rate } from './limit.ts';
import { afterChange, afterHandedBack, afterStarts, spaceOf, startsAt, startsNow } from './rate.ts';

const rates = fc
  .record({
    limit: fc.integer({ min: 1, max: 50 }),
    perMs: fc.integer({ min: 10, max: 10_000 }),
    part: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ limit, perMs, part }): Rate => ({ limit, perMs, burst: 1 + Math.floor(part * (limit - 1)) }));

/** Starts as many jobs as it may at each of these moments. */
function starts(rate: Rate, moments: readonly number[], demand: (now: number) => number): number[] {
  let nextStartAt = 0;
  return moments.flatMap((now) => {
    const count = Math.min(demand(now), startsNow(rate, nextStartAt, now));
    if (count > 0) nextStartAt = afterStarts(rate, nextStartAt, now, count);
    return Array<number>(count).fill(now);
  });
}

/** The largest number of them in any window, wherever it begins. */
function most(times: readonly number[], perMs: number): number {
  let first = 0;
  return times.reduce((largest, time, last) => {
    while ((times[first] as number) <= time - perMs) first++;
    return Math.max(largest, last - first + 1);
  }, 0);
}

describe('a rate', () => {
  it('holds in any window, whatever the demand and whenever it is asked', () => {
    fc.assert(
      fc.property(
        rates,
        fc.array(fc.tuple(fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 0, max: 60 })), { maxLength: 200 }),
        (rate, asked) => {
          let now = 1_000_000;
          const demand = new Map<number, number>();
          const moments = asked.map(([gap, jobs]) => {
            now += gap;
            demand.set(now, jobs);
            return now;
          });
          expect(
            most(
              starts(rate, moments, (at) => demand.get(at) ?? 0),
              rate.perMs,
            ),
          ).toBeLessThanOrEqual(rate.limit);
        },
      ),
    );
  });

  it('gives all of it to a key that always has work, but for what a burst costs', () => {
    const moments = Array.from({ length: 100_000 }, (_, ms) => 1_000_000 + ms);
    for (const burst of [1, 5, 10]) {
      const rate = { limit: 90, perMs: 10_000, burst };
      const all = starts(rate, moments, () => 1_000).length;
      expect(all).toBeGreaterThanOrEqual((90 - burst + 1) * 10 * 0.99);
    }
  });

  it('lets a burst start at once after a pause, and says when the next one may', () => {
    const rate = { limit: 10, perMs: 1_000, burst: 4 };
    expect(startsNow(rate, 0, 5_000)).toBe(4);
    const nextStartAt = afterStarts(rate, 0, 5_000, 4);
    expect(startsNow(rate, nextStartAt, 5_000)).toBe(0);
    const at = startsAt(rate, nextStartAt);
    expect(at).toBe(Math.ceil(5_000 + spaceOf(rate)));
    expect(startsNow(rate, nextStartAt, at - 1)).toBe(0);
    expect(startsNow(rate, nextStartAt, at)).toBe(1);
  });

  it('starts nothing early, however long the window is', () => {
    const rate = { limit: 1, perMs: 86_400_000, burst: 1 };
    const after = afterStarts(rate, 0, 5_000, 1);
    expect(startsNow(rate, after, 5_000 + 86_399_999)).toBe(0);
    expect(startsAt(rate, after)).toBe(5_000 + 86_400_000);
    expect(startsNow(rate, after, startsAt(rate, after))).toBe(1);
  });

  it('owes as many starts after it was changed as before, at the shorter space', () => {
    const slow = { limit: 3, perMs: 3 * 3_600_000, burst: 1 };
    const quick = { limit: 10, perMs: 1_000, burst: 1 };
    const after = afterStarts(slow, 0, 5_000, 1);
    expect(afterChange(slow, quick, after, 5_000)).toBe(5_100);
    expect(afterChange(slow, quick, after, 5_000 + 1_800_000)).toBe(5_000 + 1_800_000 + 50);
    const bursts = { limit: 10, perMs: 1_000, burst: 10 };
    expect(afterChange(bursts, quick, afterStarts(bursts, 0, 5_000, 10), 5_000)).toBe(6_000);
  });

  it('holds no start back for longer when it is lowered, or when there is none left', () => {
    const quick = { limit: 10, perMs: 1_000, burst: 10 };
    const slow = { limit: 1, perMs: 3_600_000, burst: 1 };
    const after = afterStarts(quick, 0, 5_000, 10);
    expect(afterChange(quick, slow, after, 5_000)).toBe(after);
    expect(afterChange(quick, null, after, 5_000)).toBe(5_000);
    expect(afterChange(null, slow, after, 5_000)).toBe(5_000);
    expect(afterChange(quick, slow, 4_000, 5_000)).toBe(4_000);
  });

  it('holds in any window of the new rate, when a burst that was taken is spread by the change', () => {
    const bursts = { limit: 10, perMs: 1_000, burst: 10 };
    const even = { limit: 10, perMs: 1_000, burst: 1 };
    let nextStartAt = afterChange(bursts, even, afterStarts(bursts, 0, 5_000, 10), 5_000);
    const times = Array<number>(10).fill(5_000);
    for (let now = 5_000; now < 9_000; now++) {
      if (startsNow(even, nextStartAt, now) === 0) continue;
      nextStartAt = afterStarts(even, nextStartAt, now, 1);
      times.push(now);
    }
    expect(most(times, even.perMs)).toBe(even.limit);
  });

  it('gives back a start that did not come about', () => {
    const rate = { limit: 2, perMs: 1_000, burst: 1 };
    const after = afterStarts(rate, 0, 5_000, 1);
    expect(startsNow(rate, afterHandedBack(rate, after, 0), 5_000)).toBe(1);
  });

  it('holds in any window, whenever starts are given back', () => {
    fc.assert(
      fc.property(
        rates,
        fc.array(fc.tuple(fc.integer({ min: 0, max: 1_000 }), fc.boolean()), { maxLength: 300 }),
        (rate, steps) => {
          let now = 1_000_000;
          let nextStartAt = 0;
          const held: number[] = [];
          for (const [gapMs, isGivenBack] of steps) {
            now += gapMs;
            const given = isGivenBack ? held.shift() : undefined;
            if (given !== undefined) nextStartAt = afterHandedBack(rate, nextStartAt, now - given);
            if (startsNow(rate, nextStartAt, now) === 0) continue;
            nextStartAt = afterStarts(rate, nextStartAt, now, 1);
            held.push(now);
            expect(most(held, rate.perMs)).toBeLessThanOrEqual(rate.limit);
          }
        },
      ),
    );
  });
});
