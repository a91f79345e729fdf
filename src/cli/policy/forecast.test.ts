import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Jitter, RetryPolicy } from '../../retry/policy.ts';
import { defaultPolicy } from '../../retry/resolve.ts';
import { forecast, totalsOf } from './forecast.ts';

const withJitter = (jitter: Jitter): RetryPolicy => ({ ...defaultPolicy, jitter });
const half = (): number => 0.5;

it.each<[Jitter, [number, number][]]>([
  [
    'none',
    [
      [500, 500],
      [1_000, 1_000],
      [2_000, 2_000],
    ],
  ],
  [
    'full',
    [
      [0, 500],
      [0, 1_000],
      [0, 2_000],
    ],
  ],
  [
    'equal',
    [
      [250, 500],
      [500, 1_000],
      [1_000, 2_000],
    ],
  ],
  [
    { spread: 0.2 },
    [
      [400, 600],
      [800, 1_200],
      [1_600, 2_400],
    ],
  ],
  [
    'decorrelated',
    [
      [500, 1_500],
      [500, 4_500],
      [500, 13_500],
    ],
  ],
])('%j jitter can make the waits this short and this long', (jitter, ranges) => {
  const waits = forecast(withJitter(jitter), 3, half);
  expect(waits.map(({ minMs, maxMs }) => [minMs, maxMs])).toEqual(ranges);
  expect(waits.map(({ delayMs }) => delayMs)).toEqual([500, 1_000, 2_000]);
});

it('adds up the waits', () => {
  expect(totalsOf(forecast(withJitter('equal'), 3, half))).toEqual({
    totalMs: 3_500,
    shortestTotalMs: 1_750,
    longestTotalMs: 3_500,
  });
  expect(totalsOf([])).toEqual({ totalMs: 0, shortestTotalMs: 0, longestTotalMs: 0 });
});

it('draws no sample outside the range it gives', () => {
  const jitter = fc.constantFrom<Jitter>('none', 'full', 'equal', 'decorrelated', { spread: 0.5 });
  const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(jitter, fc.array(chance, { minLength: 12, maxLength: 12 }), (kind, draws) => {
      const left = [...draws];
      for (const { minMs, sampleMs, maxMs } of forecast(withJitter(kind), 12, () => left.pop() ?? 0)) {
        expect(sampleMs).toBeGreaterThanOrEqual(minMs);
        expect(sampleMs).toBeLessThanOrEqual(maxMs);
      }
    }),
  );
});
