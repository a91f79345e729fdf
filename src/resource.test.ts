import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ConfigError } from './errors.ts';
import { type ResourceFunction, resourceOf } from './resource.ts';

const answering = (answer: unknown, jobName = 'hook'): string | null =>
  resourceOf((() => answer) as ResourceFunction, {}, jobName);

const sha256 = (data: string | Buffer): string => `sha256:${createHash('sha256').update(data).digest('hex')}`;

function complaint(answer: unknown, jobName?: string): string {
  try {
    return `no complaint, but ${answering(answer, jobName)}`;
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
}

function hostile(target: object): object {
  return new Proxy(target, {
    get() {
      throw new Error('mine');
    },
  });
}

describe('resourceOf', () => {
  it.each<[string, unknown, string | null]>([
    ['a key', 'example.com', 'hook/example.com'],
    ['a parent and a key', ['webhook', 'example.com'], 'webhook/example.com'],
    ['a key with slashes', ['webhook', 'a/b'], 'webhook/a/b'],
    ['null', null, null],
    ['nothing', undefined, null],
    ['a key of 200 bytes', 'k'.repeat(200), `hook/${'k'.repeat(200)}`],
    ['a key of 200 characters and 400 bytes', 'é'.repeat(200), `hook/${sha256('é'.repeat(200))}`],
    ['a key of 201 bytes', 'k'.repeat(201), `hook/${sha256('k'.repeat(201))}`],
    ['a key with a control character', 'a\u0000b', `hook/${sha256('a\u0000b')}`],
    ['a key that looks like a hash', 'sha256:00', `hook/${sha256('sha256:00')}`],
  ])('takes %s', (_, answer, expected) => {
    expect(answering(answer)).toBe(expected);
  });

  it('keeps keys apart that differ in a lone surrogate', () => {
    const made = ['a\ud800', 'a\ud801', 'a\ufffd'].map((key) => answering(key) ?? '');
    expect(new Set(made).size).toBe(3);
    for (const resource of made) expect(resource.isWellFormed()).toBe(true);
  });

  it.each<[string, unknown, string]>([
    [
      'an empty key',
      '',
      'hook: resource: key: expected a text that is not empty, got "". Return null for no resource.',
    ],
    ['a blank key', ['webhook', ' '], 'hook: resource: key: expected a text that is not empty, got " ".'],
    ['a key that is no text', ['webhook', 5], 'hook: resource: key: expected a text that is not empty, got 5.'],
    ['a number', 5, 'hook: resource: expected its function to return a key, [parent, key] or null, got 5.'],
    ['an object', { key: 'a' }, 'hook: resource: expected its function to return a key, [parent, key] or null'],
    ['a list of one', ['webhook'], 'got an array of 1.'],
    ['a list of many', Array.from({ length: 9 }, () => 'a'), 'got an array of'],
    ['a parent with a slash', ['a/b', 'c'], 'hook: resource: parent: expected a text without a slash, got "a/b".'],
    ['an empty parent', ['', 'c'], 'hook: resource: parent: expected a text without a slash, got "".'],
    ['a promise', Promise.resolve('a'), 'Return it at once, not as a promise.'],
  ])('refuses %s', (_, answer, expected) => {
    expect(complaint(answer)).toContain(expected);
  });

  it('refuses a key alone where the name of the job has a slash', () => {
    expect(complaint('example.com', 'crm/hook')).toBe(
      'crm/hook: resource: expected [parent, key], got a key alone. The name of this job has a slash, so it cannot be the parent of a key. Return [parent, key].',
    );
    expect(answering(['hook', 'example.com'], 'crm/hook')).toBe('hook/example.com');
  });

  it('refuses promises that reject, and their rejections end no process', async () => {
    expect(complaint(Promise.reject(new Error('late')))).toContain('Return it at once, not as a promise.');
    expect(complaint(['webhook', Promise.reject(new Error('late'))])).toContain('expected a text that is not empty');
    await new Promise((resolve) => setImmediate(resolve));
  });

  it('says what the function threw', () => {
    const choose: ResourceFunction = ({ url }) => new URL(url).host;
    expect(() => resourceOf(choose, { url: 'no url' }, 'hook')).toThrow(
      'hook: resource: expected its function to return a key, [parent, key] or null, got an error that it threw: TypeError: Invalid URL',
    );
  });

  it.each([
    ['an object that throws when it is read', hostile({})],
    ['a list that throws when it is read', hostile([])],
    ['a list of endless length', new Proxy([], { get: (_, field) => (field === 'length' ? 1e9 : 'a') })],
  ])('is not broken by %s', (_, answer) => {
    expect(complaint(answer)).toContain('hook: resource: expected its function to return');
  });
});
