import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { createServer, createToken, serve } from '../../src/server/index.ts';
import { claimOne, type Served, served } from './served.ts';

/* One test for each rule of docs/security.md. */

const ALL = ['read', 'write', 'work', 'admin'] as const;

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

/** Headers that fetch does not let a caller set. */
function raw(url: string, headers: Record<string, string>, body = ''): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: body === '' ? 'GET' : 'POST', headers }, (response) => {
      let text = '';
      response.on('data', (part) => {
        text += part;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

it('a server listens on this machine only, unless it is told otherwise', async () => {
  const { url } = await served();
  expect(new URL(url).hostname).toBe('127.0.0.1');
});

it.each(['0.0.0.0', '::', '192.0.2.1'])('%s is not listened on without tokens', async (host) => {
  await using mulligan = await Mulligan.open('memory:');
  await expect(serve(mulligan, { host, port: 0 })).rejects.toThrow(
    /expected tokens for an address that other machines reach/,
  );
});

it('without tokens, neither a peer elsewhere nor one behind a proxy is served, nor one that is not known', async () => {
  await using mulligan = await Mulligan.open('memory:');
  const server = await createServer(mulligan);
  const from = async (remoteAddress: string | undefined, headers = {}) => {
    const asked = new Request('http://localhost/api/v1/jobs', { headers });
    return (await server.fetch(asked, remoteAddress === undefined ? {} : { incoming: { socket: { remoteAddress } } }))
      .status;
  };
  expect(await from('127.0.0.1')).toBe(200);
  expect(await from('::1')).toBe(200);
  expect(await from('::ffff:127.0.0.1')).toBe(200);
  expect(await from('192.0.2.7')).toBe(403);
  expect(await from(undefined)).toBe(403);
  expect(await from('127.0.0.1', { 'x-forwarded-for': '192.0.2.7' })).toBe(403);
  await server.close();
});

it.each([
  'forwarded',
  'forwarded-for',
  'via',
  'x-forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-forwarded-server',
  'x-original-forwarded-for',
  'x-original-host',
  'x-real-ip',
  'x-client-ip',
  'client-ip',
  'true-client-ip',
  'fastly-client-ip',
  'x-cluster-client-ip',
  'x-azure-clientip',
  'x-originating-ip',
  'x-remote-ip',
  'x-remote-addr',
  'x-proxyuser-ip',
  'proxy-connection',
  'cf-connecting-ip',
  'cf-ray',
  'cdn-loop',
  'x-envoy-external-address',
  'x-amz-cf-id',
  'fly-client-ip',
  'x-vercel-id',
  'x-arr-log-id',
])('without tokens, a request with the header %s of a proxy is not served; with one, it is', async (name) => {
  const { url } = await served();
  expect((await raw(`${url}/api/v1/jobs`, { [name]: 'a' })).status).toBe(403);
  const { token, stored } = createToken('a', ALL);
  const closed = await served({ server: { tokens: [stored] } });
  expect((await raw(`${closed.url}/api/v1/jobs`, { [name]: 'a', ...bearer(token) })).status).toBe(200);
});

it('without tokens, programs are served whatever other headers they send', async () => {
  const { url } = await served();
  const headers = {
    'user-agent': 'curl/8',
    accept: '*/*',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    'x-request-id': '1',
    // Libraries for tracing send these as well as proxies do.
    'x-amzn-trace-id': 'Root=1-67891233-abcdef012345678912345678',
    'x-cloud-trace-context': '105445aa7843bc8bf206b12000100000/1',
    'accept-encoding': 'gzip',
    'x-description': 'a',
    'x-membership': 'a',
  };
  expect((await raw(`${url}/api/v1/jobs`, headers)).status).toBe(200);
});

/** What nginx sends to its upstream unless it is told otherwise: HTTP/1.0, and no header that tells of it. */
function askAsProxy(url: string, more: Record<string, string> = {}): Promise<string> {
  const { hostname, port, host } = new URL(url);
  const lines = Object.entries({ Host: host, Connection: 'close', ...more }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () =>
      socket.write(`GET /api/v1/jobs HTTP/1.0\r\n${lines.join('\r\n')}\r\n\r\n`),
    );
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    socket.on('end', () => resolve(text)).on('error', reject);
  });
}

it('without tokens, a request by HTTP/1.0 is not served, because proxies without settings send it; with one, it is', async () => {
  const { url } = await served();
  const refused = await askAsProxy(url);
  expect(refused).toMatch(/^HTTP\/1\.1 403 /);
  expect(refused).toContain('HTTP/1.0');
  const { token, stored } = createToken('a', ALL);
  const closed = await served({ server: { tokens: [stored] } });
  expect(await askAsProxy(closed.url, bearer(token))).toMatch(/^HTTP\/1\.1 200 /);
});

it('a token is shown once, and its file holds only a digest that no other user can read', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-tokens-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'tokens');
  let printed = '';
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  try {
    expect(await run(['token', 'create', 'ci', '--scopes', 'read,write', '--token-file', file, '--json'], {})).toBe(0);
  } finally {
    write.mockRestore();
  }
  const { token } = JSON.parse(printed) as { token: string };
  const kept = readFileSync(file, 'utf8');
  expect(kept).not.toContain(token);
  expect(kept).toMatch(/"sha256":"[0-9a-f]{64}"/);
  expect(statSync(file).mode & 0o077).toBe(0);
  const { call } = await served({ server: { tokenFile: file } });
  expect((await call('GET', '/api/v1/jobs', undefined, bearer(token))).status).toBe(200);
  expect((await call('GET', '/api/v1/jobs')).status).toBe(401);
});

it('a token file without a token is refused, because the server would ask for none', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-tokens-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'tokens');
  writeFileSync(file, '# none yet\n\n');
  await expect(served({ server: { tokenFile: file } })).rejects.toThrow(/expected at least one token/);
});

it('a token can do what its scopes say, and nothing else', async () => {
  const made = ALL.map((scope) => ({ scope, ...createToken(scope, [scope]) }));
  const { call } = await served({ server: { tokens: made.map(({ stored }) => stored) } });
  const calls: Record<string, (headers: Record<string, string>) => ReturnType<Served['call']>> = {
    read: (headers) => call('GET', '/api/v1/jobs', undefined, headers),
    write: (headers) => call('POST', '/api/v1/jobs', { name: 'a' }, headers),
    work: (headers) => call('POST', '/api/v1/claim', { worker: 'w', wait: 0 }, headers),
    admin: (headers) => call('POST', '/api/v1/queues/default/pause', { force: true }, headers),
  };
  for (const { scope, token } of made) {
    const statuses = await Promise.all(
      Object.entries(calls).map(async ([wanted, send]) => [wanted, (await send(bearer(token))).status]),
    );
    const allowed = statuses.filter(([, status]) => Number(status) < 300).map(([wanted]) => wanted);
    expect(allowed, scope).toEqual(scope === 'admin' ? [...ALL] : [scope]);
    expect(
      statuses.filter(([wanted]) => !allowed.includes(wanted as string)).every(([, status]) => status === 403),
    ).toBe(true);
  }
});

it('a token in the URL is refused, also a valid one', async () => {
  const { token, stored } = createToken('a', ALL);
  const { call } = await served({ server: { tokens: [stored] } });
  for (const name of ['token', 'access_token', 'api_key']) {
    const { status, body } = await call('GET', `/api/v1/jobs?${name}=${token}`, undefined, bearer(token));
    expect([status, body.detail]).toEqual([400, expect.stringMatching(/got one in the URL/)]);
    expect(JSON.stringify(body)).not.toContain(token);
  }
});

it('a request for another host is refused, so that no other name can be pointed at the server', async () => {
  const { url } = await served({ server: { hosts: ['queue.example.com'] } });
  const hosts = {
    'evil.example': 421,
    'queue.example.com': 200,
    'QUEUE.example.com:8833': 200,
    'localhost:1': 200,
  };
  for (const [host, status] of Object.entries(hosts)) {
    expect((await raw(`${url}/healthz`, { host })).status, host).toBe(status);
  }
});

it('a write of another site is refused, unless it has a token', async () => {
  const { token, stored } = createToken('a', ALL);
  const open = await served();
  const body = JSON.stringify({ name: 'a' });
  const json = { 'content-type': 'application/json' };
  const send = async (headers: Record<string, string>) =>
    (await raw(`${open.url}/api/v1/jobs`, { ...json, ...headers }, body)).status;
  expect(await send({})).toBe(201);
  expect(await send({ origin: open.url, 'sec-fetch-site': 'same-origin' })).toBe(201);
  expect(await send({ origin: 'https://evil.example' })).toBe(403);
  expect(await send({ origin: 'null' })).toBe(403);
  expect(await send({ 'sec-fetch-site': 'cross-site' })).toBe(403);
  const closed = await served({ server: { tokens: [stored] } });
  const headers = { ...json, ...bearer(token), origin: 'https://app.example' };
  expect((await raw(`${closed.url}/api/v1/jobs`, headers, body)).status).toBe(201);
});

it('a write that is not declared as JSON is refused: a form of another site can send no other', async () => {
  const { url } = await served();
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', '']) {
    const headers = type === '' ? {} : { 'content-type': type };
    const { status, text } = await raw(`${url}/api/v1/jobs`, headers, '{"name":"a"}');
    expect([status, JSON.parse(text).code]).toEqual([415, 'NOT_JSON']);
  }
});

it('no answer lets a browser run, frame, sniff or keep it', async () => {
  const { call } = await served();
  for (const path of ['/docs', '/openapi.json', '/api/v1/jobs', '/nowhere', '/api/v1/jobs/x']) {
    const { headers } = await call('GET', path);
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'/);
    expect(headers.get('content-security-policy')).not.toMatch(/unsafe|\*/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('access-control-allow-origin')).toBeNull();
  }
  const { body } = await call('GET', '/docs');
  expect(body).not.toMatch(/<script|style=|onload|javascript:/i);
});

it('a body that is larger than allowed is refused before it is read', async () => {
  const { url, call } = await served({ server: { maxBodyBytes: 4_096 } });
  const large = { name: 'a', input: 'x'.repeat(10_000) };
  expect(await call('POST', '/api/v1/jobs', large)).toMatchObject({ status: 413, body: { code: 'TOO_LARGE' } });
  // Without its length announced.
  const chunked = new ReadableStream({
    pull: (controller) => controller.enqueue(new TextEncoder().encode(' '.repeat(1_000))),
  });
  const init = { method: 'POST', body: chunked, duplex: 'half', headers: { 'content-type': 'application/json' } };
  expect((await fetch(`${url}/api/v1/jobs`, init as RequestInit)).status).toBe(413);
  expect((await call('GET', '/healthz')).status).toBe(200);
});

it('headers and addresses that are larger than allowed are refused', async () => {
  const { url, call } = await served();
  expect((await raw(`${url}/healthz`, { 'x-large': 'x'.repeat(20_000) })).status).toBe(431);
  const long = await call('GET', `/api/v1/jobs?name=${'x'.repeat(9_000)}`);
  expect([long.status, long.body.detail]).toEqual([400, 'Expected a shorter URL.']);
});

it('data that is nested too deeply is refused', async () => {
  const { url } = await served();
  const deep = `{"name":"a","input":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  const { status } = await raw(`${url}/api/v1/jobs`, { 'content-type': 'application/json' }, deep);
  expect(status).toBe(400);
});

it('fields with secret names are redacted wherever they are shown, but not for the worker', async () => {
  const { call } = await served({ server: { redact: ['iban'] } });
  const input = { user: 'ada', Password: 'hunter2', nested: [{ API_KEY: 'k3y', IBAN: 'DE00', ok: 1 }] };
  const hidden = {
    user: 'ada',
    Password: '[redacted]',
    nested: [{ API_KEY: '[redacted]', IBAN: '[redacted]', ok: 1 }],
  };
  const { body } = await call('POST', '/api/v1/jobs', { name: 'a', input });
  expect((await call('GET', `/api/v1/jobs/${body.id}`)).body.payload).toEqual(hidden);
  expect((await call('GET', '/api/v1/jobs')).body.items[0].payload).toEqual(hidden);
  const job = await claimOne(call);
  expect(job).toMatchObject({ payload: input });
  await call('POST', '/api/v1/settle', { lease: job.lease, outcome: 'ack', result: { password: 'x', fine: true } });
  const result = await call('GET', `/api/v1/jobs/${body.id}/result`);
  expect(result.body.result).toEqual({ password: '[redacted]', fine: true });
});

it('a failure in the server says nothing but a reference, which the log explains', async () => {
  const logged: unknown[] = [];
  const { call, mulligan } = await served({ queue: { log: (entry) => void logged.push(entry) } });
  vi.spyOn(mulligan.jobs, 'list').mockRejectedValue(new Error('ENOENT /var/lib/secret.db password=hunter2'));
  const { status, body } = await call('GET', '/api/v1/jobs');
  expect(status).toBe(500);
  expect(JSON.stringify(body)).not.toMatch(/ENOENT|hunter2|\.ts|node:|at /);
  expect(logged).toContainEqual(expect.objectContaining({ reference: body.reference, error: expect.any(Error) }));
});

it('an action of an operator leaves on record who did it, and from where', async () => {
  const { token, stored } = createToken('ops', ['admin']);
  const { call, mulligan } = await served({ server: { tokens: [stored] } });
  const { id } = await mulligan.enqueue('a', 1);
  await call('POST', `/api/v1/jobs/${id}/cancel`, {}, bearer(token));
  await call('POST', '/api/v1/gates/smtp/open', {}, bearer(token));
  expect(await mulligan.audit.list()).toMatchObject([
    { action: 'gate', by: 'ops from 127.0.0.1', note: 'gate smtp was pinned open' },
    { action: 'cancel', by: 'ops from 127.0.0.1', changed: 1 },
  ]);
  const { history } = await mulligan.gates.show('smtp');
  expect(history[0]).toMatchObject({ change: 'pinned', who: 'ops from 127.0.0.1' });
});

it('a remote operator cannot take the name of another', async () => {
  const { token, stored } = createToken('ops', ['admin']);
  const { url, mulligan } = await served({ server: { tokens: [stored] } });
  const { id } = await mulligan.enqueue('a', 1);
  await using remote = await Mulligan.open(url, { token, log: () => {} });
  await remote.jobs.cancel({ ids: [id], by: 'root' });
  expect((await mulligan.audit.list())[0]?.by).toBe('ops from 127.0.0.1: root');
});
