import { describe, expect, it } from 'vitest';
import { RecentErrors } from './recent-errors.ts';
import { toStoredError } from './stored-error.ts';

/** Equal in all that is stored, and yet another object. */
function failure(change: object = {}): Error {
  const error = Object.assign(new Error('password=secret'), { code: 'EPIPE', status: 503 });
  error.stack = 'Error: password=secret\n    at send (mail.ts:1:1)';
  return Object.assign(error, change);
}

describe('recent errors', () => {
  it('give what is stored without them', () => {
    const recent = new RecentErrors();
    for (const error of [failure(), failure(), failure({ stack: undefined }), 'text', null, { issues: [] }]) {
      expect(toStoredError(error, recent)).toEqual(toStoredError(error));
    }
  });

  it('are cleaned once: an equal error is the same object', () => {
    const recent = new RecentErrors();
    const first = toStoredError(failure(), recent);
    expect(toStoredError(failure(), recent)).toBe(first);
    expect(first.message).toBe('password=***');
    expect(() => Object.assign(first, { message: 'another' })).toThrow(TypeError);
  });

  it.each([
    { name: 'TypeError' },
    { message: 'another' },
    { code: 'ETIMEDOUT' },
    { status: 500 },
    { stack: 'another' },
  ])('are not taken for one that differs in %o', (change) => {
    const recent = new RecentErrors();
    toStoredError(failure(), recent);
    expect(toStoredError(failure(change), recent)).toEqual(toStoredError(failure(change)));
    expect(toStoredError(failure(change), recent)).not.toEqual(toStoredError(failure()));
  });

  it('distinguish an error without a stack from one whose stack is its message', () => {
    const recent = new RecentErrors();
    const text = 'the same text';
    for (const stack of [undefined, text, undefined]) {
      const stored = toStoredError({ name: 'E', message: text, stack }, recent);
      expect(stored).toMatchObject({ message: text, stack: stack ?? null });
    }
  });

  it('belong to one owner', () => {
    expect(toStoredError(failure(), new RecentErrors())).not.toBe(toStoredError(failure(), new RecentErrors()));
    expect(toStoredError(failure())).not.toBe(toStoredError(failure()));
  });

  it('keep the issues of each error apart', () => {
    const recent = new RecentErrors();
    const refused = (path: string): Error => failure({ issues: [{ message: 'no', path }] });
    expect(toStoredError(refused('a'), recent).issues).toEqual([{ message: 'no', path: 'a' }]);
    expect(toStoredError(refused('b'), recent).issues).toEqual([{ message: 'no', path: 'b' }]);
    expect(toStoredError(failure(), recent)).not.toHaveProperty('issues');
  });

  it('forget, so that a thousand different errors do not fill the memory', () => {
    const recent = new RecentErrors();
    const first = toStoredError(failure(), recent);
    for (let n = 0; n < 1_000; n++) toStoredError(failure({ stack: `at ${n}` }), recent);
    expect(toStoredError(failure(), recent)).not.toBe(first);
    const long = failure({ stack: 'x'.repeat(20_000) });
    expect(toStoredError(long, recent)).not.toBe(toStoredError(long, recent));
  });
});
