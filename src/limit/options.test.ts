import { describe, expect, it } from 'vitest';
import { defineJob } from '../definition.ts';
import { checkLimitChange, checkLimits, defaultBurst, limitsOf } from './options.ts';

const rate = { limit: 10, per: '1s' } as const;

describe('the limits of a definition', () => {
  it('are read by name, each value that is left out as no bound', () => {
    const limits = checkLimits(
      [
        { name: 'b', total: 3 },
        { name: 'a', key: () => 'k', rate: { limit: 10, per: '1m', burst: 2 } },
      ],
      'limit',
    );
    expect(limits).toEqual([
      {
        ...{ name: 'a', key: expect.any(Function), concurrencyOf: null, onLimit: 'wait' },
        settings: { concurrency: null, total: null, rate: { limit: 10, perMs: 60_000, burst: 2 } },
      },
      {
        ...{ name: 'b', key: null, concurrencyOf: null, onLimit: 'wait' },
        settings: { concurrency: null, total: 3, rate: null },
      },
    ]);
  });

  it.each([
    [{ name: 'a' }, 'expected concurrency, total or rate, got none of them.'],
    [{ concurrency: 1 }, 'limit: name: expected a text of 1 to 100 characters'],
    [{ name: 'a', concurrency: 0 }, 'limit: concurrency: expected a whole number from 1'],
    [{ name: 'a', concurrency: null }, 'limit: concurrency: expected a whole number from 1'],
    [{ name: 'a', concurrency: () => 1 }, 'expected a key with a concurrency for each key, got none.'],
    [{ name: 'a', key: 'shop', concurrency: 1 }, 'limit: key: expected a function of the input, got "shop".'],
    [{ name: 'a', rate: { limit: 5, per: 0 } }, 'limit: rate: per: expected a duration above 0'],
    [{ name: 'a', rate: { limit: 5, per: '1s', burst: 6 } }, 'limit: rate: burst: expected a whole number from 1 to 5'],
    [{ name: 'a', rate: { limit: 5, every: '1s' } }, 'limit: rate: there is no option "every".'],
    [{ name: 'a', concurrency: 1, onLimit: 'cancel' }, 'limit: onLimit: expected'],
    [
      { name: 'a', total: 1, onLimit: 'cancel-newest' },
      "limit: expected a concurrency with onLimit 'cancel-newest', got none.",
    ],
    [
      { name: 'a', key: String, onLimit: 'cancel-oldest' },
      "limit: expected a concurrency with onLimit 'cancel-oldest', got none.",
    ],
    [
      { name: 'a', key: String, rate: () => ({ limit: 5, per: '1s' }) },
      'limit: rate: expected { limit, per }, got a function. Only concurrency may be one: give each tier a limit of its own, whose key returns null for the others.',
    ],
    [{ name: 'a', max: 5 }, 'limit: there is no option "max".'],
    [
      [
        { name: 'a', total: 1 },
        { name: 'a', total: 1 },
      ],
      'expected each limit once, got two of one name.',
    ],
    [Array.from({ length: 5 }, (_, n) => ({ name: `${n}`, total: 1 })), 'expected at most 4 limits, got 5.'],
  ])('refuse %j', (value, message) => {
    expect(() => checkLimits(value, 'limit')).toThrow(message);
  });

  it('are refused with the name of the job', () => {
    expect(() => defineJob({ name: 'sync', limit: { name: 'a' } })).toThrow(/^job sync: limit: expected concurrency/);
  });
});

describe('the limits of a job', () => {
  const of = (key: (input: unknown) => unknown, concurrency: unknown = 1) =>
    limitsOf(checkLimits({ name: 'shop', key, concurrency }, 'limit'), () => ({ shop: 7 }), 'sync');

  it('have the key that the function makes of the input, or none', () => {
    expect(of((input) => (input as { shop: number }).shop).limits).toEqual([{ limit: 'shop', key: '7' }]);
    expect(of(() => '').limits).toEqual([{ limit: 'shop', key: '' }]);
    expect(of(() => null).limits).toEqual([]);
    expect(of(() => 'a').onLimit).toEqual([]);
    const cancelling = { name: 'shop', key: () => 'a', concurrency: () => 1, onLimit: 'cancel-oldest' };
    expect(limitsOf(checkLimits(cancelling, 'limit'), () => null, 'sync').onLimit).toEqual([
      { limit: 'shop', key: 'a', action: 'cancel-oldest' },
    ]);
    expect(limitsOf(checkLimits({ name: 'all', rate }, 'limit'), () => null, 'sync')).toEqual({
      ...{ limits: [{ limit: 'all', key: '' }], concurrencies: [], onLimit: [] },
    });
  });

  it('have a concurrency for the key, when that is computed', () => {
    expect(
      of(
        () => 'gold',
        (key: string) => key.length,
      ).concurrencies,
    ).toEqual([{ limit: 'shop', key: 'gold', concurrency: 4 }]);
    expect(
      of(
        () => null,
        () => 1,
      ).concurrencies,
    ).toEqual([]);
  });

  it.each([
    ['a key that throws', () => Promise.reject(new Error('late')), 1, 'Return it at once, not as a promise.'],
    [
      'a key that is no text',
      () => ({}),
      1,
      'sync: limit shop: key: expected its function to return a text, a number or null',
    ],
    [
      'undefined, which a misspelt field gives',
      () => undefined,
      1,
      'sync: limit shop: key: expected its function to return a text, a number or null, got undefined. Is a field of the input misspelt?',
    ],
    [
      'no number',
      () => Number.NaN,
      1,
      'to return a text, a number or null, got NaN. Is a field of the input misspelt?',
    ],
    ['a truth value', () => true, 1, 'to return a text, a number or null, got true. Make a text of it.'],
    ['a Date', () => new Date(), 1, 'number or null, got an object of class Date. Make a text of it.'],
    ['a bigint', () => 5n, 1, 'to return a text, a number or null, got 5n. Make a text of it.'],
    ['a concurrency that is none', () => 'a', () => '2', 'sync: limit shop: concurrency: expected a whole number'],
  ])('refuse %s', (_, key, concurrency, message) => {
    expect(() => of(key, concurrency)).toThrow(message);
  });

  it('say what the function threw', () => {
    const thrown = () => {
      throw new TypeError('no shop');
    };
    expect(() => of(thrown)).toThrow(
      'sync: limit shop: key: expected its function to return, got an error that it threw: TypeError: no shop',
    );
  });
});

describe('a change by an operator', () => {
  it('has what is given, and null for no bound', () => {
    expect(checkLimitChange({ concurrency: 2, total: undefined }, 'set', null)).toEqual({ concurrency: 2 });
    expect(checkLimitChange({ total: null, rate }, 'set', null)).toEqual({
      ...{ total: null, rate: { limit: 10, perMs: 1_000, burst: 1 } },
    });
    expect(() => checkLimitChange({}, 'set', null)).toThrow('got none of them. Give null to remove a bound.');
  });

  it('takes 0 for a concurrency and a total, and nothing below', () => {
    expect(checkLimitChange({ concurrency: 0, total: 0 }, 'set', null)).toEqual({ concurrency: 0, total: 0 });
    expect(() => checkLimitChange({ concurrency: -1 }, 'set', null)).toThrow(
      'set: concurrency: expected a whole number from 0',
    );
    expect(() => checkLimitChange({ rate: { limit: 0, per: '1s' } }, 'set', null)).toThrow(
      'set: rate: limit: expected',
    );
  });

  it.each([
    ['a chosen burst stays', { limit: 90, perMs: 1_000, burst: 30 }, 200, 30],
    ['a chosen burst is at most the new limit', { limit: 90, perMs: 1_000, burst: 30 }, 10, 10],
    ['a burst by default follows the limit', { limit: 90, perMs: 1_000, burst: 2 }, 200, 5],
    ['without a rate until now it is the default', null, 200, 5],
  ])('with a rate without a burst: %s', (_, now, limit, burst) => {
    expect(checkLimitChange({ rate: { limit, per: '1s' } }, 'set', now).rate?.burst).toBe(burst);
    expect(checkLimitChange({ rate: { limit, per: '1s', burst: 7 } }, 'set', now).rate?.burst).toBe(7);
  });

  it('has a burst by default that catches up on starts that came late', () => {
    expect([1, 49, 50, 90, 100].map(defaultBurst)).toEqual([1, 1, 2, 2, 3]);
  });
});
