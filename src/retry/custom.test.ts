import { describe, expect, test } from 'vitest';
import { LONGEST_DELAY_MS } from './backoff.ts';
import { type BackoffArgs, customDelay, withCustomDelay } from './custom.ts';
import type { Failure } from './outcome.ts';

const args: BackoffArgs = { name: 'a', run: 2, attempt: 2, maxAttempts: 4, previousDelayMs: 10, error: new Error('x') };

test('a custom backoff gets the failed run and chooses a duration', () => {
  expect(customDelay(({ attempt }) => attempt * 1_000, args)).toEqual({ delayMs: 2_000, note: null });
  expect(customDelay(() => '1.5s', args)).toEqual({ delayMs: 1_500, note: null });
  expect(customDelay(() => 0, args)).toEqual({ delayMs: 0, note: null });
});

test('undefined and null leave the choice to the policy, without a note', () => {
  expect(customDelay(() => undefined, args)).toEqual({ delayMs: null, note: null });
  expect(customDelay(() => null, args)).toEqual({ delayMs: null, note: null });
});

describe('nonsense leaves the choice to the policy, with a note', () => {
  test.each<[unknown, string]>([
    [NaN, 'backoff() returned NaN, which is no duration'],
    [-1, 'backoff() returned -1, which is no duration'],
    [Infinity, 'backoff() returned Infinity, which is no duration'],
    ['soon', 'backoff() returned "soon", which is no duration'],
    [{}, 'backoff() returned an empty object, which is no duration'],
    [true, 'backoff() returned true, which is no duration'],
    [Promise.resolve(5), 'backoff() returned a promise; it must answer at once'],
  ])('%o', (answer, note) => {
    expect(customDelay(() => answer as number, args)).toEqual({ delayMs: null, note });
  });

  test('a throw, without the credentials in its message', () => {
    const thrower = (): never => {
      throw new TypeError('password=hunter2');
    };
    expect(customDelay(thrower, args)).toEqual({ delayMs: null, note: 'backoff() threw TypeError: password=***' });
  });

  test('a throw, with no more than the beginning of a long message', () => {
    const thrower = (): never => {
      throw new TypeError('x'.repeat(1_000));
    };
    expect(customDelay(thrower, args).note).toBe(`backoff() threw TypeError: ${'x'.repeat(200)}`);
  });
});

test('a delay beyond all measure is cut, with a note', () => {
  expect(customDelay(() => '1000d', args)).toEqual({ delayMs: LONGEST_DELAY_MS, note: 'backoff() was cut to 365d' });
  expect(customDelay(() => '365d', args)).toEqual({ delayMs: LONGEST_DELAY_MS, note: null });
});

test('a promise that rejects ends no process', async () => {
  const unhandled: unknown[] = [];
  const listen = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', listen);
  try {
    customDelay((() => Promise.reject(new Error('late'))) as never, args);
    // An unhandled rejection is reported once the microtasks have run dry.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('unhandledRejection', listen);
  }
  expect(unhandled).toEqual([]);
});

test('a failure takes up the delay and keeps the notes it had', () => {
  const failure: Failure = {
    error: { name: 'Error', message: 'x', code: null, status: null, stack: null },
    class: 'job',
    rule: 'default',
    retryAfterMs: 7,
    customDelayMs: null,
    note: 'classify() threw',
  };
  expect(withCustomDelay(failure, () => 5, args)).toEqual({ ...failure, customDelayMs: 5 });
  expect(withCustomDelay(failure, () => NaN, args).note).toBe(
    'classify() threw; backoff() returned NaN, which is no duration',
  );
  expect(withCustomDelay({ ...failure, note: null }, () => 5, args).note).toBeNull();
});
