import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { backoffDelay, LONGEST_DELAY_MS } from './backoff.ts';
import { between, decorrelated, delayBefore, equal, full, type Random, spread } from './jitter.ts';
import type { Backoff, Jitter } from './policy.ts';

const low: Random = () => 0;
const high: Random = () => 1 - 2 ** -53;

/** A small generator of its own (mulberry32), so that a seed means the same delays for ever. */
function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe('each jitter reaches exactly its bounds', () => {
  test.each<[string, (random: Random) => number, number, number]>([
    ['full', (random) => full(1_000, random), 0, 1_000],
    ['equal', (random) => equal(1_000, random), 500, 1_000],
    ['equal of an odd delay', (random) => equal(7, random), 4, 7],
    ['spread 0.2', (random) => spread(1_000, 0.2, random), 800, 1_200],
    ['spread 0.1 of a delay too short for it', (random) => spread(7, 0.1, random), 7, 7],
    ['spread 0', (random) => spread(1_000, 0, random), 1_000, 1_000],
    ['spread 1', (random) => spread(1_000, 1, random), 0, 2_000],
    ['decorrelated, first time', (random) => decorrelated(100, null, random), 100, 300],
    ['decorrelated, later', (random) => decorrelated(100, 1_000, random), 100, 3_000],
    ['decorrelated, after a wait shorter than the base', (random) => decorrelated(100, 5, random), 100, 300],
    ['between', (random) => between(3, 5, random), 3, 5],
    ['between with a generator that answers 1', () => between(3, 5, () => 1), 5, 5],
  ])('%s', (_, draw, least, most) => {
    expect(draw(low)).toBe(least);
    expect(draw(high)).toBe(most);
  });
});

describe('delayBefore', () => {
  const exponential: Backoff = { kind: 'exponential', baseMs: 1_000, factor: 2, maxMs: 4_000 };
  const fixed: Backoff = { kind: 'fixed', baseMs: 1_000 };
  const table: Backoff = { kind: 'table', delaysMs: [1_000, 60_000] };

  test.each<[string, Backoff, Jitter, number, number | null, number, number]>([
    ['none is the backoff itself', exponential, 'none', 2, null, 2_000, 2_000],
    ['full', exponential, 'full', 2, null, 0, 2_000],
    ['equal', exponential, 'equal', 2, null, 1_000, 2_000],
    ['spread', exponential, { spread: 0.5 }, 2, null, 1_000, 3_000],
    ['spread stops at the cap', exponential, { spread: 0.5 }, 3, null, 2_000, 4_000],
    ['spread around a fixed delay goes both ways', fixed, { spread: 0.2 }, 9, null, 800, 1_200],
    ['spread around a table goes both ways', table, { spread: 1 }, 2, null, 0, 120_000],
    ['decorrelated starts at the base', exponential, 'decorrelated', 1, null, 1_000, 3_000],
    ['decorrelated stops at the cap', exponential, 'decorrelated', 2, 3_000, 1_000, 4_000],
    ['decorrelated around a fixed delay stays in its scale', fixed, 'decorrelated', 9, 3_000, 1_000, 3_000],
    ['decorrelated never waits less than the table says', table, 'decorrelated', 2, 1_000, 60_000, 180_000],
    ['decorrelated around a table stays in its scale', table, 'decorrelated', 2, 100_000, 60_000, 180_000],
  ])('%s', (_, backoff, jitter, n, previousDelayMs, least, most) => {
    expect(delayBefore({ backoff, jitter }, n, previousDelayMs, low)).toBe(least);
    expect(delayBefore({ backoff, jitter }, n, previousDelayMs, high)).toBe(most);
  });

  const delay = fc.oneof(fc.nat(10_000), fc.nat(LONGEST_DELAY_MS));
  const limits = fc.tuple(delay, delay).map(([a, b]) => ({ baseMs: Math.min(a, b), maxMs: Math.max(a, b) }));
  const backoffs = fc.oneof(
    fc
      .tuple(limits, fc.double({ min: 1, max: 100, noNaN: true }))
      .map(([one, factor]): Backoff => ({ kind: 'exponential', factor, ...one })),
    limits.map((one): Backoff => ({ kind: 'linear', ...one })),
    limits.map((one): Backoff => ({ kind: 'fibonacci', ...one })),
    delay.map((baseMs): Backoff => ({ kind: 'fixed', baseMs })),
    fc.array(delay, { minLength: 1 }).map((delaysMs): Backoff => ({ kind: 'table', delaysMs })),
  );
  const jitters = fc.oneof(
    fc.constantFrom<Jitter>('none', 'full', 'equal', 'decorrelated'),
    fc.double({ min: 0, max: 1, noNaN: true }).map((share): Jitter => ({ spread: share })),
  );
  const attempts = fc.integer({ min: 1, max: 10_000 });

  test('any policy waits a whole number of ms, never below 0, never above its cap', () => {
    fc.assert(
      fc.property(backoffs, jitters, attempts, fc.option(delay), fc.integer(), (backoff, jitter, n, previous, seed) => {
        const ms = delayBefore({ backoff, jitter }, n, previous, seeded(seed));
        expect(Number.isSafeInteger(ms)).toBe(true);
        expect(ms).toBeGreaterThanOrEqual(0);
        expect(ms).toBeLessThanOrEqual('maxMs' in backoff ? backoff.maxMs : LONGEST_DELAY_MS);
        const isShortening = jitter === 'none' || jitter === 'full' || jitter === 'equal';
        if (isShortening) expect(ms).toBeLessThanOrEqual(backoffDelay(backoff, n));
      }),
      { numRuns: 2_000 },
    );
  });

  test('the same seed gives the same delays', () => {
    fc.assert(
      fc.property(backoffs, jitters, fc.integer(), (backoff, jitter, seed) => {
        const series = (): number[] => {
          const random = seeded(seed);
          const waits: number[] = [];
          for (let n = 1; n <= 20; n++) waits.push(delayBefore({ backoff, jitter }, n, waits.at(-1) ?? null, random));
          return waits;
        };
        expect(series()).toEqual(series());
      }),
    );
  });

  test('full jitter is uniform: every tenth of the delay is drawn equally often', () => {
    const draws = 100_000;
    const buckets = new Array<number>(10).fill(0);
    const random = seeded(42);
    for (let i = 0; i < draws; i++) {
      const bucket = Math.floor(
        delayBefore({ backoff: { kind: 'fixed', baseMs: 9_999 }, jitter: 'full' }, 1, null, random) / 1_000,
      );
      buckets[bucket] = (buckets[bucket] as number) + 1;
    }
    const expected = draws / buckets.length;
    const chiSquare = buckets.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    // 27.9 is exceeded by chance once in a thousand, with 9 degrees of freedom.
    expect(chiSquare).toBeLessThan(27.9);
  });
});
