import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backoffDelay, LONGEST_DELAY_MS } from './backoff.ts';
import type { Backoff } from './policy.ts';

const delays = (backoff: Backoff, count: number): number[] =>
  Array.from({ length: count }, (_, index) => backoffDelay(backoff, index + 1));

test('exponential: base x factor^(n-1), up to the cap', () => {
  const backoff: Backoff = { kind: 'exponential', baseMs: 500, factor: 2, maxMs: 30_000 };
  expect(delays(backoff, 8)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  expect(delays({ ...backoff, factor: 1.5, baseMs: 1 }, 5)).toEqual([1, 2, 2, 3, 5]);
});

test('linear: base x n, up to the cap', () => {
  expect(delays({ kind: 'linear', baseMs: 60_000, maxMs: 200_000 }, 5)).toEqual([
    60_000, 120_000, 180_000, 200_000, 200_000,
  ]);
});

test('fixed: always the base', () => {
  expect(delays({ kind: 'fixed', baseMs: 10_000 }, 3)).toEqual([10_000, 10_000, 10_000]);
});

test('fibonacci: base x 1, 1, 2, 3, 5, ..., up to the cap', () => {
  expect(delays({ kind: 'fibonacci', baseMs: 100, maxMs: 2_000 }, 9)).toEqual([
    100, 100, 200, 300, 500, 800, 1_300, 2_000, 2_000,
  ]);
});

test('table: the n-th of the list, the last one repeating', () => {
  expect(delays({ kind: 'table', delaysMs: [5, 1, 9] }, 5)).toEqual([5, 1, 9, 9, 9]);
});

test('before any attempt is spent, every backoff is at its first delay', () => {
  const limits = { baseMs: 100, maxMs: 2_000 };
  for (const n of [0, -1]) {
    expect(backoffDelay({ kind: 'exponential', factor: 2, ...limits }, n)).toBe(100);
    expect(backoffDelay({ kind: 'linear', ...limits }, n)).toBe(100);
    expect(backoffDelay({ kind: 'fibonacci', ...limits }, n)).toBe(100);
    expect(backoffDelay({ kind: 'table', delaysMs: [5, 1, 9] }, n)).toBe(5);
  }
});

test.each([[10_000], [1e9], [Number.MAX_SAFE_INTEGER]])(
  'after %d attempts every growing backoff sits at its cap',
  (n) => {
    const maxMs = LONGEST_DELAY_MS;
    expect(backoffDelay({ kind: 'exponential', baseMs: 1, factor: 10, maxMs }, n)).toBe(maxMs);
    expect(backoffDelay({ kind: 'exponential', baseMs: 1, factor: 1, maxMs }, n)).toBe(1);
    expect(backoffDelay({ kind: 'exponential', baseMs: 0, factor: 2, maxMs }, n)).toBe(0);
    expect(backoffDelay({ kind: 'fibonacci', baseMs: 1, maxMs }, n)).toBe(maxMs);
    expect(backoffDelay({ kind: 'linear', baseMs: maxMs, maxMs }, n)).toBe(maxMs);
  },
);

const delay = fc.oneof(fc.nat(100_000), fc.nat(LONGEST_DELAY_MS));
const ordered = fc.tuple(delay, delay).map(([a, b]) => ({ baseMs: Math.min(a, b), maxMs: Math.max(a, b) }));
const growing = fc.oneof(
  fc
    .record({
      limits: ordered,
      factor: fc.oneof(fc.integer({ min: 1, max: 10 }), fc.double({ min: 1, max: 1e300, noNaN: true })),
    })
    .map(({ limits, factor }): Backoff => ({ kind: 'exponential', factor, ...limits })),
  ordered.map((limits): Backoff => ({ kind: 'linear', ...limits })),
  ordered.map((limits): Backoff => ({ kind: 'fibonacci', ...limits })),
  delay.map((baseMs): Backoff => ({ kind: 'fixed', baseMs })),
);
const table = fc.array(delay, { minLength: 1 }).map((delaysMs): Backoff => ({ kind: 'table', delaysMs }));
const attempts = fc.integer({ min: 1, max: 10_000 });

test('delays are whole, never negative and never above the cap', () => {
  fc.assert(
    fc.property(fc.oneof(growing, table), attempts, (backoff, n) => {
      const ms = backoffDelay(backoff, n);
      expect(Number.isSafeInteger(ms)).toBe(true);
      expect(ms).toBeGreaterThanOrEqual(0);
      expect(ms).toBeLessThanOrEqual('maxMs' in backoff ? backoff.maxMs : LONGEST_DELAY_MS);
    }),
    { numRuns: 1_000 },
  );
});

test('delays never shrink from one attempt to the next, and start at the base', () => {
  fc.assert(
    fc.property(growing, attempts, (backoff, n) => {
      expect(backoffDelay(backoff, n + 1)).toBeGreaterThanOrEqual(backoffDelay(backoff, n));
      expect(backoffDelay(backoff, 1)).toBe((backoff as { baseMs: number }).baseMs);
    }),
    { numRuns: 1_000 },
  );
});
