import { expect, it } from 'vitest';
import { fromNow, iso, pointInTime, span } from './time.ts';

it.each([
  [0, '0ms'],
  [999, '999ms'],
  [1_000, '1s'],
  [1_234, '1.2s'],
  [59_949, '59.9s'],
  [59_960, '1m'],
  [61_000, '1m 1s'],
  [3_599_700, '1h'],
  [3_661_000, '1h 1m'],
  [86_399_999, '1d'],
  [90_000_000, '1d 1h'],
  [257_490_000, '3d'],
])('%d ms is %s', (ms, text) => {
  expect(span(ms)).toBe(text);
});

it('formats a time relative to now', () => {
  expect(fromNow(10_000, 5_000)).toBe('in 5s');
  expect(fromNow(5_000, 10_000)).toBe('5s ago');
  expect(fromNow(5_000, 5_400)).toBe('now');
});

it('formats a time in full', () => {
  expect(pointInTime(0, 60_000)).toBe('1970-01-01T00:00:00.000Z (1m ago)');
  expect(iso(Number.MAX_SAFE_INTEGER)).toBe('9007199254740991');
});
