import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, describe as group, test } from 'vitest';
import { checkInteger, checkKeys, checkNumber, checkOneOf, closest, describe } from './config.ts';
import { ConfigError } from './errors.ts';

group('describe', () => {
  test.each([
    ['text', '"text"'],
    ['a\nb', '"a\\nb"'],
    ['x'.repeat(500), `"${'x'.repeat(80)}..."`],
    [1.5, '1.5'],
    [-0, '-0'],
    [NaN, 'NaN'],
    [10n, '10n'],
    [Symbol('s'), 'Symbol(s)'],
    [null, 'null'],
    [undefined, 'undefined'],
    [() => 1, 'a function'],
    [[], 'an empty array'],
    [[1, 2], 'an array of 2'],
    [{}, 'an empty object'],
    [{ password: 'hunter2' }, 'an object with the key password'],
    [{ a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7 }, 'an object with the keys a, b, c, d, e, f, ...'],
    [new TypeError('x'), 'an object of class TypeError'],
    [new Map(), 'an object of class Map'],
    [Object.create(Object.create(Object.create(null))), 'an object'],
  ])('%o reads as %s', (value, text) => {
    expect(describe(value)).toBe(text);
  });

  test('shows no value and runs no getter', () => {
    const value = {
      get secret(): never {
        throw new Error('must not be read');
      },
    };
    expect(describe(value)).toBe('an object with the key secret');
  });

  test('names a value that cannot be read as such', () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(describe(proxy)).toBe('a value that cannot be read');
  });

  test('is short for anything', () => {
    fc.assert(fc.property(fc.anything({ withBigInt: true, withNullPrototype: true }), (v) => describe(v).length < 700));
  });
});

group('closest', () => {
  const names = ['maxAttempts', 'maxRetries', 'backoff', 'jitter', 'deadline', 'maxCrashes'];
  test.each([
    ['maxAttempt', 'maxAttempts'],
    ['maxattempts', 'maxAttempts'],
    ['backof', 'backoff'],
    ['jittre', 'jitter'],
    ['deadlien', 'deadline'],
    ['attempts', 'maxAttempts'],
    ['retries', 'maxRetries'],
    ['xyz', null],
    ['max', null],
    ['', null],
    ['b'.repeat(1_000_000), null],
  ])('%.20s means %s', (word, meant) => {
    expect(closest(word, names)).toBe(meant);
  });

  test('counts two swapped letters as one slip', () => {
    expect(closest('kidn', ['kind'])).toBe('kind');
    expect(closest('kxyd', ['kind'])).toBeNull();
  });

  test('finds a word with one letter dropped, doubled or swapped', () => {
    const slip = fc.tuple(fc.constantFrom(...names), fc.nat(), fc.constantFrom('drop', 'double', 'swap'));
    fc.assert(
      fc.property(slip, ([name, at, kind]) => {
        const i = at % (name.length - 1);
        const [head, one, two, tail] = [name.slice(0, i), name[i], name[i + 1], name.slice(i + 2)];
        const middle = { drop: two, double: `${one}${one}${two}`, swap: `${two}${one}` }[kind];
        expect(closest(`${head}${middle}${tail}`, names)).toBe(name);
      }),
    );
  });
});

group('checkKeys', () => {
  test('accepts known keys, of literals, of JSON and of another realm', () => {
    for (const options of [{}, { a: 1 }, Object.assign(Object.create(null), { a: 1 }), runInNewContext('({ a: 1 })')]) {
      expect(() => checkKeys(options, ['a'], 'options')).not.toThrow();
    }
  });

  test.each([[undefined], [null], [1], ['a'], [[]], [new Map()], [() => 1]])('rejects %o', (options) => {
    expect(() => checkKeys(options, ['a', 'b'], 'options')).toThrow(
      /^options: expected an object with options, got .+\. Valid options: a, b\.$/,
    );
  });

  test('suggests the key that was meant, and lists all when none is similar', () => {
    const known = ['factor', 'base'];
    expect(() => checkKeys({ facotr: 2 }, known, 'backoff')).toThrow(
      new ConfigError('backoff: there is no option "facotr". Did you mean factor?'),
    );
    expect(() => checkKeys({ zzz: 2 }, known, 'backoff')).toThrow(
      new ConfigError('backoff: there is no option "zzz". Valid options: factor, base.'),
    );
    expect(() => checkKeys(JSON.parse('{"__proto__": 1}'), known, 'backoff')).toThrow(ConfigError);
  });
});

group('checkOneOf, checkInteger, checkNumber', () => {
  test('answer the value when it fits', () => {
    expect(checkOneOf('full', ['none', 'full'], 'jitter')).toBe('full');
    expect(checkInteger(3, 'n', { min: 1, max: 3 })).toBe(3);
    expect(checkNumber(0.5, 'n', { min: 0, max: 1 })).toBe(0.5);
  });

  test('name what was expected, what was given, and what to do', () => {
    expect(() => checkOneOf('ful', ['none', 'full'], 'jitter')).toThrow(
      new ConfigError('jitter: expected one of none, full, got "ful". Did you mean full?'),
    );
    expect(() => checkInteger(0, 'n', { min: 1, hint: 'Use 1.' })).toThrow(
      new ConfigError('n: expected a whole number of at least 1, got 0. Use 1.'),
    );
    expect(() => checkNumber(2, 'n', { min: 0, max: 1 })).toThrow(
      new ConfigError('n: expected a number from 0 to 1, got 2.'),
    );
    expect(() => checkNumber(2, 'n', { max: 1 })).toThrow(new ConfigError('n: expected a number of at most 1, got 2.'));
  });

  test('reject what is no such number', () => {
    for (const value of [1.5, NaN, Infinity, 2 ** 53, '1', 1n, null, undefined, [1], new Number(1)]) {
      expect(() => checkInteger(value, 'n')).toThrow(ConfigError);
    }
    for (const value of [NaN, Infinity, -Infinity, '1', 1n, null]) {
      expect(() => checkNumber(value, 'n')).toThrow(ConfigError);
    }
  });
});
