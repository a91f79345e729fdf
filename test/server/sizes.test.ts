import { expect, it } from 'vitest';
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
