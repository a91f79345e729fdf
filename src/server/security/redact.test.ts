import { describe, expect, test } from 'vitest';
import { redactor } from './redact.ts';

const redact = redactor([]);
const HIDDEN = '[redacted]';

describe('credentials are hidden', () => {
  test.each<[unknown, unknown]>([
    [
      { user: 'ada', dbPassword: 'hunter2' },
      { user: 'ada', dbPassword: HIDDEN },
    ],
    [{ password: { old: 'hunter2' } }, { password: HIDDEN }],
    [[['authorization', 'hunter2']], [['authorization', HIDDEN]]],
    [
      ['Host', 'a', 'Cookie', 'hunter2'],
      ['Host', 'a', 'Cookie', HIDDEN],
    ],
    [
      ['mysql', '--password', 'hunter2'],
      ['mysql', '--password', HIDDEN],
    ],
    [
      { name: 'Cookie', value: 'hunter2' },
      { name: 'Cookie', value: HIDDEN },
    ],
    [
      { Value: { S: 'hunter2' }, Key: 'TOKEN' },
      { Value: HIDDEN, Key: 'TOKEN' },
    ],
    [{ body: '{"a":[{"token":"hunter2"}], "b":1}' }, { body: '{"a":[{"token":"[redacted]"}],"b":1}' }],
    [{ url: 'https://ada:hunter2@example.com' }, { url: 'https://***@example.com' }],
    [{ 'https://ada:hunter2@example.com': 1 }, { 'https://***@example.com': 1 }],
    ['password=hunter2 & more', 'password=*** & more'],
    ['[1, "token: hunter2"]', '[1,"token: ***"]'],
  ])('of %j', (data, shown) => {
    expect(redact(data)).toEqual(shown);
  });
});

describe('what is none is shown as it is', () => {
  test.each<[unknown]>([
    [{ author: 'Ada', keyboard: 'us', tokenizer: 'bpe', monkey: 1, passwordResetAt: 5 }],
    [{ tokens: 4_096, maxTokens: 5, hasPassword: true, token: null }],
    [{ session: { room: 5, speaker: 'Ada' } }],
    [{ name: 'Ada', value: 5 }],
    [{ name: 'reset-password', user: 'ada', value: true }],
    [['a', 'password', 'b']],
    [['password', 'email', 'name']],
    [{ body: '{ "pretty":\n  [1, 2] }', text: '[not JSON', list: '[]' }],
    [JSON.parse('{"__proto__":{"a":1},"constructor":1}')],
    [null],
    [5],
    [''],
  ])('%j', (data) => {
    expect(redact(data)).toEqual(data);
    expect(JSON.stringify(redact(data))).toBe(JSON.stringify(data));
  });
});

test('fields that are named are hidden beside all others, whatever they hold and however they are written', () => {
  const own = redactor(['iban', 'medical-record']);
  expect(own({ IBAN: 'DE00', medicalRecord: { a: 1 }, i_ban: 5, password: 'x', customer_iban: 'DE' })).toEqual({
    IBAN: HIDDEN,
    medicalRecord: HIDDEN,
    i_ban: HIDDEN,
    password: HIDDEN,
    customer_iban: 'DE',
  });
  expect(own([['iban', 'DE00']])).toEqual([['iban', HIDDEN]]);
  expect(own({ iban: true })).toEqual({ iban: HIDDEN });
});

test('what is deeper than 64 levels is not shown, as data or as JSON in text', () => {
  const deep = `${'['.repeat(100)}"hunter2"${']'.repeat(100)}`;
  expect(JSON.stringify(redact(JSON.parse(deep)))).not.toContain('hunter2');
  expect(redact(deep)).not.toContain('hunter2');
  expect(redact(`${'['.repeat(500_000)}${']'.repeat(500_000)}`)).toBe(`${'['.repeat(63)}"[redacted]"${']'.repeat(63)}`);
});

test.each<[string, unknown]>([
  ['many fields', Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`field ${n}`, 'x']))],
  [
    'many names of one value',
    { ...Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`n${n}`, 'x'])), name: 'a', value: 'b' },
  ],
  ['a list of many texts', Array.from({ length: 100_000 }, () => 'password')],
  ['a text of many brackets', '[{"'.repeat(300_000)],
  [
    'JSON in JSON, many levels',
    Array.from({ length: 17 }).reduce<string>((inner) => JSON.stringify({ b: inner }), '{"a":1}'),
  ],
])('%s take no quadratic time', (_, data) => {
  // No timing: quadratic work would run into the test's time limit many times over.
  expect(redact(data)).toBeDefined();
});
