import { expect, it } from 'vitest';
import { createToken } from '../../src/server/index.ts';
import { newJob } from '../../src/store/conformance/builders.ts';
import { claimOne, served } from './served.ts';

/* The bounds in bytes of what clients send. */

const sized = (bytes: number): string => JSON.stringify('x'.repeat(bytes - 2));

it('data that store verbs carry is as large as the server lets calls of its own be', async () => {
  const { call } = await served({ queue: { maxPayloadBytes: 10_000, maxResultBytes: 20_000 } });
  await call('POST', '/api/v1/jobs', { name: 'a', input: 1 });
  const fence = { id: (await claimOne(call)).id, run: 1, worker: 'w1' };
  const end = {
    outcome: 'completed',
    decision: { kind: 'complete', rule: 'r' },
    error: null,
    startedAt: 1,
    endedAt: 1,
  };
  const verbs: [string, number, (text: string) => unknown[]][] = [
    ['enqueue', 10_000, (payload) => [[{ ...newJob(), payload }]]],
    ['remember', 10_000, (text) => [fence, 'k', text]],
    ['heartbeat', 16_384, (progress) => [[{ ...fence, leaseMs: 60_000, progress }]]],
    ['settle', 20_000, (result) => [[{ ...fence, ...end, result }]]],
  ];
  for (const [verb, most, args] of verbs) {
    const refused = await call('POST', `/api/v1/store/${verb}`, args(sized(most + 1)));
    expect([verb, refused.status, refused.body.code]).toEqual([verb, 422, 'PAYLOAD']);
    expect(refused.body.detail).toContain(`expected at most ${most} bytes of JSON, got ${most + 1}.`);
    const taken = await call('POST', `/api/v1/store/${verb}`, args(sized(most)));
    expect([verb, taken.status]).toEqual([verb, 200]);
  }
});

it('a body of more than a million values is refused, in JSON and in JSON inside of it', async () => {
  const { call, url } = await served({ queue: { maxPayloadBytes: 2 ** 24 } });
  const many = `[${'{},'.repeat(1_000_001)}{}]`;
  const refused = await call('POST', '/api/v1/store/enqueue', [[{ ...newJob(), payload: many }]]);
  expect([refused.status, refused.body.issues[0].message]).toEqual([400, 'expected JSON of at most 1000000 values']);
  const headers = { 'content-type': 'application/json' };
  const plain = await fetch(`${url}/api/v1/jobs`, { method: 'POST', headers, body: `{"name":"a","input":${many}}` });
  expect(plain.status).toBe(400);
  expect(await plain.text()).toContain('Expected JSON of at most 1000000 values, got more. Send it in parts.');
});

it('more rows than any call of the library asks for are refused', async () => {
  const { call } = await served();
  expect((await call('POST', '/api/v1/store/list', [{ limit: 10_000 }])).status).toBe(200);
  expect((await call('POST', '/api/v1/store/list', [{ limit: 10_001 }])).status).toBe(400);
  expect((await call('POST', '/api/v1/store/limitKeys', ['l', { limit: 10_001 }])).status).toBe(400);
});

it('an error that a remote worker stores is cut and scrubbed as an error of this process is', async () => {
  const { call } = await served();
  const { body } = await call('POST', '/api/v1/jobs', { name: 'a', input: 1 });
  const fence = { id: (await claimOne(call)).id, run: 1, worker: 'w1' };
  const long = (text: string): string => text.repeat(99_000).slice(0, 99_000);
  const issues = Array.from({ length: 100 }, () => ({ message: long('m').slice(0, 9_000), path: 'p' }));
  const error = {
    ...{
      name: long('E').slice(0, 900),
      message: `password=hunter2 ${long('\u4e2d')}`.slice(0, 99_000),
      code: 'C',
      status: 500,
    },
    ...{ stack: long('  at x (y:1:1)\n'), fingerprint: 'f', issues },
  };
  const decision = { kind: 'dead', reason: 'exhausted', counted: true, rule: long('r').slice(0, 9_900) };
  const end = { outcome: 'failed', decision, error, startedAt: 1, endedAt: 1 };
  expect((await call('POST', '/api/v1/store/settle', [[{ ...fence, ...end }]])).status).toBe(200);
  const { lastError } = (await call('GET', `/api/v1/jobs/${body.id}`)).body;
  const bytes = (text: string): number => Buffer.byteLength(text);
  expect(
    [lastError.name, lastError.message, lastError.stack]
      .map(bytes)
      .every((size, at) => size <= ([128, 4_096, 8_192][at] as number)),
  ).toBe(true);
  expect(lastError.message).not.toContain('hunter2');
  expect([lastError.issues.length, bytes(lastError.issues[0].message), lastError.fingerprint]).toEqual([20, 512, 'f']);
  const [run] = (await call('POST', '/api/v1/store/runs', [body.id])).body;
  expect(bytes(run.decision.rule)).toBe(1_000);
});

it('a trace is no longer than the library makes one', async () => {
  const { call } = await served();
  for (const [length, status] of [
    [600, 200],
    [601, 400],
  ] as const) {
    const job = { ...newJob(), trace: 't'.repeat(length) };
    expect((await call('POST', '/api/v1/store/enqueue', [[job]])).status).toBe(status);
  }
});

it('a worker says of itself no more than 64 KiB, and a token has at most 1,000 workers', async () => {
  const { stored, token } = createToken('app', ['work']);
  const { call } = await served({ server: { tokens: [stored], chores: false } });
  const register = (id: string, jobs: readonly string[]) =>
    call('POST', '/api/v1/store/register', [id, { ...described, jobs }], { authorization: `Bearer ${token}` });
  const long = Array.from({ length: 328 }, (_, at) => `${at}`.padStart(200, 'n'));
  expect((await register('w', long)).status).toBe(400);
  expect((await register('w', long.slice(1))).status).toBe(200);
  for (let at = 1; at < 1_000; at++) expect((await register(`w${at}`, [])).status).toBe(200);
  const { status, body } = await register('one more', []);
  expect([status, body.code]).toEqual([429, 'TOO_MANY_WORKERS']);
  // One that is listed goes on, and one that stops makes room.
  expect((await register('w', [])).status).toBe(200);
  const stop = ['w', null];
  await call('POST', '/api/v1/store/register', stop, { authorization: `Bearer ${token}` });
  expect((await register('one more', [])).status).toBe(200);
});

const described = {
  ...{ name: null, version: null, mulligan: null, host: 'h', pid: 1, concurrency: 1, queues: [] },
  ...{ running: null, leaseMs: null, loopDelayMs: null, http: null },
};
