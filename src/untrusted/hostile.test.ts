import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describe as describeValue } from '../config.ts';
import { type ClassifyContext, classify } from '../retry/classify.ts';
import { controlErrorOf } from '../retry/control-errors.ts';
import { retryAfterOf } from '../retry/retry-after.ts';
import { toStoredError } from './stored-error.ts';

/*
 * Anything can be thrown, and user code may answer anything. None of it may make us throw, hang, or
 * build something the store cannot keep.
 */

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

const refuse = (): never => {
  throw new Error('hostile');
};

/** Every trap throws. */
const refusing = (target: object): object =>
  new Proxy(target, new Proxy({}, { get: () => refuse }) as ProxyHandler<object>);

/** Every property is another such object, callable, without end. */
const endless = (): object => new Proxy(() => {}, { get: () => endless(), apply: () => endless() });

const keys = [
  'name',
  'message',
  'stack',
  'code',
  'cause',
  'errors',
  'issues',
  'status',
  'response',
  'headers',
  '$response',
];

/** Real errors with fields of any kind, or getters that throw. */
const oddError = fc
  .dictionary(fc.constantFrom(...keys, 'get', 'retry-after', 'constructor', 'then'), fc.anything())
  .chain((fields) => fc.constantFrom('plain', 'assigned', 'throwing').map((kind) => ({ kind, fields })))
  .map(({ kind, fields }) => {
    if (kind === 'plain') return fields;
    const error = new Error('x');
    for (const [key, value] of Object.entries(fields)) {
      const get = kind === 'throwing' ? refuse : (): unknown => value;
      Object.defineProperty(error, key, { get, configurable: true });
    }
    return error;
  });

const branded = fc.anything().map((control) => ({ [Symbol.for('mulligan.control-error')]: control }));
const withHeaders = fc.anything().map((headers) => ({ headers, response: { headers }, $response: { headers } }));

const odd = fc.oneof(
  { weight: 4, arbitrary: fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }) },
  { weight: 4, arbitrary: oddError },
  branded,
  withHeaders,
);

/** Makes the value only when called: fast-check itself could not hold these. */
const hostile: fc.Arbitrary<() => unknown> = fc.oneof(
  { weight: 3, arbitrary: odd.map((value) => () => value) },
  fc.constantFrom<() => unknown>(
    () => refusing({}),
    () => refusing([]),
    () => refusing(() => {}),
    () => revoked({}),
    () => revoked([]),
    endless,
    () => ({ headers: [revoked([]), revoked({})] }),
    () => ({ headers: { get: refuse } }),
    () => ({ headers: { get: () => refusing({}) } }),
    () => ({ headers: refusing({}) }),
    () => ({ headers: { 'retry-after': revoked([]) } }),
    () => ({ errors: revoked([]), cause: refusing({}) }),
    () => ({ errors: [revoked({}), refusing([]), endless()] }),
    () => ({ issues: [revoked({}), { message: 'm', path: revoked([]) }, { message: 'm', path: [refusing({})] }] }),
    () => ({ [Symbol.for('mulligan.control-error')]: refusing({}) }),
    () => ({ [Symbol.for('mulligan.control-error')]: { kind: 'snooze', wait: refusing({}) } }),
    () => Object.create(refusing({})),
    () => ({ message: '\ud800'.repeat(9_000), stack: '\0'.repeat(9_000) }),
  ),
);

const options = { numRuns: 3_000 };

test('describe answers a short text', () => {
  fc.assert(
    fc.property(hostile, (make) => {
      expect(describeValue(make()).length).toBeLessThan(700);
    }),
    options,
  );
});

test('toStoredError returns bounded text that any store can keep', () => {
  fc.assert(
    fc.property(hostile, (make) => {
      const json = JSON.stringify(toStoredError(make()));
      expect(json.length).toBeLessThan(200_000);
      expect(json.includes('\\u0000')).toBe(false);
      expect(/\\ud[89a-f]/.test(json)).toBe(false);
    }),
    options,
  );
});

test('retryAfterOf returns a whole number of ms or null', () => {
  fc.assert(
    fc.property(hostile, (make) => {
      const ms = retryAfterOf(make(), 1_000);
      expect(ms === null || (Number.isSafeInteger(ms) && ms >= 0)).toBe(true);
    }),
    options,
  );
});

test('controlErrorOf returns a control it knows, or null', () => {
  fc.assert(
    fc.property(hostile, (make) => {
      const kinds = [undefined, 'unrecoverable', 'retry-after', 'snooze', 'cancel'];
      expect(kinds).toContain(controlErrorOf(make())?.kind);
    }),
    options,
  );
});

test('classify answers an outcome, whatever is thrown and whatever the definition answers', () => {
  const run = { name: 'a', run: 1, attempt: 1, maxAttempts: 4, previousDelayMs: null };
  fc.assert(
    fc.property(hostile, hostile, fc.boolean(), (makeThrown, makeAnswer, throws) => {
      const verdict = (): never => {
        if (throws) throw makeAnswer();
        return makeAnswer() as never;
      };
      const context: ClassifyContext = { now: 1_000, run, classify: verdict, rules: [{ name: 'A', class: 'job' }] };
      const outcome = classify(makeThrown(), context);
      expect(['failed', 'snoozed', 'cancelled']).toContain(outcome.kind);
      expect(() => JSON.stringify(outcome)).not.toThrow();
    }),
    options,
  );
});
