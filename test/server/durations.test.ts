import { expect, it } from 'vitest';
import { served } from './served.ts';

const EXPECTED = "Expected a duration such as '500ms', '30s', '5m', '2h', '3d' or '1w', or a number of milliseconds.";

it.each<[string, string, object | undefined]>([
  ['a body', '/api/v1/jobs', { name: 'a', input: null, delay: 'soon' }],
  ['a nested field', '/api/v1/jobs', { name: 'a', input: null, retry: { backoff: { kind: 'fixed', base: '1 s' } } }],
  ['a query', '/api/v1/jobs/some-id/result?wait=soon', undefined],
])('a duration in %s that makes no sense is answered in the words of the library', async (_, path, body) => {
  const { call } = await served();
  const { status, body: problem } = await call(body === undefined ? 'GET' : 'POST', path, body);
  expect(status).toBe(400);
  expect(problem.issues.map(({ message }: { message: string }) => message)).toEqual([EXPECTED]);
});

it('a week is a duration, and a selection is told how long ago as on the command line', async () => {
  const { call } = await served();
  const enqueued = await call('POST', '/api/v1/jobs', { name: 'a', input: null, delay: '1w' });
  expect(enqueued.status).toBe(201);
  for (const since of ['10m', '10m ago', '1w ago']) {
    const { status, body } = await call('GET', `/api/v1/jobs?since=${encodeURIComponent(since)}`);
    expect([status, body.items.length]).toEqual([200, 1]);
  }
});
