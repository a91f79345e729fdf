import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../errors.ts';
import { LONGEST_DELAY_MS } from './backoff.ts';
import { Cancel, type Control, controlErrorOf, RetryAfter, Snooze, Unrecoverable, waitFrom } from './control-errors.ts';

test.each<[Error, Control, string]>([
  [new Unrecoverable(), { kind: 'unrecoverable' }, 'Unrecoverable'],
  [new Cancel(), { kind: 'cancel' }, 'Cancel'],
  [new RetryAfter('1.5s'), { kind: 'retry-after', wait: { delayMs: 1_500 } }, 'RetryAfter'],
  [new RetryAfter(new Date(5_000)), { kind: 'retry-after', wait: { at: 5_000 } }, 'RetryAfter'],
  [new RetryAfter('365d'), { kind: 'retry-after', wait: { delayMs: LONGEST_DELAY_MS } }, 'RetryAfter'],
  [new Snooze(0), { kind: 'snooze', wait: { delayMs: 0 } }, 'Snooze'],
  [new Snooze(250), { kind: 'snooze', wait: { delayMs: 250 } }, 'Snooze'],
  [new Snooze(new Date(0)), { kind: 'snooze', wait: { at: 0 } }, 'Snooze'],
])('%s is understood', (error, control, name) => {
  expect(controlErrorOf(error)).toEqual(control);
  expect(error).toBeInstanceOf(Error);
  expect(error.name).toBe(name);
  expect(error.message).not.toBe('');
});

test('message and cause are the caller’s', () => {
  const cause = new Error('why');
  for (const error of [
    new Unrecoverable('no', { cause }),
    new RetryAfter(1, 'no', { cause }),
    new Snooze(1, 'no', { cause }),
    new Cancel('no', { cause }),
  ]) {
    expect(error.message).toBe('no');
    expect(error.cause).toBe(cause);
  }
});

test('a control error is understood whatever its message is', () => {
  const hostile = { [Symbol.toPrimitive]: () => expect.fail('the caller’s own code threw') };
  for (const [message, text] of [
    [Symbol('no'), 'Symbol(no)'],
    [new Error('no'), 'Error: no'],
    [null, 'null'],
    [hostile, 'an empty object'],
  ] as [never, string][]) {
    const errors = [
      new Unrecoverable(message),
      new RetryAfter(1, message),
      new Snooze(1, message),
      new Cancel(message),
    ];
    expect(errors.map((error) => error.message)).toEqual(errors.map(() => text));
    expect(errors.map((error) => controlErrorOf(error)?.kind)).toEqual([
      'unrecoverable',
      'retry-after',
      'snooze',
      'cancel',
    ]);
  }
});

test('a Date is read by its own time, whatever its getTime returns', () => {
  const forged = Object.assign(new Date(9), { getTime: () => 'soon' });
  expect(controlErrorOf(new Snooze(forged))).toEqual({ kind: 'snooze', wait: { at: 9 } });
});

test('a subclass is a control error of the same kind', () => {
  class CardDeclined extends Unrecoverable {}
  expect(controlErrorOf(new CardDeclined())).toEqual({ kind: 'unrecoverable' });
});

test('another realm or package copy is understood, without any shared class', () => {
  const foreign: unknown = runInNewContext(`
    const error = new Error('later');
    error[Symbol.for('mulligan.control-error')] = { kind: 'retry-after', wait: { delayMs: 7 }, from: 'elsewhere' };
    error`);
  expect(foreign).not.toBeInstanceOf(Error);
  expect(controlErrorOf(foreign)).toEqual({ kind: 'retry-after', wait: { delayMs: 7 } });
});

test('a Date of another realm is a Date', () => {
  expect(controlErrorOf(new Snooze(runInNewContext('new Date(9)')))).toEqual({ kind: 'snooze', wait: { at: 9 } });
});

test('what a control error asks for cannot be changed afterwards, and does not show among the error’s own fields', () => {
  const error = new RetryAfter(1);
  expect(() => Object.assign(Reflect.get(error, Symbol.for('mulligan.control-error')), { kind: 'cancel' })).toThrow(
    TypeError,
  );
  expect(Reflect.ownKeys({ ...error })).toEqual(['name']);
});

describe('a delay that makes no sense is a ConfigError where it is thrown', () => {
  test.each([['5 s'], [-1], [NaN], [undefined], [null], [new Date(NaN)], ['366d'], [{}]])('%o', (delay) => {
    expect(() => new RetryAfter(delay as never)).toThrow(ConfigError);
    expect(() => new RetryAfter(delay as never)).toThrow(/^RetryAfter: expected/);
    expect(() => new Snooze(delay as never)).toThrow(/^Snooze: expected/);
  });

  test('and a Date that is none is called so', () => {
    expect(() => new Snooze(new Date(NaN))).toThrow('Snooze: expected a valid Date or a duration, got "Invalid Date"');
  });
});

describe('a brand with nonsense in it is ignored', () => {
  test.each([
    [null],
    ['unrecoverable'],
    [{}],
    [{ kind: 'explode' }],
    [{ kind: 'explode', wait: { delayMs: 5 } }],
    [{ kind: 'snooze' }],
    [{ kind: 'snooze', wait: 5 }],
    [{ kind: 'snooze', wait: { delayMs: -1 } }],
    [{ kind: 'snooze', wait: { delayMs: 1.5 } }],
    [{ kind: 'snooze', wait: { delayMs: NaN } }],
    [{ kind: 'snooze', wait: { delayMs: '5' } }],
    [{ kind: 'snooze', wait: { delayMs: LONGEST_DELAY_MS + 1 } }],
    [{ kind: 'retry-after', wait: { at: Infinity } }],
    [{ kind: 'retry-after', wait: { at: 8.64e15 + 1 } }],
  ])('%o', (control) => {
    expect(
      controlErrorOf(Object.assign(new Error('x'), { [Symbol.for('mulligan.control-error')]: control })),
    ).toBeNull();
  });

  test('and so is everything without a brand', () => {
    for (const thrown of [new Error('x'), 'Unrecoverable', null, undefined, 5, { name: 'Unrecoverable' }]) {
      expect(controlErrorOf(thrown)).toBeNull();
    }
  });
});

test('a point in time becomes a wait from now on, and no wait once it is past', () => {
  expect(waitFrom({ delayMs: 5 }, 1_000)).toBe(5);
  expect(waitFrom({ at: 1_500 }, 1_000)).toBe(500);
  expect(waitFrom({ at: 1_500 }, 1_000.5)).toBe(500);
  expect(waitFrom({ at: 500 }, 1_000)).toBe(0);
});
