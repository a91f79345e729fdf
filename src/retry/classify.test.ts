import { describe, expect, test } from 'vitest';
import { LONGEST_DELAY_MS } from './backoff.ts';
import {
  type ClassifyContext,
  type ClassifyFunction,
  type ClassifyRule,
  classify,
  type FailedRun,
} from './classify.ts';
import { Cancel, RetryAfter, Snooze, Unrecoverable } from './control-errors.ts';
import type { Failure } from './outcome.ts';

const now = 1_000_000;
const run: FailedRun = { name: 'email.send', run: 3, attempt: 2, maxAttempts: 4, previousDelayMs: 500 };

function failureOf(thrown: unknown, context: Partial<ClassifyContext> = {}): Failure {
  const outcome = classify(thrown, { now, run, ...context });
  if (outcome.kind !== 'failed') throw new Error(`expected a failure, got ${outcome.kind}`);
  return outcome.failure;
}

const unavailable = Object.assign(new Error('x'), { status: 503, headers: { 'retry-after': '7' } });

describe('a control error comes first', () => {
  test('Unrecoverable is permanent', () => {
    expect(failureOf(new Unrecoverable('no'))).toMatchObject({
      class: 'permanent',
      rule: 'thrown:Unrecoverable',
      retryAfterMs: null,
      error: { name: 'Unrecoverable', message: 'no' },
    });
  });

  test('RetryAfter is the environment, with its wait', () => {
    expect(failureOf(new RetryAfter('5s'))).toMatchObject({
      class: 'environment',
      rule: 'thrown:RetryAfter',
      retryAfterMs: 5_000,
    });
    expect(failureOf(new RetryAfter(new Date(now + 9)))).toMatchObject({ retryAfterMs: 9 });
    expect(failureOf(new RetryAfter(new Date(now - 9)))).toMatchObject({ retryAfterMs: 0 });
  });

  test('Snooze and Cancel are no failures', () => {
    expect(classify(new Snooze('5s'), { now, run })).toEqual({ kind: 'snoozed', delayMs: 5_000 });
    expect(classify(new Snooze(new Date(now + 9)), { now, run })).toEqual({ kind: 'snoozed', delayMs: 9 });
    expect(classify(new Cancel('stop'), { now, run })).toMatchObject({ kind: 'cancelled', error: { message: 'stop' } });
  });

  test('it beats the definition’s function, which is not even asked', () => {
    const asked: ClassifyFunction = () => {
      throw new Error('must not be asked');
    };
    expect(failureOf(new Unrecoverable(), { classify: asked })).toMatchObject({ class: 'permanent', note: null });
  });

  test('it has to be the thrown error itself, not its cause', () => {
    expect(failureOf(new Error('x', { cause: new Snooze('1s') }))).toMatchObject({ class: 'job', rule: 'default' });
  });
});

describe('the definition’s classify comes second', () => {
  test('it gets the error and the run', () => {
    const calls: unknown[] = [];
    const error = new Error('x');
    failureOf(error, { classify: (...args) => void calls.push(args) as undefined });
    expect(calls).toEqual([[error, run]]);
  });

  test.each(['permanent', 'environment', 'job'] as const)('%s stands, against every rule', (answer) => {
    expect(failureOf(unavailable, { classify: () => answer, rules: [{ status: 503, class: 'job' }] })).toMatchObject({
      class: answer,
      rule: 'classify()',
      retryAfterMs: 7_000,
      note: null,
    });
  });

  test('it may choose the wait, and leave the class to the rules', () => {
    expect(failureOf(unavailable, { classify: () => ({ retryAfter: '1s' }) })).toMatchObject({
      class: 'environment',
      rule: 'http:503',
      retryAfterMs: 1_000,
      note: null,
    });
    expect(failureOf(unavailable, { classify: () => ({ class: 'job', retryAfter: 0 }) })).toMatchObject({
      class: 'job',
      retryAfterMs: 0,
    });
  });

  test.each([[undefined], [null]])('%o leaves it to the rules, without a note', (answer) => {
    expect(failureOf(unavailable, { classify: () => answer as undefined })).toMatchObject({
      rule: 'http:503',
      note: null,
    });
  });

  test.each<[unknown, Partial<Failure>]>([
    ['retry', { rule: 'http:503', note: 'classify() returned "retry", which is no failure class' }],
    [true, { rule: 'http:503', note: 'classify() returned true, which is no failure class' }],
    [{}, { rule: 'http:503', note: 'classify() returned an empty object, which is no failure class' }],
    [{ class: 'no' }, { rule: 'http:503', note: 'classify() returned "no", which is no failure class' }],
    [
      Object.assign(() => {}, { class: 'job' }),
      { rule: 'http:503', note: 'classify() returned a function, which is no failure class' },
    ],
    [
      { class: 'no', retryAfter: '1s' },
      { rule: 'http:503', retryAfterMs: 1_000, note: 'classify() returned "no", which is no failure class' },
    ],
    [Promise.resolve('job'), { rule: 'http:503', note: 'classify() returned a promise; it must answer at once' }],
    [
      { class: 'job', retryAfter: 'soon' },
      {
        class: 'job',
        rule: 'classify()',
        retryAfterMs: 7_000,
        note: 'classify().retryAfter returned "soon", which is no duration',
      },
    ],
    [
      { class: 'job', retryAfter: '1000d' },
      { retryAfterMs: LONGEST_DELAY_MS, note: 'classify().retryAfter was cut to 365d' },
    ],
  ])('the answer %o goes on to the rules with a note', (answer, failure) => {
    expect(failureOf(unavailable, { classify: () => answer as never })).toMatchObject(failure);
  });

  test('a throw goes on to the rules with a note', () => {
    const thrower: ClassifyFunction = () => {
      throw new RangeError('oops');
    };
    expect(failureOf(unavailable, { classify: thrower })).toMatchObject({
      class: 'environment',
      rule: 'http:503',
      note: 'classify() threw RangeError: oops',
    });
  });
});

describe('the rules come third', () => {
  const rules: ClassifyRule[] = [{ code: 'LOCKED', class: 'environment' }];

  test('the definition’s own beat the default ones, even further down the causes', () => {
    const cause = Object.assign(new Error('x'), { code: 'LOCKED' });
    const error = Object.assign(new Error('x', { cause }), { status: 404 });
    expect(failureOf(error, { rules })).toMatchObject({ class: 'environment', rule: 'code:LOCKED' });
    expect(failureOf(error)).toMatchObject({ class: 'permanent', rule: 'http:404' });
  });

  test('the default ones follow, with the wait the server asked for', () => {
    expect(failureOf(unavailable, { rules })).toMatchObject({
      class: 'environment',
      rule: 'http:503',
      retryAfterMs: 7_000,
    });
  });
});

test('everything else is the job’s own error, retried', () => {
  for (const thrown of [new Error('x'), 'x', null, undefined, 0]) {
    expect(failureOf(thrown)).toMatchObject({
      class: 'job',
      rule: 'default',
      retryAfterMs: null,
      customDelayMs: null,
      note: null,
    });
  }
});
