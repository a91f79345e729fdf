import { expect, it } from 'vitest';
import { defineJob } from '../../src/definition.ts';
import { createToken } from '../../src/server/index.ts';
import { served } from './served.ts';

/* Routes that the dashboard needed; programs may use them as well. */

it('a caller learns who it is and what it may do', async () => {
  const { token, stored } = createToken('reader', ['read']);
  const { call } = await served({ server: { tokens: [stored] } });
  expect((await call('GET', '/api/v1/session')).status).toBe(401);
  const { body } = await call('GET', '/api/v1/session', undefined, { authorization: `Bearer ${token}` });
  expect(body).toMatchObject({ name: 'reader', scopes: ['read'], isLocal: false, store: 'memory' });
});

it('a reader does not see what is redacted, an admin does, and that is on record', async () => {
  const [reader, admin] = [createToken('reader', ['read']), createToken('ops', ['admin'])];
  const { call, mulligan } = await served({ server: { tokens: [reader.stored, admin.stored] } });
  const { id } = await mulligan.enqueue('card.charge', { customer: 7, cardNumber: '4242' });
  const as = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` });
  const refused = await call('POST', `/api/v1/jobs/${id}/reveal`, {}, as(reader.token));
  expect(refused.status).toBe(403);
  expect(await mulligan.audit.list()).toEqual([]);
  const { body } = await call('POST', `/api/v1/jobs/${id}/reveal`, {}, as(admin.token));
  expect(body.payload).toEqual({ customer: 7, cardNumber: '4242' });
  const [operation] = await mulligan.audit.list();
  expect(operation).toMatchObject({ action: 'reveal', state: 'done', selection: { ids: [id] } });
  expect(operation?.by).toMatch(/^ops from /);
});

it('fields of logs that the server was told are redacted over every route, until an admin reveals them; credentials are not kept', async () => {
  const [reader, admin] = [createToken('reader', ['read']), createToken('ops', ['admin'])];
  const job = defineJob<null>({
    name: 'card.charge',
    run: async (_, { log }) => log.info('charging', { customer: 7, card: { iban: 'DE00', cardNumber: '4242' } }),
  });
  const { call, mulligan } = await served({
    queue: { jobs: [job] },
    server: { tokens: [reader.stored, admin.stored], redact: ['iban'] },
  });
  const { id } = await mulligan.enqueue(job, null);
  await mulligan.drain();
  const as = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` });
  const hidden = { customer: 7, card: { iban: '[redacted]', cardNumber: '[redacted]' } };
  const read = await call('GET', `/api/v1/jobs/${id}/logs`, undefined, as(reader.token));
  expect(read.body.logs).toMatchObject([{ run: 1, lines: [{ message: 'charging', fields: hidden }] }]);
  const remote = await call('POST', '/api/v1/store/logs', [id, 10], as(reader.token));
  expect(remote.body).toMatchObject([{ run: 1, lines: [{ fields: hidden }] }]);
  const { body } = await call('POST', `/api/v1/jobs/${id}/reveal`, {}, as(admin.token));
  expect(body.logs).toMatchObject([
    { lines: [{ fields: { customer: 7, card: { iban: 'DE00', cardNumber: '***' } } }] },
  ]);
  const unknown = await call(
    'GET',
    '/api/v1/jobs/0198c0de-0000-7000-8000-000000000000/logs',
    undefined,
    as(reader.token),
  );
  expect(unknown.status).toBe(404);
});

it('a search in payloads finds what is shown, not what is redacted, and can be continued', async () => {
  const { call, mulligan } = await served();
  const inputs = Array.from({ length: 600 }, (_, n) => ({
    input: { n, city: n % 300 === 0 ? 'Lisbon' : 'Oslo', secret: 'xyzzy' },
  }));
  await mulligan.enqueueMany('trip', inputs);
  const first = await call('GET', '/api/v1/jobs?payload=lisbon&limit=1');
  expect(first.body.items).toHaveLength(1);
  const rest = await call('GET', `/api/v1/jobs?payload=lisbon&limit=10&cursor=${first.body.next}`);
  expect(rest.body).toMatchObject({ items: [{ payload: { city: 'Lisbon' } }], next: null });
  expect((await call('GET', '/api/v1/jobs?payload=xyzzy')).body).toMatchObject({ items: [], lookedAt: 600 });
});

it('a count stops where it is told to', async () => {
  const { call, mulligan } = await served();
  await mulligan.enqueueMany(
    'a',
    Array.from({ length: 12 }, () => ({ input: null })),
  );
  expect((await call('GET', '/api/v1/jobs/count?limit=5')).body.count).toBe(5);
  expect((await call('GET', '/api/v1/jobs/count')).body.count).toBe(12);
});

it('a job that waits says why, and a job that is unknown is not found', async () => {
  const { call, mulligan } = await served();
  const { id } = await mulligan.enqueue('a', null, { delay: '1h', queue: 'slow' });
  await mulligan.queues.pause('slow');
  const { body } = await call('GET', `/api/v1/jobs/${id}/waits`);
  expect(body.reasons.map(({ kind }: { kind: string }) => kind)).toEqual(['due', 'paused', 'unserved']);
  expect(body.reasons[0].until).toBe((await mulligan.jobs.get(id))?.dueAt);
  expect((await call('GET', '/api/v1/jobs/01a1e65b-b49a-7000-9afb-1eef7f4a8ca5/waits')).status).toBe(404);
});

it('a bulk action in the background answers at once, is stopped by its canaries, and goes on when resumed', async () => {
  let isMended = false;
  const job = defineJob<{ n: number }>({
    name: 'order.ship',
    retry: { maxAttempts: 1 },
    async run({ n }) {
      if (!isMended) throw new Error(`order ${n} has no address`);
    },
  });
  const { call, mulligan } = await served({ queue: { jobs: [job] } });
  await mulligan.enqueueMany(
    job,
    Array.from({ length: 20 }, (_, n) => ({ input: { n } })),
  );
  mulligan.work({ poll: '20ms' });
  await expect.poll(async () => (await mulligan.stats()).states.dead).toBe(20);
  const begun = await call('POST', '/api/v1/dead/redrive', { name: 'order.ship', canary: 2, background: true });
  expect(begun.status).toBe(202);
  expect(begun.body.operation).toMatchObject({ action: 'redrive', state: 'running' });
  const { id } = begun.body.operation;
  const operation = async (): Promise<unknown> => (await mulligan.audit.list()).find((one) => one.id === id);
  await expect.poll(operation, { timeout: 10_000 }).toMatchObject({ state: 'stopped', changed: 2 });
  isMended = true;
  const resumed = await call('POST', `/api/v1/audit/${id}/resume`, {});
  expect([resumed.status, resumed.body.id === id]).toEqual([202, false]);
  await expect.poll(async () => (await mulligan.stats()).states.completed, { timeout: 10_000 }).toBe(20);
  const wrong = await call('POST', '/api/v1/dead/redrive', { error: 'nothing-like-it', background: true });
  expect(wrong.status).toBe(400);
});

it('an order that another one of the same jobs stands in the way of is answered with 409, and names that one', async () => {
  const job = defineJob<null>({
    name: 'order.ship',
    retry: { maxAttempts: 1 },
    async run() {
      throw new Error('no address');
    },
  });
  const { call, mulligan } = await served({ queue: { jobs: [job] } });
  await mulligan.enqueueMany(job, [{ input: null }, { input: null }]);
  const worker = mulligan.work({ poll: '20ms' });
  await expect.poll(async () => (await mulligan.stats()).states.dead).toBe(2);
  await worker.stop();
  const stop = new AbortController();
  const onProgress = (): void => stop.abort();
  const first = mulligan.dead.redrive({ name: 'order.ship', canary: 1, signal: stop.signal, onProgress });
  await expect(first).rejects.toMatchObject({ name: 'AbortError' });
  const id = (await mulligan.audit.list())[0]?.id as string;
  const { status, body } = await call('POST', '/api/v1/dead/redrive', { name: 'order.ship', keepAttempts: true });
  expect(status).toBe(409);
  expect(body).toMatchObject({ code: 'CONFLICT', title: 'Another order is under way' });
  expect(body.detail).toContain(id);
});

it('an order that is carried out is told to those who follow live changes', async () => {
  const { url, call, mulligan } = await served();
  await mulligan.enqueue('a', null);
  const ended = new AbortController();
  const response = await fetch(`${url}/api/v1/events`, { signal: ended.signal });
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  await reader.read();
  await call('POST', '/api/v1/queues/default/pause', {});
  let text = '';
  while (!text.includes('event: operation')) text += (await reader.read()).value;
  expect(text).toContain('"name":"pauseQueue"');
  ended.abort();
});
