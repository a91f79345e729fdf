import { expect, test } from 'vitest';
import { backoffDelay } from './backoff.ts';
import type { RetryOptions } from './policy.ts';
import { type PresetName, policies } from './presets.ts';
import { resolvePolicy } from './resolve.ts';

const exponential = (baseMs: number, factor: number, maxMs: number): object => ({
  kind: 'exponential',
  baseMs,
  factor,
  maxMs,
});
const YEAR_MS = 365 * 86_400_000;

test.each<[PresetName, object]>([
  ['standard', { maxAttempts: 4, backoff: exponential(500, 2, 30_000), jitter: 'full' }],
  ['financial', { maxAttempts: 6, backoff: exponential(1_000, 2, 60_000), jitter: 'full' }],
  ['lowLatency', { maxAttempts: 3, backoff: exponential(100, 2, 5_000), jitter: 'full' }],
  ['oneShot', { maxAttempts: 1 }],
  ['requeue', { maxAttempts: 5, backoff: exponential(1_000, 4, YEAR_MS), jitter: 'none' }],
  ['harbor', { maxAttempts: 25, backoff: exponential(200, 2, 5_000), jitter: { spread: 0.2 } }],
  ['chronos', { maxAttempts: 4, backoff: exponential(60_000, 2, 3_600_000), jitter: { spread: 0.2 } }],
  ['sweep', { maxAttempts: 3, backoff: { kind: 'fixed', baseMs: 10_000 }, jitter: 'none' }],
  ['patient', { maxAttempts: 20, jitter: 'full' }],
])('%s is what the table says', (name, policy) => {
  expect(resolvePolicy({ definition: policies[name] }).policy).toMatchObject({
    deadlineMs: null,
    maxCrashes: 3,
    maxRuns: 10_000,
    ...policy,
  });
});

const delays = (preset: PresetName, count: number): number[] => {
  const { backoff } = resolvePolicy({ definition: policies[preset] }).policy;
  return Array.from({ length: count }, (_, index) => backoffDelay(backoff, index + 1));
};

test('the delays the presets are known by', () => {
  expect(delays('standard', 7)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000]);
  expect(delays('requeue', 4)).toEqual([1_000, 4_000, 16_000, 64_000]);
  expect(delays('harbor', 6)).toEqual([200, 400, 800, 1_600, 3_200, 5_000]);
});

test('the delays of patient add up to nearly 3 days before jitter', () => {
  const days = delays('patient', 19).reduce((sum, ms) => sum + ms, 0) / 86_400_000;
  expect(days).toBeCloseTo(2.98, 2);
});

test('a preset is changed by spreading it', () => {
  const changed: RetryOptions = { ...policies.financial, maxAttempts: 8 };
  expect(resolvePolicy({ definition: changed }).policy).toMatchObject({ maxAttempts: 8, backoff: { baseMs: 1_000 } });
});

test('a preset cannot be changed in place', () => {
  expect(() => Object.assign(policies.standard, { maxAttempts: 9 })).toThrow(TypeError);
  expect(() => Object.assign(policies.standard.backoff as object, { base: 9 })).toThrow(TypeError);
});
