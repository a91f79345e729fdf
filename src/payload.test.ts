import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PayloadError } from './errors.ts';
import { encodeJson } from './payload.ts';

const PLENTY = 1_000_000;
const encode = (value: unknown, maxBytes = PLENTY): string =>
  encodeJson(value, { maxBytes, advice: 'Send less.' }, 'input');

function complaint(value: unknown, maxBytes = PLENTY): string {
  try {
    return `no complaint, but ${encode(value, maxBytes)}`;
  } catch (error) {
    expect(error).toBeInstanceOf(PayloadError);
    expect(error).toMatchObject({ code: 'PAYLOAD' });
    return (error as Error).message;
  }
}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = level % 2 ? [value] : { value };
  return value;
}

describe('a payload that JSON can carry', () => {
  it('is read back as it was enqueued, for every JSON value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        expect(JSON.parse(encode(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('may be left out: undefined is stored as null', () => {
    expect(encode(undefined)).toBe('null');
    expect(encode({ toJSON: () => undefined })).toBe('null');
  });

  it('leaves out properties that are undefined, as JSON does everywhere', () => {
    expect(encode({ a: undefined, b: 1 })).toBe('{"b":1}');
  });

  it.each([
    ['a date', new Date(0), '"1970-01-01T00:00:00.000Z"'],
    ['an address', new URL('https://example.com/a'), '"https://example.com/a"'],
    [
      'a class with fields',
      new (class Point {
        x = 1;
        y = 2;
      })(),
      '{"x":1,"y":2}',
    ],
    [
      'a class that answers itself from toJSON',
      new (class Own {
        x = 1;
        toJSON() {
          return this;
        }
      })(),
      '{"x":1}',
    ],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['an object of another realm', runInNewContext('({ a: [{}] })'), '{"a":[{}]}'],
    ['boxed values', [Object('text'), Object(1), Object(true)], '["text",1,true]'],
    ['half a surrogate pair', '\ud800', '"\\ud800"'],
  ])('may hold %s', (_, value, text) => {
    expect(encode(value)).toBe(text);
  });

  it('may hold the same object twice, since that is no cycle', () => {
    const shared = { a: 1 };
    expect(encode([shared, { shared }])).toBe('[{"a":1},{"shared":{"a":1}}]');
  });

  it('keeps a __proto__ key as data, which changes no prototype when it is read back', () => {
    const sent = JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}');
    const text = encode(sent);
    expect(text).toBe('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}');
    const received = JSON.parse(text);
    expect(Object.hasOwn(received, '__proto__')).toBe(true);
    expect(Object.getPrototypeOf(received)).toBe(Object.prototype);
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });
});

describe('a payload that JSON would change is refused, with the place and what to do:', () => {
  const cyclic: Record<string, unknown> = { a: {} };
  (cyclic.a as Record<string, unknown>).back = cyclic;
  const loop: unknown[] = [];
  loop.push(loop);

  it.each<[string, unknown, string]>([
    ['a BigInt', { total: 12n }, 'input.total: expected what JSON can carry, got 12n. Send it as a string.'],
    ['a boxed BigInt', [Object(12n)], 'input[0]: expected what JSON can carry, got 12n. Send it as a string.'],
    ['NaN', { a: [Number.NaN] }, 'input.a[0]: expected what JSON can carry, got NaN. Send null, or a string.'],
    ['a boxed NaN', Object(Number.NaN), 'input: expected what JSON can carry, got NaN. Send null, or a string.'],
    ['Infinity', -Infinity, 'input: expected what JSON can carry, got -Infinity. Send null, or a string.'],
    [
      'a function',
      { on: () => {} },
      'input.on: expected what JSON can carry, got a function. Only data can be stored.',
    ],
    ['a class', class A {}, 'input: expected what JSON can carry, got a function. Only data can be stored.'],
    ['a symbol', [Symbol('s')], 'input[0]: expected what JSON can carry, got Symbol(s). Only data can be stored.'],
    [
      'undefined in a list',
      [1, undefined],
      'input[1]: expected what JSON can carry, got undefined. JSON would turn it into null; send null.',
    ],
    [
      'a hole in a list',
      Array(2),
      'input[0]: expected what JSON can carry, got undefined. JSON would turn it into null; send null.',
    ],
    [
      'what becomes undefined in a list',
      [{ toJSON: () => undefined }],
      'input[0]: expected what JSON can carry, got undefined. JSON would turn it into null; send null.',
    ],
    [
      'a Map',
      { m: new Map([[1, 2]]) },
      'input.m: expected what JSON can carry, got an object of class Map. Send a plain object or an array.',
    ],
    [
      'a Set',
      new Set([1]),
      'input: expected what JSON can carry, got an object of class Set. Send a plain object or an array.',
    ],
    [
      'a promise that was not awaited',
      { p: Promise.resolve(1) },
      'input.p: expected what JSON can carry, got an object of class Promise. Send a plain object or an array.',
    ],
    [
      'a regular expression',
      /a/,
      'input: expected what JSON can carry, got an object of class RegExp. Send a plain object or an array.',
    ],
    [
      'an error',
      new Error('no'),
      'input: expected what JSON can carry, got an object of class Error. Send a plain object or an array.',
    ],
    [
      'bytes',
      new Uint8Array(2),
      'input: expected what JSON can carry, got an object of class Uint8Array. Send a plain object or an array.',
    ],
    [
      'search parameters',
      new URLSearchParams('a=1'),
      'input: expected what JSON can carry, got an object of class URLSearchParams. Send a plain object or an array.',
    ],
    [
      'a Map of another realm',
      runInNewContext('new Map([[1, 2]])'),
      'input: expected what JSON can carry, got an object of class Map. Send a plain object or an array.',
    ],
    [
      'an invalid Date',
      new Date(Number.NaN),
      'input: expected what JSON can carry, got an invalid Date. JSON would turn it into null; send null.',
    ],
    ['a cycle', cyclic, 'input.a.back: expected a tree, got a cycle. JSON cannot carry cycles.'],
    ['a list in itself', loop, 'input[0]: expected a tree, got a cycle. JSON cannot carry cycles.'],
  ])('%s', (_, value, message) => {
    expect(complaint(value)).toBe(message);
  });

  it('one that is too deep for some JSON parser, and no sooner', () => {
    expect(JSON.parse(encode(nested(500)))).toEqual(nested(500));
    expect(complaint(nested(501))).toMatch(/: expected at most 500 levels, got more\.$/);
    expect(complaint(nested(100_000))).toMatch(/: expected at most 500 levels, got more\.$/);
  });
});

describe('a payload that throws while it is read', () => {
  const hostile = new Proxy(
    {},
    {
      get: () => {
        throw new RangeError('trap');
      },
      getPrototypeOf: () => {
        throw new RangeError('trap');
      },
    },
  );
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();

  it.each<[string, unknown, string | RegExp]>([
    [
      'from a getter',
      {
        a: {
          get b() {
            throw new TypeError('not yet');
          },
        },
      },
      'input.a.b: reading it threw TypeError: not yet',
    ],
    [
      'from toJSON',
      {
        a: [
          {
            toJSON() {
              throw new Error('no JSON here');
            },
          },
        ],
      },
      'input.a[0]: reading it threw Error: no JSON here',
    ],
    [
      'from a toJSON that is a getter',
      {
        get toJSON() {
          throw new Error('no');
        },
      },
      'input: reading it threw Error: no',
    ],
    ['from a proxy', { a: hostile }, 'input.a: reading it threw RangeError: trap'],
    [
      'from a list of keys',
      new Proxy(
        {},
        {
          ownKeys: () => {
            throw new Error('no keys');
          },
        },
      ),
      'input: reading it threw Error: no keys',
    ],
    ['from a revoked proxy', [revoked.proxy], /^input\[0\]: reading it threw TypeError: /],
    [
      'something that cannot be looked at',
      {
        get a() {
          throw hostile;
        },
      },
      /^input\.a: reading it threw /,
    ],
    [
      'nothing at all',
      {
        get a() {
          throw undefined;
        },
      },
      'input.a: reading it threw NonError: undefined was thrown',
    ],
  ])('%s is a PayloadError that says where', (_, value, message) => {
    expect(complaint(value)).toMatch(message);
  });

  it('keeps what was thrown as its cause', () => {
    const thrown = new Error('not yet');
    const value = {
      get a() {
        throw thrown;
      },
    };
    expect(() => encode(value)).toThrow(expect.objectContaining({ cause: thrown }));
  });

  it('only the second time is a PayloadError too', () => {
    let reads = 0;
    const value = {
      get a() {
        return reads++ === 0 ? 1 : 1n;
      },
    };
    expect(complaint(value)).toMatch(/reading it threw TypeError/);
  });

  it('shows no credentials of what was thrown', () => {
    const value = {
      get a() {
        throw new Error('postgres://me:hunter2@db/x');
      },
    };
    expect(complaint(value)).not.toContain('hunter2');
  });
});

describe('the size of a payload', () => {
  it('is counted in bytes of JSON, not in characters', () => {
    expect(encode('a'.repeat(8), 10)).toBe(`"${'a'.repeat(8)}"`);
    expect(complaint('a'.repeat(9), 10)).toBe('input: expected at most 10 bytes of JSON, got 11. Send less.');
    expect(encode('ü€', 7)).toBe('"ü€"');
    expect(complaint('ü€', 6)).toMatch(/at most 6 bytes of JSON, got 7/);
  });

  it('is bounded before it is written out: a few objects that share each other can stand for a huge tree', () => {
    let value: unknown = ['leaf'];
    for (let level = 0; level < 200; level++) value = [value, value];
    expect(complaint(value)).toMatch(/expected at most 1000000 bytes of JSON, got more/);
  });

  it('of a list that pretends to be endless is bounded', () => {
    const endless = new Proxy([], {
      get(_, key) {
        if (key === 'toJSON') return undefined;
        return key === 'length' ? 2 ** 32 - 1 : 0;
      },
    });
    expect(complaint(endless)).toMatch(/got more/);
  });
});

it('encoding any value returns JSON that parses, or throws a PayloadError', () => {
  const anything = fc.anything({
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withNullPrototype: true,
    withObjectString: true,
    withSparseArray: true,
    withTypedArray: true,
    withUnicodeString: true,
    maxDepth: 4,
  });
  fc.assert(
    fc.property(anything, fc.constantFrom(10, 1_000, PLENTY), (value, maxBytes) => {
      let text: string;
      try {
        text = encode(value, maxBytes);
      } catch (error) {
        expect(error).toBeInstanceOf(PayloadError);
        return;
      }
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes);
      JSON.parse(text);
    }),
    { numRuns: 2_000 },
  );
});
