import * as valibot from 'valibot';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { InputError } from '../errors.ts';
import { toStoredError } from './stored-error.ts';

const caught = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (error) {
    return error;
  }
};

const bytes = (text: string | null): number => Buffer.byteLength(text ?? '');

test('an ordinary error keeps its name, message, code, status and stack, and nothing else', () => {
  const error = Object.assign(new TypeError('boom'), { code: 'E_BOOM', status: 503, config: { password: 'hunter2' } });
  const stored = toStoredError(error);
  expect(stored).toEqual({
    name: 'TypeError',
    message: 'boom',
    code: 'E_BOOM',
    status: 503,
    stack: expect.any(String),
    fingerprint: expect.stringMatching(/^e1[0-9a-f]{12}$/),
  });
  expect(stored.stack).toMatch(/^TypeError: boom\n\s+at /);
  expect(JSON.stringify(stored)).not.toContain('hunter2');
});

describe('what is not an error is kept as well as it can be', () => {
  test.each([
    ['boom', 'NonError', 'boom'],
    [null, 'NonError', 'null was thrown'],
    [undefined, 'NonError', 'undefined was thrown'],
    [404, 'NonError', '404 was thrown'],
    [{ token: 'hunter2' }, 'NonError', 'an object with the key token was thrown'],
    [{ message: 'boom' }, 'NonError', 'boom'],
    [{ name: 'Odd', message: 'boom' }, 'Odd', 'boom'],
    [['a'], 'Array', 'an array of 1 was thrown'],
    [new Response(null, { status: 500 }), 'Response', 'an object of class Response was thrown'],
  ])('%o', (thrown, name, message) => {
    expect(toStoredError(thrown)).toMatchObject({ name, message, stack: null });
  });
});

test('a class that forgot to set its name is known by its own', () => {
  class PaymentDeclined extends Error {}
  expect(toStoredError(new PaymentDeclined('x')).name).toBe('PaymentDeclined');
  expect(toStoredError(new Error('x')).name).toBe('Error');
  expect(toStoredError(new DOMException('x', 'TimeoutError')).name).toBe('TimeoutError');
});

test.each([
  ['E1', 'E1'],
  [14, '14'],
  ['', null],
  [NaN, null],
  [{ secret: 1 }, null],
  [5n, null],
  ['\0a\ud800', 'a\ufffd'],
])('code %o is kept as %o', (code, kept) => {
  expect(toStoredError(Object.assign(new Error('x'), { code })).code).toBe(kept);
});

test.each([
  [{ status: 404 }, 404],
  [{ statusCode: 502 }, 502],
  [{ response: { status: 429 } }, 429],
  [{ response: { statusCode: 429 } }, 429],
  [{ $metadata: { httpStatusCode: 400 } }, 400],
  [{ status: 'error', statusCode: 500 }, 500],
  [{ status: 0 }, null],
  [{ status: 99 }, null],
  [{ status: 600 }, null],
  [{ status: 404.5 }, null],
])('the HTTP status of %o is %o', (shape, status) => {
  expect(toStoredError(Object.assign(new Error('x'), shape)).status).toBe(status);
});

test('code, status and stack of a cause say why when the error itself does not', () => {
  const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', status: 503 });
  const stored = toStoredError(new TypeError('fetch failed', { cause }));
  expect(stored).toMatchObject({ name: 'TypeError', message: 'fetch failed', code: 'ECONNREFUSED', status: 503 });
  expect(stored.stack).toMatch(/^TypeError: fetch failed\n[\s\S]+\ncaused by: Error: connect ECONNREFUSED\n/);
});

test('of an AggregateError the first members are kept, without their frames, and its kind does not change', () => {
  const members = [new TypeError('fetch failed'), 'text', ...Array.from({ length: 9 }, () => new Error('m'))];
  const error = new AggregateError(members, 'All promises were rejected');
  const stored = toStoredError(error);
  expect(stored.stack?.split('\n').filter((line) => line.startsWith('  one of its errors: '))).toEqual([
    '  one of its errors: TypeError: fetch failed',
    '  one of its errors: NonError: text',
    ...Array.from({ length: 3 }, () => '  one of its errors: Error: m'),
  ]);
  error.errors.length = 0;
  expect(toStoredError(error).fingerprint).toBe(stored.fingerprint);
});

test('an error that is its own cause is stored once', () => {
  const error = new Error('x');
  error.cause = error;
  expect(toStoredError(error).stack).not.toContain('caused by');
});

test('credentials are taken out of message and stack', () => {
  const stored = toStoredError(new Error('cannot reach postgres://app:hunter2@db/jobs with token=hunter2'));
  expect(stored.message).toBe('cannot reach postgres://***@db/jobs with token=***');
  expect(JSON.stringify(stored)).not.toContain('hunter2');
});

describe('size is bounded', () => {
  test.each([['a'], ['ä'], ['日'], ['😀'], ['\ud83d']])('a message of many %o is cut between characters', (char) => {
    const { message } = toStoredError(new Error(char.repeat(100_000)));
    expect(bytes(message)).toBeLessThanOrEqual(4_096);
    expect(bytes(message)).toBeGreaterThan(4_080);
    expect(message.endsWith('...')).toBe(true);
    expect(message.isWellFormed()).toBe(true);
  });

  test('what just fits is kept whole, and of everything else the beginning', () => {
    const fits = `a${'x'.repeat(4_095)}`;
    expect(toStoredError(new Error(fits)).message).toBe(fits);
    for (const length of [4_096, 40_000]) {
      const { message, stack } = toStoredError(new Error(`a${'x'.repeat(length)}`));
      expect(message).toBe(`a${'x'.repeat(4_092)}...`);
      expect(stack).toMatch(/^Error: ax/);
    }
  });

  test('a stack without frames has no header to shorten', () => {
    const stack = `a${'x'.repeat(2_000)}`;
    expect(toStoredError(Object.assign(new Error('x'), { stack })).stack).toBe(stack);
  });

  test('a page-long message does not push the frames out of the stack', () => {
    const { stack } = toStoredError(new Error('x'.repeat(50_000)));
    expect(bytes(stack)).toBeLessThanOrEqual(8_192);
    expect(stack).toMatch(/\n\s+at .*stored-error\.test\.ts/);
  });

  test('a secret that the cut would halve is still hidden', () => {
    const secrets = Array.from({ length: 3_000 }, () => `password=${'hunter2'.repeat(4)}`).join(' ');
    expect(toStoredError(new Error(secrets)).message).not.toContain('hunter');
    const halved = `password=${'x'.repeat(32_700)} postgres://app:${'hunter2'.repeat(20)}@db`;
    expect(toStoredError(new Error(halved)).message).not.toContain('hunter');
    expect(toStoredError(new Error(`${'x'.repeat(4_085)} password=hunter2`)).message).not.toContain('hunter');
  });

  test('name and code', () => {
    const error = Object.assign(new Error('x'), { name: 'N'.repeat(1_000), code: 'C'.repeat(1_000) });
    const { name, code } = toStoredError(error);
    expect([bytes(name), bytes(code)]).toEqual([128, 64]);
  });
});

test('the code is looked for down to the tenth of the causes', () => {
  const below = (depth: number): Error => {
    let error: Error = Object.assign(new Error('x'), { code: 'EPIPE' });
    for (let n = 1; n < depth; n++) error = new Error('above', { cause: error });
    return error;
  };
  expect(toStoredError(below(3)).code).toBe('EPIPE');
  expect(toStoredError(below(10)).code).toBe('EPIPE');
  expect(toStoredError(below(11)).code).toBeNull();
});

test('the smallest status there is counts as one', () => {
  expect(toStoredError({ status: 100 }).status).toBe(100);
  expect(toStoredError({ status: 99 }).status).toBeNull();
});

describe('an error is stored under the first of its names that is specific', () => {
  /** Below so many classes without a name. */
  const below = (depth: number): object => {
    let prototype: object = { constructor: { name: 'Distant' } };
    for (let n = 1; n < depth; n++) prototype = Object.create(prototype, { constructor: { value: null } });
    return Object.create(prototype);
  };

  test('an empty name is skipped', () => {
    expect(toStoredError(Object.assign(new TypeError('x'), { name: '' })).name).toBe('TypeError');
  });

  test('up to the eighth of its classes', () => {
    expect(toStoredError(below(8)).name).toBe('Distant');
    expect(toStoredError(below(9)).name).toBe('NonError');
  });

  test('however many classes it says it has', () => {
    const endless = (): object => new Proxy({}, { getPrototypeOf: endless, get: () => undefined });
    expect(toStoredError(endless()).name).toBe('NonError');
  });
});

test('an error without name and message is stored without them', () => {
  expect(toStoredError(new Error('')).message).toBe('');
});

test('no database chokes on it: NUL and halves of surrogate pairs are replaced', () => {
  expect(toStoredError(new Error('a\0b\ud800c')).message).toBe('a\ufffdb\ufffdc');
});

describe('the issues of a schema are stored', () => {
  test('by zod', () => {
    const error = caught(() => z.object({ to: z.array(z.string()) }).parse({ to: ['a', 5] }));
    expect(toStoredError(error)).toMatchObject({
      name: 'ZodError',
      issues: [{ path: 'to.1', message: expect.stringContaining('expected string') }],
    });
  });

  test('by valibot', () => {
    const error = caught(() => valibot.parse(valibot.object({ to: valibot.string() }), { to: 5 }));
    expect(toStoredError(error)).toMatchObject({ name: 'ValiError', issues: [{ path: 'to' }] });
  });

  test('by our own InputError, without its credentials', () => {
    const error = new InputError('bad input', [{ message: 'password=hunter2 is weak', path: 'a.b' }]);
    expect(toStoredError(error).issues).toEqual([{ message: 'password=*** is weak', path: 'a.b' }]);
  });

  test('up to a bound, and only issues that say something', () => {
    const issues = [{ path: ['a'] }, null, 'x', ...new Array(100).fill({ message: 'm' })];
    expect(toStoredError(Object.assign(new Error('x'), { issues })).issues).toHaveLength(17);
    expect(toStoredError(Object.assign(new Error('x'), { issues: [] }))).not.toHaveProperty('issues');
  });
});
