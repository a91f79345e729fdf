import { describe, expect, test } from 'vitest';
import { scrub, scrubAddress } from './scrub.ts';

describe('credentials are taken out', () => {
  test.each([
    ['postgres://app:hunter2@db.local/jobs', 'postgres://***@db.local/jobs'],
    ['redis://:12345@cache:6379', 'redis://***@cache:6379'],
    ['bad URL "postgres://app:hun/t@er2@db/jobs"', 'bad URL "postgres://***@db/jobs"'],
    ['https://ghp_abc@example.com/x.git', 'https://***@example.com/x.git'],
    ['Authorization: Basic dXNlcjpodW50ZXIy', 'Authorization: ***'],
    ['authorization: Digest username="a", response="b"\nnext', 'authorization: ***\nnext'],
    ["headers: { authorization: 'Bearer hunter2', accept: 'json' }", "headers: { authorization: ***, accept: 'json' }"],
    ['{"Authorization":"Bearer hunter2","a":1}', '{"Authorization":***,"a":1}'],
    ['Cookie: sid=hunter2; b=2', 'Cookie: ***'],
    ['sent Bearer hunter2hunter2 to it', 'sent Bearer *** to it'],
    ['password=hunter2&x=1', 'password=***&x=1'],
    ['PGPASSWORD=hunter2 psql', 'PGPASSWORD=*** psql'],
    ['db_password: hunter2', 'db_password: ***'],
    ['{"password":"hun ter2","user":"a"}', '{"password":***,"user":"a"}'],
    ['{\\"password\\":\\"hunter2\\",\\"user\\":1}', '{\\"password\\":\\***,\\"user\\":1}'],
    ["{ apiKey: 'hunter2', id: 1 }", '{ apiKey: ***, id: 1 }'],
    ['GET /x?api_key=hunter2&access_token=hunter2 500', 'GET /x?api_key=***&access_token=*** 500'],
    ['GET /blob?sv=1&sig=hunter2&se=2', 'GET /blob?sv=1&sig=***&se=2'],
    ['X-Amz-Signature=hunter2', 'X-Amz-Signature=***'],
    ['X-Api-Key: hunter2', 'X-Api-Key: ***'],
    ['aws_secret_access_key = hunter2', 'aws_secret_access_key = ***'],
    ['client_secret="hunter2', 'client_secret=***'],
    ['passphrase: "hunter2"', 'passphrase: ***'],
    ['token eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl is bad', 'token *** is bad'],
    ['key sk_live_abcdefgh12345 is bad', 'key *** is bad'],
    ['AKIAIOSFODNN7EXAMPLE', '***'],
    ['secret_key: hunter2', 'secret_key: ***'],
    ['Command failed: mysql --user a --password hunter2 -e x', 'Command failed: mysql --user a --password *** -e x'],
    ['<wsse:Password Type="Text">hunter2</wsse:Password>', '<wsse:Password Type="Text">***</wsse:Password>'],
    ['q=user%3Da%26password%3Dhunter2', 'q=user%3Da%26password%3D***'],
    ['sk-hunter2-hunter2-hunter2-x is no key', '*** is no key'],
    ['glpat-hunter2hunter2hunter2', '***'],
    ["SECRET_KEY = 'hunter2'", 'SECRET_KEY = ***'],
    ['{"secretKey":"hunter2"}', '{"secretKey":***}'],
    ['secret_key_base: hunter2', 'secret_key_base: ***'],
    ['passwordHash=hunter2', 'passwordHash=***'],
    ['password2: hunter2', 'password2: ***'],
    ['bearerToken: hunter2', 'bearerToken: ***'],
    ['{"password":"hun\\"hunter2","a":1}', '{"password":***,"a":1}'],
    ['{"passwords":["hunter2","hunter2"],"a":1}', '{"passwords":***,"a":1}'],
    ["{ tokens: [ 'hunter2', 'hunter2' ], a: 1 }", '{ tokens: ***, a: 1 }'],
    ["{ credentials: { user: 'a', key: 'hunter2' }, a: 1 }", '{ credentials: ***, a: 1 }'],
    ["{ user: 'a', pass: 'hunter2' }", "{ user: 'a', pass: *** }"],
    ["{ smtpPass: 'hunter2' }", '{ smtpPass: *** }'],
    ['DB_PASS=hunter2', 'DB_PASS=***'],
    ["[ [ 'authorization', 'hunter2' ] ]", "[ [ 'authorization', *** ] ]"],
    ['[["x-api-key","hunter2"],["a","b"]]', '[["x-api-key",***],["a","b"]]'],
    ["{ name: 'Authorization', value: 'hunter2' }", "{ name: 'Authorization', value: *** }"],
    ['{"name":"DB_PASSWORD","value":"hunter2"}', '{"name":"DB_PASSWORD","value":***}'],
    ['{\\"name\\":\\"token\\",\\"value\\":\\"hunter2\\"}', '{\\"name\\":\\"token\\",\\"value\\":\\***}'],
    ["Map(1) { 'password' => 'hunter2' }", "Map(1) { 'password' => *** }"],
    ['ｐａｓｓｗｏｒｄ: hunter2', 'password: ***'],
    ['pass\u200bword=hunter2', 'password=***'],
    ['p\u0430ssw\u043erd=hunter2', 'password=***'],
    ['pa\u0308sswo\u0308rd: hunter2', 'password: ***'],
    ['密码 password：hunter2', '密码 password：***'],
    ['“password”: “hunter2 hunter2”', '“password”: ***'],
    ['-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY----- is bad', '*** is bad'],
    ['"-----BEGIN PRIVATE KEY-----\\nhunter2\\n-----END PRIVATE KEY-----"', '"***"'],
    ['-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2, and cut', '***'],
  ])('%s', (text, scrubbed) => {
    expect(scrub(text)).toBe(scrubbed);
    expect(scrub(text)).not.toContain('hunter2');
  });
});

describe('ordinary text stays as it is', () => {
  test.each([
    ['connect ECONNREFUSED 127.0.0.1:5432'],
    ['GET https://example.com:8080/users/a@example.com failed'],
    ['Unexpected token < in JSON at position 0'],
    ['mail to a@example.com bounced'],
    ['The password is too short'],
    ['duplicate key value violates unique constraint "users_email_key"'],
    ['Key (id)=(5) already exists'],
    ['exited with code=1, signal: SIGTERM'],
    ['auth: failed'],
    ['at run (file:///app/node_modules/@scope/pkg/index.js:10:5)'],
    ['at async https://example.com/@scope/pkg.js:1:2'],
    ['max_tokens: 4096 is more than tokens=2048 of the model'],
    ['tokens: expected a list, token: expected'],
    ['password: undefined, token: null, "apiKey":true}'],
    ['tokenizer: wordpiece, author: Ada, keyboard: us, monkey=1'],
    ['passwordResetAt: 2026-01-01, tokenType: bearer'],
    ['session: morning, pin: 13, bypass=1, compass=north'],
    ['Map<Token> is not <b>a token</b>, and --token-file FILE is missing'],
    ['-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----'],
    ['ключ: 5, ｆｕｌｌ width, ﬁ'],
    ['密码：很长，über: schön'],
  ])('%s', (text) => {
    expect(scrub(text)).toBe(text);
  });
});

test.each([
  ['postgres:/app:hunter2@db/x', 'postgres:/***@db/x'],
  ['sqlite://app:hunter2@db/x', 'sqlite://***@db/x'],
  ['sqlite:app:hunter2@db/x', 'sqlite:***@db/x'],
  ['postgres//app:hunt/er2@hunter2@db/x', '***@db/x'],
  ['app:hunter2@db/x', 'app:***@db/x'],
  ['postgres://db/x?password=hunter2', 'postgres://db/x?password=***'],
  ['sqlite:jobs.db', 'sqlite:jobs.db'],
])('of the address %s, however it is mistyped, no password is shown', (address, shown) => {
  expect(scrubAddress(address)).toBe(shown);
});

test.each([
  'a.',
  '://',
  '://a:',
  '://a:b@',
  'a@',
  'token',
  'token[',
  'password=',
  'password="\\"',
  'password: {',
  '"password",',
  'name:"password",value',
  'password hash text ',
  'tokens: 1111',
  '--password ',
  '--a',
  '<password>',
  '<password a',
  '<a:token>b',
  'password%3D',
  'access key ',
  'session="',
  'a_pass',
  'eyJ',
  'authorization: ',
  'authorization:"\\',
  'Bearer ',
  '-----BEGIN ',
  '-----BEGIN PRIVATE KEY-----',
  '"',
  '\\',
  ' ',
  '\u0445',
  'pass\u200bword',
  '\u0308',
])('a mebibyte of %o takes no quadratic time', (text) => {
  // No timing: a pattern that went quadratic would run into the test's time limit many times over.
  expect(scrub(text.repeat(1_048_576 / text.length))).toBeTypeOf('string');
});

test('a text of more than a mebibyte is removed whole', () => {
  expect(scrub('a'.repeat(1_048_577))).toBe('***');
});

test.each(['"\\n', '"a', "'a", '“a', '[a', '{a', 'a'])(
  'a value that begins %o and does not end is removed whole',
  (value) => {
    const [first = '', ...rest] = value;
    expect(scrub(`password=${first}${rest.join('').repeat(500_000)}`)).toBe('password=***');
  },
);
