import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { checkName } from './config.ts';
import { defineJob, definitionsByName, implement, isDefinition } from './definition.ts';
import { ConfigError } from './errors.ts';

const run = (): void => {};

function complaint(make: () => unknown): string {
  try {
    make();
    return 'no complaint';
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
}

/** What JavaScript callers may write, and TypeScript would not let pass. */
const define = (options: unknown) => defineJob(options as never);

describe('defineJob', () => {
  it('needs only a name and a handler; the rest has defaults', () => {
    expect(defineJob({ name: 'email.send', run })).toEqual({
      name: 'email.send',
      input: undefined,
      tags: null,
      version: null,
      migrate: undefined,
      queue: 'default',
      retryQueue: null,
      resource: null,
      maxOutageMs: 86_400_000,
      limits: [],
      priority: 5,
      retry: undefined,
      timeoutMs: null,
      classify: undefined,
      rules: [],
      backoff: undefined,
      onDead: undefined,
      silence: [],
      retention: {},
      run,
    });
  });

  it('keeps what it was given, with durations in milliseconds', () => {
    const classify = () => 'job' as const;
    const backoff = () => 5;
    const onDead = () => {};
    const input = z.object({});
    const given = { name: 'a', queue: 'mail', retryQueue: 'mail.retry', resource: () => null, priority: 0, run };
    expect(
      defineJob({
        ...given,
        ...{ input, retry: { maxAttempts: 2 }, timeout: '30s', maxOutage: '2h', classify, backoff, onDead },
      }),
    ).toMatchObject({
      ...given,
      ...{ input, retry: { maxAttempts: 2 }, timeoutMs: 30_000, maxOutageMs: 7_200_000, classify, backoff, onDead },
    });
  });

  it.each([false, 'smtp', () => 'key', (input: { host: string }) => ['webhook', input.host] as const])(
    'keeps %s as the resource',
    (resource) => {
      expect(define({ name: 'a', run, resource }).resource).toBe(resource);
    },
  );

  it('returns a frozen definition', () => {
    const job = defineJob({ name: 'a', run });
    expect(() => Object.assign(job, { queue: 'elsewhere' })).toThrow(TypeError);
  });

  it.each([
    ['zod', z.object({ to: z.string() })],
    ['valibot', v.object({ to: v.string() })],
    ['arktype, which makes functions', Object.assign(() => {}, { '~standard': z.string()['~standard'] })],
  ])('takes a schema made with %s', (_, input) => {
    const schema = input as never;
    expect(defineJob({ name: 'a', input: schema, run }).input).toBe(schema);
  });

  it.each<[string, unknown, string]>([
    [
      'nothing',
      undefined,
      'defineJob: expected an object with options, got undefined. Valid options: name, input, run,',
    ],
    ['no name', { run }, 'defineJob: name: expected a text of 1 to 200 characters'],
    ['an empty name', { name: ' ', run }, 'defineJob: name: expected a text of 1 to 200 characters'],
    ['a handler that is none', { name: 'a', run: 5 }, 'job a: run: expected a function, got 5.'],
    [
      'a misspelt option',
      { name: 'a', run, timeoutt: 5 },
      'defineJob: there is no option "timeoutt". Did you mean timeout?',
    ],
    [
      'an option of another place',
      { name: 'a', run, delay: '5m' },
      'defineJob: there is no option "delay". Here it is delay of enqueue. Or at, with a Date.',
    ],
    ['maxAttempts beside retry', { name: 'a', run, maxAttempts: 3 }, 'defineJob: there is no option "maxAttempts".'],
    [
      'no schema',
      { name: 'a', run, input: { to: 'string' } },
      'job a: input: expected a Standard Schema (zod, valibot, arktype, ...), got an object with the key to.',
    ],
    [
      'a migrate without a version',
      { name: 'a', run, migrate: () => {} },
      'job a: expected a version of at least 2 with migrate, got none. Payloads',
    ],
    [
      'a migrate to version 1',
      { name: 'a', run, version: 1, migrate: () => {} },
      'job a: expected a version of at least 2 with migrate, got 1. Payloads',
    ],
    [
      'an output that is no type',
      { name: 'a', output: 5 },
      'job a: output: expected what typeOf<YourType>() returns, got 5. It only names a type',
    ],
    [
      'a schema as its output',
      { name: 'a', output: z.object({}) },
      'job a: output: expected what typeOf<YourType>() returns, got an object',
    ],
    ['an empty queue', { name: 'a', run, queue: '' }, 'job a: queue: expected a text'],
    ['a retryQueue that is no text', { name: 'a', run, retryQueue: true }, 'job a: retryQueue: expected a text'],
    ['a resource that is no text', { name: 'a', run, resource: 5 }, 'job a: resource: expected a text'],
    [
      'a resource with a slash',
      { name: 'a', run, resource: 'webhook/example.com' },
      'job a: resource: expected a text of 1 to 200 characters, none of them a slash or a control character, got "webhook/example.com". For a gate per key, give a function',
    ],
    ['a resource that is true', { name: 'a', run, resource: true }, 'job a: resource: expected a text'],
    [
      'a maxOutage behind a resource',
      { name: 'a', run, resource: 'smtp', maxOutage: '1h' },
      'job a: maxOutage: expected only without a resource, got it with resource: "smtp". Behind a resource, retry.deadline bounds the waiting',
    ],
    [
      'a maxOutage where every failure counts',
      { name: 'a', run, resource: false, maxOutage: '1h' },
      'job a: maxOutage: expected only without a resource, got it with resource: false. With it every failure counts',
    ],
    ['a maxOutage that is no duration', { name: 'a', run, maxOutage: 'long' }, 'job a: maxOutage: expected a duration'],
    [
      'a priority beyond 9',
      { name: 'a', run, priority: 10 },
      'job a: priority: expected a whole number from 0 to 9, got 10. 0 runs first, 9 last.',
    ],
    [
      'a timeout of 0',
      { name: 'a', run, timeout: 0 },
      'job a: timeout: expected a duration above 0, got 0. Leave it out for no timeout.',
    ],
    ['a timeout without a unit', { name: 'a', run, timeout: '30' }, 'job a: timeout: expected a duration'],
    [
      'a policy of 0 attempts',
      { name: 'a', run, retry: { maxAttempts: 0 } },
      'job a: retry.maxAttempts: expected a whole number of at least 1, got 0.',
    ],
    [
      'a misspelt policy',
      { name: 'a', run, retry: { maxAttemps: 3 } },
      'job a: retry: there is no option "maxAttemps". Did you mean maxAttempts?',
    ],
    [
      'a classify that is no function',
      { name: 'a', run, classify: 'job' },
      'job a: classify: expected a function, got "job".',
    ],
    [
      'a backoff that is data',
      { name: 'a', run, backoff: { kind: 'fixed' } },
      'job a: backoff: expected a function, got an object with the key kind.',
    ],
    [
      'an onDead that is neither a function nor a job',
      { name: 'a', run, onDead: 1 },
      'job a: onDead: expected a function, or [job, input], got 1.',
    ],
    ['rules that are no list', { name: 'a', run, rules: {} }, 'job a: rules'],
  ])('refuses %s, and says what was expected', (_, options, message) => {
    expect(complaint(() => define(options))).toContain(message);
  });
});

describe('a name', () => {
  it.each(['a', 'email.send', 'naïve 日本語 👩‍👩‍👧', '__proto__', "'; DROP TABLE jobs; --", 'x'.repeat(200)])(
    'may be %j',
    (name) => {
      expect(checkName(name, 'name')).toBe(name);
    },
  );

  it.each([
    ['empty', ''],
    ['blank', ' \u00a0 '],
    ['longer than 200 characters', 'x'.repeat(201)],
    ['broken over two lines', 'a\nb'],
    ['cut by a NUL', 'a\0b'],
    ['spiked with a control character', 'a\u0085b'],
    ['ended by half a surrogate pair', 'a\ud800'],
    ['a number', 5],
    ['a String object', Object('a')],
    ['missing', undefined],
  ])('cannot be %s', (_, name) => {
    expect(complaint(() => checkName(name, 'name'))).toContain(
      'name: expected a text of 1 to 200 characters, none of them control characters, got ',
    );
  });
});

describe('a list of definitions', () => {
  const a = defineJob({ name: 'a', run });
  const proto = defineJob({ name: '__proto__', run });

  it('is found by name, whatever the names are', () => {
    const byName = definitionsByName([a, proto], 'jobs');
    expect([...byName.keys()]).toEqual(['a', '__proto__']);
    expect(byName.get('__proto__')).toBe(proto);
    expect(byName.get('constructor')).toBeUndefined();
  });

  it('may hold one definition twice', () => {
    expect(definitionsByName([a, a], 'jobs').size).toBe(1);
  });

  it('may hold both halves of a split definition, and keeps the one with run', () => {
    const half = defineJob<null>({ name: 'split' });
    const whole = implement(half, () => {});
    for (const jobs of [
      [half, whole],
      [whole, half],
    ])
      expect(definitionsByName(jobs, 'jobs').get('split')).toBe(whole);
  });

  it.each<[string, unknown, string]>([
    [
      'two definitions of one name',
      [a, defineJob({ name: 'a', run })],
      'jobs: expected one definition per name, got two for "a".',
    ],
    ['an object', { a }, 'jobs: expected a list of definitions made by defineJob, got an object with the key a.'],
    [
      'options that never went through defineJob',
      [a, { name: 'b', run }],
      'jobs[1]: expected a definition made by defineJob, got an object with the keys name, run.',
    ],
    ['null', [null], 'jobs[0]: expected a definition made by defineJob, got null.'],
  ])('refuses %s', (_, jobs, message) => {
    expect(complaint(() => definitionsByName(jobs, 'jobs'))).toBe(message);
  });

  it('knows a definition from its options', () => {
    expect(isDefinition(a)).toBe(true);
    for (const other of [{ name: 'a', run }, 'a', null, undefined, run]) expect(isDefinition(other)).toBe(false);
  });
});
