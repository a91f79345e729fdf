import { describe, expect, test } from 'vitest';
import { LONGEST_DELAY_MS } from './backoff.ts';
import { retryAfterOf } from './retry-after.ts';

const now = Date.UTC(2030, 0, 1);
const withHeaders = (headers: unknown): object => Object.assign(new Error('x'), { response: { headers } });

describe('the shapes clients throw', () => {
  class AxiosLikeHeaders {
    get(name: string): string | undefined {
      return name.toLowerCase() === 'retry-after' ? '7' : undefined;
    }
  }
  test.each<[string, unknown]>([
    ['fetch and ky: a Response', { response: new Response(null, { status: 429, headers: { 'Retry-After': '7' } }) }],
    ['a thrown Response', new Response(null, { headers: { 'Retry-After': '7' } })],
    ['axios: AxiosHeaders', { response: { headers: new AxiosLikeHeaders() } }],
    ['axios, got, octokit: a plain object', { response: { headers: { 'retry-after': '7' } } }],
    ['a plain object in another case', { response: { headers: { 'Retry-After': '7' } } }],
    ['a number', { response: { headers: { 'retry-after': 7 } } }],
    ['a repeated header', { response: { headers: { 'retry-after': ['7', '9'] } } }],
    ['undici: an object', { headers: { 'retry-after': '7' } }],
    ['undici: a flat list', { headers: ['server', 'x', 'Retry-After', '7'] }],
    ['undici: a flat list of bytes', { headers: [Buffer.from('Retry-After'), Buffer.from('7')] }],
    [
      'pairs',
      {
        headers: [
          ['server', 'x'],
          ['retry-after', '7'],
        ],
      },
    ],
    ['a single pair', { headers: [['retry-after', '7']] }],
    ['a field of a class', { headers: Object.create({ 'retry-after': '7' }) }],
    ['a Map', { headers: new Map([['retry-after', '7']]) }],
    ['AWS SDK: $response', { $response: { headers: { 'retry-after': '7' } } }],
    ['AWS SDK: retryAfterSeconds', { retryAfterSeconds: 7 }],
    ['retry-after-ms, the more exact one', { headers: { 'retry-after-ms': '7000', 'retry-after': '8' } }],
    ['a cause', new Error('x', { cause: withHeaders({ 'retry-after': '7' }) })],
  ])('%s', (_, error) => {
    expect(retryAfterOf(error, now)).toBe(7_000);
  });
});

describe('the values servers send', () => {
  test.each([
    ['0', 0],
    ['120', 120_000],
    [' 5 ', 5_000],
    ['1.0001', 1_001],
    ['Tue, 01 Jan 2030 00:01:00 GMT', 60_000],
    ['Tuesday, 01-Jan-30 00:01:00 GMT', 60_000],
    ['Tue Jan  1 00:01:00 2030', 60_000],
    ['Mon, 31 Dec 2029 00:00:00 GMT', 0],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 0],
    ['99999999999', LONGEST_DELAY_MS],
    ['9'.repeat(400), LONGEST_DELAY_MS],
    ['Tue, 01 Jan 2080 00:00:00 GMT', LONGEST_DELAY_MS],
  ])('%s', (value, ms) => {
    expect(retryAfterOf(withHeaders({ 'retry-after': value }), now)).toBe(ms);
  });

  test.each([
    ['soon'],
    [''],
    ['-5'],
    ['5 apples'],
    ['1e3'],
    ['0x10'],
    ['NaN'],
    ['2030-01-01'],
    ['Tue, 99 Jan 2030 00:01:00 GMT'],
    ['Tue, 01 Jan 2030 00:01:00 +0200'],
    [NaN],
    [Infinity],
    [-1],
    [null],
    [true],
    [{}],
    [[]],
    [new Date(now)],
  ])('%o is nonsense', (value) => {
    expect(retryAfterOf(withHeaders({ 'retry-after': value }), now)).toBeNull();
  });

  test('a date is read as GMT wherever the process runs', () => {
    const zone = process.env.TZ;
    process.env.TZ = 'America/New_York';
    try {
      expect(retryAfterOf(withHeaders({ 'retry-after': 'Tue Jan  1 00:01:00 2030' }), now)).toBe(60_000);
    } finally {
      if (zone === undefined) delete process.env.TZ;
      else process.env.TZ = zone;
    }
  });
});

test('the outermost error that asks for a wait decides', () => {
  const inner = withHeaders({ 'retry-after': '9' });
  expect(retryAfterOf(Object.assign(new Error('x', { cause: inner }), { headers: { 'retry-after': '7' } }), now)).toBe(
    7_000,
  );
});

test('an error that asks for no wait gives null', () => {
  for (const error of [
    new Error('x'),
    null,
    undefined,
    'Retry-After: 5',
    withHeaders({}),
    withHeaders('retry-after: 5'),
  ]) {
    expect(retryAfterOf(error, now)).toBeNull();
  }
  expect(retryAfterOf(withHeaders(['vary', 'retry-after', '7', 'x']), now)).toBeNull();
  expect(retryAfterOf(withHeaders(['7', 'x']), now)).toBeNull();
  expect(retryAfterOf(withHeaders({ undefined: '7' }), now)).toBeNull();
  expect(retryAfterOf(withHeaders({ 'x-ratelimit-reset': '60' }), now)).toBeNull();
});

describe('what is larger than any server sends is not read', () => {
  const others = (count: number): [string, string][] => Array.from({ length: count }, (_, n) => [`x-${n}`, 'y']);

  test.each<[string, (pairs: [string, string][]) => unknown]>([
    ['a flat list', (pairs) => pairs.flat()],
    ['an object', (pairs) => Object.fromEntries(pairs)],
  ])('%s beyond its 256th header', (_, headers) => {
    const behind = (count: number): unknown => withHeaders(headers([...others(count), ['Retry-After', '7']]));
    expect(retryAfterOf(behind(255), now)).toBe(7_000);
    expect(retryAfterOf(behind(256), now)).toBeNull();
  });

  test('bytes beyond the 127th', () => {
    const padded = (length: number): unknown => withHeaders(['retry-after', Buffer.from('7'.padStart(length))]);
    expect(retryAfterOf(padded(127), now)).toBe(7_000);
    expect(retryAfterOf(padded(128), now)).toBeNull();
  });
});
