import { expect, it } from 'vitest';
import { createToken } from '../../src/server/index.ts';
import { claimOne, served } from './served.ts';

/* What a token that may only read sees of secrets in payloads, progress, results, logs and inputs of schedules. */

const S = 'hunter2hunter2';
const PEM = `-----BEGIN RSA PRIVATE KEY-----\n${S}\n-----END RSA PRIVATE KEY-----`;

const probes: Readonly<Record<string, unknown>> = {
  'a prefixed password': { dbPassword: S },
  'a key of AWS': { aws_secret_access_key: S },
  'a cookie': { 'set-cookie': `sid=${S}` },
  'a header with a key': { 'x-api-key': S },
  'an id token': { id_token: S },
  'a short name': { pwd: S },
  'a secret key': { secretKey: S },
  'a bearer token': { bearerToken: S },
  'a session token': { sessionToken: S },
  'a list of tokens': { tokens: [S, 'b'] },
  'an object of passwords': { passwords: { root: S } },
  'a name with a space at its end': { 'PASSWORD ': S },
  'a path as a name': { 'user.password': S },
  'a name of two words': { 'pass word': S },
  'a list of pairs': { headers: [['authorization', S]] },
  'a flat list of headers': { rawHeaders: ['Host', 'a', 'Authorization', S] },
  'a name beside its value': { headers: [{ name: 'Authorization', value: S }] },
  'a value before its name': { env: [{ Value: S, Key: 'DB_PASSWORD' }] },
  'JSON in text': { body: JSON.stringify({ user: 'ada', passwords: [S], x: [{ name: 'cookie', value: S }] }) },
  'JSON in JSON in text': { body: JSON.stringify({ body: JSON.stringify({ apiKey: S }) }) },
  'a user in a URL': { callback: `https://ada:${S}@example.com/x` },
  'full-width letters': { ｐａｓｓｗｏｒｄ: S },
  'an invisible character': { 'pass\u200bword': S },
  'Cyrillic letters': { 'p\u0430ssw\u043erd': S },
  'a private key in text': { note: `use this: ${PEM}` },
  'a header in text': { note: `curl -H 'Authorization: Bearer ${S}'` },
  'a secret as a name': { [`https://ada:${S}@example.com/x`]: 'ok' },
  'an object in a text': { note: `{ passwords: ['${S}', '${S}'] } was refused` },
  'a number': { pin: 4_711_471_147, nested: { cvv: 4_711_471_147 } },
};

const reader = createToken('reader', ['read']);
const admin = createToken('admin', ['admin']);
const bearer = ({ token }: { token: string }) => ({ authorization: `Bearer ${token}` });

it.each(Object.entries(probes))('a reader does not see %s, whichever way is asked', async (_, probe) => {
  const { call } = await served({ server: { dashboard: false, tokens: [reader.stored, admin.stored] } });
  const as = (who: typeof reader) => (method: string, path: string, body?: unknown) =>
    call(method, path, body, bearer(who));
  const [read, operate] = [as(reader), as(admin)];
  const input = { user: 'ada', probe };
  const { id } = (await operate('POST', '/api/v1/jobs', { name: 'a', input })).body;
  await operate('PUT', '/api/v1/schedules/s', { job: 'a', every: '1h', input });
  const { lease } = await claimOne((method, path, body) => operate(method, path, body));
  const lines = [{ level: 'info', message: 'called', fields: input }];
  await operate('POST', '/api/v1/heartbeat', { lease, progress: input });
  await operate('POST', '/api/v1/settle', { lease, outcome: 'ack', result: input, log: lines });
  const seen = await Promise.all([
    read('GET', `/api/v1/jobs/${id}`),
    read('GET', '/api/v1/jobs'),
    read('GET', `/api/v1/jobs/${id}/result`),
    read('GET', `/api/v1/jobs/${id}/logs`),
    read('GET', '/api/v1/schedules'),
    read('GET', '/api/v1/schedules/s'),
    read('POST', '/api/v1/store/get', [[id]]),
    read('POST', '/api/v1/store/list', [{ limit: 10 }]),
    read('POST', '/api/v1/store/ended', [[id], null]),
    read('POST', '/api/v1/store/logs', [id, 10]),
    read('POST', '/api/v1/store/schedules', [{ limit: 10 }]),
  ]);
  expect(seen.map(({ status }) => status)).toEqual(seen.map(() => 200));
  const text = JSON.stringify(seen.map(({ body }) => body));
  expect(text).toContain('ada');
  expect(text).not.toMatch(/hunter2|4711471147/);
  // A search must not tell either.
  expect((await read('GET', '/api/v1/jobs?payload=hunter2')).body.items).toEqual([]);
  const { body: revealed } = await operate('POST', `/api/v1/jobs/${id}/reveal`, {});
  expect(revealed.payload).toEqual(input);
});
