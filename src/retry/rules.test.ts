import * as valibot from 'valibot';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import * as zodCore from 'zod/v4/core';
import { ConfigError, InputError } from '../errors.ts';
import type { FailureClass } from './outcome.ts';
import { type ClassifyRule, defaultRules, matchRules, validateClassifyRules } from './rules.ts';

const caught = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (error) {
    return error;
  }
};
const withField = (fields: object): Error => Object.assign(new Error('x'), fields);
const named = (name: string): Error => withField({ name });

describe('the default rules', () => {
  test.each([
    ...['ValidationError', 'NotFoundError', 'UnauthorizedError', 'ForbiddenError', 'ZodError'],
    ...['ValiError', 'SchemaError', 'StructError', 'TraversalError'],
  ])('an error named %s is permanent', (name) => {
    expect(matchRules(named(name), defaultRules)).toEqual({ class: 'permanent', rule: `name:${name}` });
  });

  test.each([
    ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ETIMEOUT', 'ENOTFOUND', 'EAI_AGAIN'],
    ...['EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'],
    'UND_ERR_SOCKET',
  ])('the code %s is the environment', (code) => {
    expect(matchRules(withField({ code }), defaultRules)).toEqual({ class: 'environment', rule: `code:${code}` });
  });

  test('a text that is not JSON, such as the body of a response, is no reason to give up', () => {
    expect(
      matchRules(
        caught(() => JSON.parse('<html>')),
        defaultRules,
      ),
    ).toBeNull();
  });

  test('every HTTP status: 4xx is permanent except 408, 425 and 429; they and 5xx are the environment', () => {
    for (let status = 100; status < 600; status++) {
      const isEnvironment = status >= 500 || [408, 425, 429].includes(status);
      const kind = isEnvironment ? 'environment' : status >= 400 ? 'permanent' : null;
      const match = matchRules(withField({ status }), defaultRules);
      expect(match).toEqual(kind === null ? null : { class: kind, rule: `http:${status}` });
    }
  });

  test.each<[string, unknown, FailureClass, string]>([
    ['zod', caught(() => z.string().parse(1)), 'permanent', 'name:ZodError'],
    ['zod’s core', caught(() => zodCore.parse(z.string(), 1)), 'permanent', 'name:$ZodError'],
    ['valibot', caught(() => valibot.parse(valibot.string(), 1)), 'permanent', 'name:ValiError'],
    ['our own schema rejection', new InputError('x', []), 'permanent', 'name:InputError code:INPUT'],
    ['AbortSignal.timeout', new DOMException('x', 'TimeoutError'), 'environment', 'name:TimeoutError'],
    ['axios', withField({ code: 'ERR_BAD_RESPONSE', response: { status: 502 } }), 'environment', 'http:502'],
    ['got', withField({ response: { statusCode: 404 } }), 'permanent', 'http:404'],
    ['the AWS SDK', withField({ $metadata: { httpStatusCode: 503 } }), 'environment', 'http:503'],
    ['a thrown Response', new Response(null, { status: 429 }), 'environment', 'http:429'],
  ])('%s', (_, error, kind, rule) => {
    expect(matchRules(error, defaultRules)).toEqual({ class: kind, rule });
  });

  test('a real refused connection of fetch is the environment, by its cause', async () => {
    const server = await import('node:net').then(({ createServer }) => createServer().listen(0, '127.0.0.1'));
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    const error = await fetch(`http://127.0.0.1:${port}/`).catch((reason: unknown) => reason);
    expect(matchRules(error, defaultRules)).toEqual({ class: 'environment', rule: 'code:ECONNREFUSED' });
  });

  test('message text decides nothing', () => {
    for (const message of ['ValidationError', 'ECONNREFUSED', 'HTTP 404', 'status 503', 'timeout']) {
      expect(matchRules(new Error(message), defaultRules)).toBeNull();
      expect(matchRules(message, defaultRules)).toBeNull();
    }
    expect(matchRules(new TypeError('x'), defaultRules)).toBeNull();
    expect(matchRules(named('InputError'), defaultRules)).toBeNull();
  });
});

describe('where a rule looks', () => {
  test('at the classes of an error that did not set its name', () => {
    class ValidationError extends Error {}
    class InvalidAddress extends ValidationError {}
    expect(matchRules(new InvalidAddress(), defaultRules)?.rule).toBe('name:ValidationError');
  });

  test('along the causes, the outermost match first', () => {
    const inner = withField({ code: 'ECONNRESET' });
    const chain = new Error('a', { cause: new Error('b', { cause: inner }) });
    expect(matchRules(chain, defaultRules)?.rule).toBe('code:ECONNRESET');
    expect(matchRules(Object.assign(chain, { status: 404 }), defaultRules)?.rule).toBe('http:404');
  });

  test('at a plain object that was thrown', () => {
    expect(matchRules({ statusCode: 500 }, defaultRules)?.rule).toBe('http:500');
  });

  test('causes that bite their own tail end', () => {
    const [a, b] = [new Error('a'), new Error('b')];
    Object.assign(a, { cause: b });
    Object.assign(b, { cause: a, errors: [a, b] });
    expect(matchRules(a, defaultRules)).toBeNull();
  });

  test('causes without end are given up on', () => {
    const endless: object = new Proxy({}, { get: (_, key) => (key === 'cause' ? Object.create(endless) : undefined) });
    expect(matchRules(endless, defaultRules)).toBeNull();
  });

  test('down to the 200th of them', () => {
    const below = (depth: number): Error => {
      let error: Error = withField({ code: 'EPIPE' });
      for (let n = 1; n < depth; n++) error = new Error('above', { cause: error });
      return error;
    };
    expect(matchRules(below(200), defaultRules)?.rule).toBe('code:EPIPE');
    expect(matchRules(below(201), defaultRules)).toBeNull();
  });
});

describe('of several errors in one, the most hopeful decides', () => {
  const notFound = withField({ status: 404 });
  const gone = withField({ status: 410 });
  const refused = withField({ code: 'ECONNREFUSED' });
  const unknown = new Error('x');
  test.each<[string, Error[], string | undefined]>([
    ['all permanent', [notFound, gone], 'http:404'],
    ['the same one twice', [notFound, notFound], 'http:404'],
    ['one is the environment', [notFound, refused, unknown], 'code:ECONNREFUSED'],
    ['one is the environment, one unknown', [unknown, refused], 'code:ECONNREFUSED'],
    ['one is unknown', [notFound, unknown], undefined],
    ['a cause among them', [new Error('x', { cause: refused })], 'code:ECONNREFUSED'],
    ['none', [], undefined],
  ])('%s', (_, errors, rule) => {
    expect(matchRules(new AggregateError(errors), defaultRules)?.rule).toBe(rule);
  });
});

test('a rule holds only when all it names does', () => {
  const rules: ClassifyRule[] = [{ name: 'PgError', code: '40001', status: [500, 503], class: 'job' }];
  expect(matchRules(withField({ name: 'PgError', code: '40001', status: 503 }), rules)).toEqual({
    class: 'job',
    rule: 'name:PgError code:40001 http:503',
  });
  expect(matchRules(withField({ name: 'PgError', code: '40001', status: 504 }), rules)).toBeNull();
  expect(matchRules(withField({ name: 'PgError', code: '40002', status: 503 }), rules)).toBeNull();
  expect(matchRules(withField({ name: 'Error', code: '40001', status: 503 }), rules)).toBeNull();
});

test('a numeric code matches its text', () => {
  expect(matchRules(withField({ code: 14 }), [{ code: '14', class: 'environment' }])?.rule).toBe('code:14');
});

describe('validateClassifyRules', () => {
  test('answers good rules as they are', () => {
    const rules: ClassifyRule[] = [
      { name: 'A', class: 'job' },
      { code: 'E', status: 404, class: 'environment' },
      { status: [400, 499], class: 'permanent' },
    ];
    expect(validateClassifyRules(rules, 'rules')).toEqual(rules);
  });

  test.each<[unknown, RegExp]>([
    [{}, /^rules: expected a list of rules, got an empty object/],
    [[null], /^rules\[0\]: expected an object/],
    [[{ class: 'job' }], /^rules\[0\]: expected a name, a code or a status to match/],
    [[{ name: 'A', class: 'permanant' }], /^rules\[0\]\.class: .*Did you mean permanent\?$/],
    [[{ name: 'A' }], /^rules\[0\]\.class/],
    [[{ nam: 'A', class: 'job' }], /Did you mean name\?$/],
    [[{ name: '', class: 'job' }], /^rules\[0\]\.name/],
    [[{ code: 5, class: 'job' }], /^rules\[0\]\.code/],
    [[{ status: 99, class: 'job' }], /^rules\[0\]\.status: expected a whole number from 100 to 599, got 99/],
    [[{ status: [500], class: 'job' }], /^rules\[0\]\.status: expected a status or \[from, to\]/],
    [[{ status: [500, 400], class: 'job' }], /^rules\[0\]\.status\[1\]: expected a whole number from 500 to 599/],
  ])('rejects %o', (rules, message) => {
    expect(() => validateClassifyRules(rules, 'rules')).toThrow(ConfigError);
    expect(() => validateClassifyRules(rules, 'rules')).toThrow(message);
  });
});
