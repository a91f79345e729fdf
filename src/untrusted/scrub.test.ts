import { describe, expect, test } from 'vitest';
import { isSecretName, scrub } from './scrub.ts';

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
  ])('%s', (text) => {
    expect(scrub(text)).toBe(text);
  });
});

test.each([
  ['a.'],
  ['://'],
  ['://a:'],
  ['token'],
  ['password='],
  ['"'],
  ['eyJ'],
  ['authorization: '],
  ['Bearer '],
  ['a@'],
  ['\\'],
  [' '],
])('64 KiB of %o take no quadratic time', (text) => {
  // No timing: a pattern that went quadratic would run into the test's time limit many times over.
  expect(scrub(text.repeat(65_536 / text.length))).toBeTypeOf('string');
});

test.each(['password', 'dbPassword', 'api_key', 'Authorization', 'set-cookie', 'accessToken', 'auth'])(
  'a field named %s is a credential',
  (name) => {
    expect(isSecretName(name)).toBe(true);
  },
);

test.each(['', 'tokens', 'author', 'passenger', 'signal', 'key', 'sessions'])('a field named "%s" is none', (name) => {
  expect(isSecretName(name)).toBe(false);
});
