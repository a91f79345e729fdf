import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../errors.ts';
import { LONGEST_DELAY_MS } from './backoff.ts';
import { validateRetryOptions } from './options.ts';
import type { BackoffOptions, RetryOptions } from './policy.ts';
import { defaultPolicy, resolvePolicy } from './resolve.ts';

test('the default: 4 attempts, 500 ms doubling up to 30 s, full jitter, no deadline, 3 crashes', () => {
  const policy = {
    maxAttempts: 4,
    backoff: { kind: 'exponential', baseMs: 500, factor: 2, maxMs: 30_000 },
    jitter: 'full',
    deadlineMs: null,
    maxCrashes: 3,
    maxRuns: 10_000,
  };
  expect(defaultPolicy).toEqual(policy);
  expect(resolvePolicy({})).toEqual({ policy, capped: null });
});

describe('resolvePolicy', () => {
  test('takes each field from the strongest level that gives it', () => {
    const { policy } = resolvePolicy({
      job: { maxAttempts: 9 },
      definition: { maxAttempts: 8, jitter: 'none', deadline: '1h' },
      queue: { maxAttempts: 7, jitter: 'equal', deadline: '2h', maxCrashes: 5, backoff: { kind: 'fixed', base: '1s' } },
    });
    expect(policy).toEqual({
      maxAttempts: 9,
      jitter: 'none',
      deadlineMs: 3_600_000,
      maxCrashes: 5,
      maxRuns: 10_000,
      backoff: { kind: 'fixed', baseMs: 1_000 },
    });
  });

  test('a job may run as often as it has attempts, whatever maxRuns says', () => {
    const runs = (job: RetryOptions, hardCap?: number) => resolvePolicy({ job, hardCap }).policy.maxRuns;
    expect(runs({ maxRuns: 7 })).toBe(7);
    expect(runs({ maxRuns: 7, maxAttempts: 8 })).toBe(8);
    expect(runs({ maxAttempts: 20_000 })).toBe(20_000);
    expect(runs({ maxAttempts: 20_000 }, 5)).toBe(10_000);
  });

  test('a backoff replaces the lower one as a whole', () => {
    const { policy } = resolvePolicy({
      job: { backoff: { kind: 'exponential', base: '1s' } },
      definition: { backoff: { kind: 'exponential', base: '2s', factor: 5, max: '9s' } },
    });
    expect(policy.backoff).toEqual({ kind: 'exponential', baseMs: 1_000, factor: 2, maxMs: LONGEST_DELAY_MS });
  });

  test('maxRetries and maxAttempts of different levels resolve by level', () => {
    expect(resolvePolicy({ job: { maxRetries: 0 }, definition: { maxAttempts: 8 } }).policy.maxAttempts).toBe(1);
    expect(resolvePolicy({ job: { maxAttempts: 2 }, queue: { maxRetries: 8 } }).policy.maxAttempts).toBe(2);
    expect(resolvePolicy({ definition: { maxRetries: 3 } }).policy.maxAttempts).toBe(4);
  });

  test('an option that is undefined is as good as left out', () => {
    const options = { maxAttempts: undefined, backoff: undefined, deadline: undefined } as unknown as RetryOptions;
    expect(resolvePolicy({ job: options }).policy).toEqual(defaultPolicy);
  });

  test('null lifts the deadline of a lower level', () => {
    expect(resolvePolicy({ job: { deadline: null }, definition: { deadline: '1h' } }).policy.deadlineMs).toBeNull();
  });

  test('a hard cap lowers the attempts, and the result reports it', () => {
    const capped = resolvePolicy({ job: { maxAttempts: 9 }, hardCap: 5 });
    expect(capped.policy.maxAttempts).toBe(5);
    expect(capped.capped).toEqual({ asked: 9, hardCap: 5 });
    expect(resolvePolicy({ job: { maxAttempts: 5 }, hardCap: 5 }).capped).toBeNull();
    expect(resolvePolicy({ hardCap: 3 }).capped).toEqual({ asked: 4, hardCap: 3 });
    expect(() => resolvePolicy({ hardCap: 0 })).toThrow(/^hardCap: expected a whole number of at least 1, got 0/);
  });

  test('names the level a mistake is on', () => {
    const bad = { maxAttempts: 0 };
    expect(() => resolvePolicy({ job: bad })).toThrow(/^retry\.maxAttempts:/);
    expect(() => resolvePolicy({ definition: bad })).toThrow(/^definition\.retry\.maxAttempts:/);
    expect(() => resolvePolicy({ queue: bad })).toThrow(/^queue\.retry\.maxAttempts:/);
  });
});

test.each<[BackoffOptions, object]>([
  [
    { kind: 'exponential', base: '1s', factor: 3, max: '1m' },
    { kind: 'exponential', baseMs: 1_000, factor: 3, maxMs: 60_000 },
  ],
  [
    { kind: 'linear', base: 5 },
    { kind: 'linear', baseMs: 5, maxMs: LONGEST_DELAY_MS },
  ],
  [
    { kind: 'fibonacci', base: '1s', max: '1s' },
    { kind: 'fibonacci', baseMs: 1_000, maxMs: 1_000 },
  ],
  [
    { kind: 'fixed', base: 0 },
    { kind: 'fixed', baseMs: 0 },
  ],
  [
    { kind: 'fixed', base: '365d' },
    { kind: 'fixed', baseMs: LONGEST_DELAY_MS },
  ],
  [
    { kind: 'table', delays: ['1s', 50, '1m'] },
    { kind: 'table', delaysMs: [1_000, 50, 60_000] },
  ],
])('%o is understood', (backoff, data) => {
  const read = validateRetryOptions({ backoff }, 'retry');
  expect(read).toEqual({ backoff: data });
  expect(JSON.parse(JSON.stringify(read))).toEqual(read);
});

test('what is just within the limits is understood', () => {
  const delays = new Array(1_000).fill(1);
  expect(validateRetryOptions({ backoff: { kind: 'table', delays } }, 'retry').backoff).toMatchObject({
    delaysMs: delays,
  });
  expect(validateRetryOptions({ deadline: 1 }, 'retry')).toEqual({ deadlineMs: 1 });
});

describe('mistakes are reported by their path, with what to do', () => {
  const exponential = (more: object): object => ({ backoff: { kind: 'exponential', base: '1s', ...more } });
  test.each<[unknown, string | RegExp]>([
    [null, /^retry: expected an object with options, got null\. Valid options: maxAttempts, maxRetries/],
    ['standard', /^retry: expected an object/],
    [{ maxAttempt: 3 }, 'retry: there is no option "maxAttempt". Did you mean maxAttempts?'],
    [{ attempts: 3 }, 'Here it is maxAttempts.'],
    [
      { maxAttempts: 0 },
      /^retry\.maxAttempts: expected a whole number of at least 1, got 0\. .*1 means never retry\.$/,
    ],
    [{ maxAttempts: -1 }, '1 means never retry.'],
    [{ maxAttempts: 2.5 }, '1 means never retry.'],
    [{ maxAttempts: Infinity }, /^retry\.maxAttempts/],
    [{ maxAttempts: '3' }, /got "3"/],
    [{ maxRetries: -1 }, /^retry\.maxRetries: .* 0 means never retry\.$/],
    [{ maxRetries: Number.MAX_SAFE_INTEGER }, /^retry\.maxRetries/],
    [{ maxAttempts: 4, maxRetries: 3 }, /^retry: expected maxAttempts or maxRetries, got both\. Give one/],
    [{ maxCrashes: 0 }, /^retry\.maxCrashes: expected a whole number of at least 1, got 0/],
    [{ maxRuns: 0 }, /^retry\.maxRuns: expected a whole number of at least 1, got 0/],
    [{ deadline: 'soon' }, /^retry\.deadline: expected a duration/],
    [{ deadline: 0 }, /^retry\.deadline: expected a duration above 0/],
    [{ backoff: '1s' }, /^retry\.backoff: expected an object/],
    [
      { backoff: {} },
      /^retry\.backoff\.kind: expected one of exponential, linear, fixed, fibonacci, table, got undefined/,
    ],
    [{ backoff: { kind: 'exponental', base: 1 } }, 'Did you mean exponential?'],
    [exponential({ base: '5 s' }), /^retry\.backoff\.base: expected a duration/],
    [exponential({ base: '366d' }), 'retry.backoff.base: expected a delay of at most 365d, got "366d".'],
    [
      exponential({ max: '500ms' }),
      'retry.backoff.max: expected at least the base, 1s, got "500ms". Raise max or lower base.',
    ],
    [exponential({ factor: 0.5 }), /^retry\.backoff\.factor: expected a number of at least 1, got 0\.5/],
    [exponential({ factor: Infinity }), /^retry\.backoff\.factor/],
    [exponential({ facotr: 2 }), 'retry.backoff: there is no option "facotr". Did you mean factor?'],
    [
      { backoff: { kind: 'fixed', base: 1, max: 2 } },
      'retry.backoff of kind fixed: there is no option "max". Valid options: kind, base.',
    ],
    [{ backoff: { kind: 'linear', base: 1, factor: 2 } }, 'retry.backoff of kind linear: there is no option "factor".'],
    [
      exponential({ delays: [1] }),
      'retry.backoff of kind exponential: there is no option "delays". Valid options: kind, base, factor, max.',
    ],
    [
      { backoff: { kind: 'table', delays: [1], base: 1 } },
      'retry.backoff of kind table: there is no option "base". Valid options: kind, delays.',
    ],
    [
      { backoff: { kind: 'table', delays: [] } },
      /^retry\.backoff\.delays: expected a list of 1 to 1000 durations, got an empty array/,
    ],
    [{ backoff: { kind: 'table', delays: new Array(1_001).fill(1) } }, /got an array of 1001/],
    [{ backoff: { kind: 'table', delays: '1s' } }, /^retry\.backoff\.delays/],
    [{ backoff: { kind: 'table', delays: ['1s', -1] } }, /^retry\.backoff\.delays\[1\]: expected a duration/],
    [{ jitter: 'ful' }, 'retry.jitter: expected one of none, full, equal, decorrelated, got "ful". Did you mean full?'],
    [{ jitter: true }, 'retry.jitter: expected one of none, full, equal, decorrelated or { spread: 0.2 }, got true.'],
    [{ jitter: null }, 'retry.jitter: expected one of none, full, equal, decorrelated or { spread: 0.2 }, got null.'],
    [{ jitter: { spread: 1.1 } }, /^retry\.jitter\.spread: expected a number from 0 to 1, got 1\.1/],
    [{ jitter: { spread: -0.1 } }, /^retry\.jitter\.spread/],
    [{ jitter: {} }, /^retry\.jitter\.spread/],
    [{ jitter: { spred: 0.1 } }, 'Did you mean spread?'],
  ])('%o', (options, message) => {
    const check = (): unknown => validateRetryOptions(options, 'retry');
    expect(check).toThrow(ConfigError);
    expect(check).toThrow(message);
  });

  test('anything at all is either understood or a ConfigError', () => {
    const options = fc.record(
      {
        maxAttempts: fc.anything(),
        backoff: fc.oneof(
          fc.anything(),
          fc.record({ kind: fc.constantFrom('table', 'fixed', 'linear'), base: fc.anything(), delays: fc.anything() }),
        ),
        jitter: fc.anything(),
        deadline: fc.anything(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.anything(), options), (value) => {
        try {
          validateRetryOptions(value, 'retry');
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigError);
        }
      }),
    );
  });
});
