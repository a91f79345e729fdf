import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { defineJob } from '../../src/definition.ts';
import { createServer } from '../../src/server/index.ts';
import { newJobs } from '../../src/store/conformance/builders.ts';
import { trip } from '../../src/store/conformance/gate-builders.ts';
import { MemoryStore } from '../../src/store/memory/store.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { claimOne, served } from './served.ts';

it('a job that is enqueued over HTTP is claimed, acknowledged, and its result is read', async () => {
  const { call } = await served();
  const enqueued = await call('POST', '/api/v1/jobs', { name: 'email.send', input: { to: 'a@example.com' } });
  expect(enqueued).toMatchObject({ status: 201, body: { existed: false } });
  const { body } = await call('POST', '/api/v1/claim', { worker: 'w1', wait: 0 });
  expect(body.jobs).toMatchObject([
    { id: enqueued.body.id, name: 'email.send', run: 1, attempt: 1, maxAttempts: 4, payload: { to: 'a@example.com' } },
  ]);
  const { lease } = body.jobs[0];
  const settled = await call('POST', '/api/v1/settle', { lease, outcome: 'ack', result: { sent: true } });
  expect(settled).toMatchObject({ status: 200, body: { decision: 'complete' } });
  const result = await call('GET', `/api/v1/jobs/${enqueued.body.id}/result`);
  expect(result).toMatchObject({ status: 200, body: { result: { sent: true } } });
  const job = await call('GET', `/api/v1/jobs/${enqueued.body.id}`);
  expect(job.body).toMatchObject({ state: 'completed', worker: null });
  const ledger = await call('GET', `/api/v1/jobs/${enqueued.body.id}/runs`);
  expect(ledger.body.runs).toMatchObject([
    { run: 1, worker: 'w1', outcome: 'completed', decision: { kind: 'complete' } },
  ]);
});

it('what follows a failure is decided by the policy of the job and by the default rules', async () => {
  const { call } = await served();
  const retry = { maxAttempts: 2, backoff: { kind: 'fixed', base: 0 }, jitter: 'none' };
  const enqueued = await call('POST', '/api/v1/jobs', { name: 'a', input: 1, retry });
  const nack = async (error: object) =>
    (await call('POST', '/api/v1/settle', { lease: (await claimOne(call)).lease, outcome: 'nack', error })).body;
  expect(await nack({ name: 'Error', message: 'hung up' })).toMatchObject({ decision: 'retry', rule: 'default' });
  expect(await nack({ message: 'again' })).toMatchObject({ decision: 'dead', rule: 'attempts 2 of 2' });
  const { body } = await call('GET', `/api/v1/jobs/${enqueued.body.id}`);
  expect(body).toMatchObject({ state: 'dead', deadReason: 'exhausted', lastError: { message: 'again' } });
  await call('POST', '/api/v1/jobs', { name: 'a', input: 2 });
  expect(await nack({ status: 404 })).toMatchObject({ decision: 'dead', rule: 'http:404' });
  await call('POST', '/api/v1/jobs', { name: 'a', input: 3 });
  expect(await nack({ class: 'permanent' })).toMatchObject({ decision: 'dead', rule: 'reported:permanent' });
});

it('a Retry-After that the worker was told bounds the wait from below', async () => {
  const { call } = await served();
  await call('POST', '/api/v1/jobs', { name: 'a', input: 1, retry: { jitter: 'none' } });
  const { lease } = await claimOne(call);
  const error = { status: 429, retryAfter: 90 };
  const { body } = await call('POST', '/api/v1/settle', { lease, outcome: 'nack', error });
  expect(body).toMatchObject({ decision: expect.stringMatching(/retry|defer/), delayMs: 90_000 });
});

it('snoozed and released runs do not count', async () => {
  const { call, mulligan } = await served();
  const { id } = await mulligan.enqueue('a', 1);
  const first = await claimOne(call);
  expect((await call('POST', '/api/v1/settle', { lease: first.lease, outcome: 'release' })).body.decision).toBe(
    'release',
  );
  const second = await claimOne(call);
  const snooze = { lease: second.lease, outcome: 'snooze', delay: '1h' };
  expect((await call('POST', '/api/v1/settle', snooze)).body).toMatchObject({ decision: 'snooze', delayMs: 3_600_000 });
  expect(await mulligan.jobs.get(id)).toMatchObject({ runs: 2, attempts: 0, state: 'scheduled' });
});

it('a settlement that is sent again is answered as the first was, and a stale one is refused', async () => {
  const { call, mulligan } = await served();
  const { id } = await mulligan.enqueue('a', 1);
  const { lease } = await claimOne(call);
  const ack = { lease, outcome: 'ack' };
  expect((await call('POST', '/api/v1/settle', ack)).status).toBe(200);
  expect((await call('POST', '/api/v1/settle', ack)).status).toBe(200);
  expect(await mulligan.jobs.runs(id)).toHaveLength(1);
  const other = await claimOne(call, {}).catch(() => null);
  expect(other).toBeNull();
  await mulligan.enqueue('a', 2);
  const late = await claimOne(call);
  await call('POST', '/api/v1/settle', { lease: late.lease, outcome: 'release' });
  await claimOne(call, { worker: 'w2' });
  const refused = await call('POST', '/api/v1/heartbeat', { lease: late.lease });
  expect(refused).toMatchObject({ status: 409, body: { code: 'LEASE_LOST' } });
});

it('a claim waits until there is work, and one of many waiting workers gets it', async () => {
  const { call, mulligan } = await served();
  const waiting = Array.from({ length: 20 }, (_, index) =>
    call('POST', '/api/v1/claim', { worker: `w${index}`, wait: '1s' }),
  );
  await mulligan.enqueue('a', 1);
  const got = await Promise.race(waiting);
  expect(got.body.jobs).toMatchObject([{ name: 'a' }]);
  expect((await Promise.all(waiting)).flatMap(({ body }) => body.jobs)).toHaveLength(1);
});

it('heartbeats extend the lease, keep progress, and tell of a cancel', async () => {
  const { call, mulligan } = await served();
  const { id } = await mulligan.enqueue('a', 1);
  const { lease } = await claimOne(call);
  const beat = await call('POST', '/api/v1/heartbeat', { lease, progress: { done: 3 }, extend: '1h' });
  expect(beat.body).toMatchObject({ cancelRequested: false, leaseEndsAt: expect.any(Number) });
  expect((await mulligan.jobs.get(id))?.progress).toEqual({ done: 3 });
  await call('POST', `/api/v1/jobs/${id}/cancel`, {});
  expect((await call('POST', '/api/v1/heartbeat', { lease })).body.cancelRequested).toBe(true);
  const nack = { lease, outcome: 'nack', error: { message: 'stopped' } };
  expect((await call('POST', '/api/v1/settle', nack)).body.decision).toBe('cancel');
  expect((await mulligan.jobs.get(id))?.state).toBe('cancelled');
});

it('a job that the worker does not know is handed back to those that do', async () => {
  const { call, mulligan } = await served();
  await mulligan.enqueue('b', 1);
  const a = await call('POST', '/api/v1/claim', { worker: 'w1', names: ['a'], wait: 0 });
  expect(a.body.jobs).toEqual([]);
  const b = await call('POST', '/api/v1/claim', { worker: 'w2', names: ['b'], wait: 0 });
  expect(b.body.jobs).toMatchObject([{ name: 'b', run: 2, attempt: 1 }]);
});

it('failures by the environment open the gate of a resource, and what fails then costs no attempt', async () => {
  const { call, mulligan } = await served({ queue: { queues: { default: { resource: 'smtp' } } } });
  await mulligan.enqueueMany(
    'mail',
    Array.from({ length: 14 }, (_, index) => ({ input: index })),
  );
  const decisions: string[] = [];
  const leases: string[] = [];
  for (const worker of ['w1', 'w2']) {
    const { body } = await call('POST', '/api/v1/claim', { worker, limit: 7, wait: 0 });
    leases.push(...body.jobs.map((job: { lease: string }) => job.lease));
  }
  for (const lease of [...leases.filter((_, at) => at % 2 === 0), ...leases.filter((_, at) => at % 2 === 1)]) {
    const { body } = await call('POST', '/api/v1/settle', { lease, outcome: 'nack', error: { status: 503 } });
    decisions.push(body.decision);
  }
  expect(await mulligan.gates.list()).toMatchObject([{ name: 'smtp', phase: 'open' }]);
  expect(decisions.slice(0, 5)).toEqual(decisions.slice(0, 5).map(() => 'retry'));
  expect(decisions.at(-1)).toBe('defer');
});

it('a worker gets the probe of a gate at once, also where jobs that it does not know are due first', async () => {
  const store = new MemoryStore();
  const { call } = await served({ target: store });
  await store.enqueue(newJobs(12, { resource: 'webhook/a', name: 'unknown' }));
  const known = newJobs(1, { resource: 'webhook/a', name: 'known' });
  await store.enqueue(known);
  const { state } = await trip(store, 'webhook/a');
  const { body } = await call('POST', '/api/v1/claim', { worker: 'w1', names: ['known'], wait: '30s' });
  const probing = (await store.gates({ kind: 'resource', limit: 1 }))[0]?.state.probes;
  // The 12 that had to go aside first were no probes, and made no wait longer.
  expect(probing).toMatchObject({ at: state.probes.at, intervalMs: state.probes.intervalMs });
  expect(body.jobs).toMatchObject([{ id: known[0]?.id, run: 1 }]);
  const settled = await call('POST', '/api/v1/settle', { lease: body.jobs[0].lease, outcome: 'ack' });
  expect(settled.body).toMatchObject({ decision: 'complete' });
  expect(await store.gates({ kind: 'resource', limit: 1 })).toMatchObject([{ state: { probes: { alive: 1 } } }]);
});

it('jobs behind a limit are claimed as far as it lets them', async () => {
  const sync = defineJob<number>({ name: 'sync', limit: { name: 'shop', concurrency: 2 }, run: () => {} });
  const { call, mulligan } = await served({ queue: { jobs: [sync] } });
  await mulligan.enqueueMany(
    sync,
    Array.from({ length: 5 }, (_, index) => ({ input: index })),
  );
  const claim = async () => (await call('POST', '/api/v1/claim', { worker: 'w1', limit: 10, wait: 0 })).body.jobs;
  const first = await claim();
  expect(first).toHaveLength(2);
  expect(await claim()).toEqual([]);
  await call('POST', '/api/v1/settle', { lease: first[0].lease, outcome: 'ack' });
  expect(await claim()).toHaveLength(1);
});

it('a job whose worker went silent is rescued by the server, and counts as crashed', async () => {
  const { call, mulligan } = await served();
  const { id } = await mulligan.enqueue('a', 1, { retry: { backoff: { kind: 'fixed', base: 0 }, jitter: 'none' } });
  await claimOne(call, { lease: '1s' });
  const { body } = await call('POST', '/api/v1/claim', { worker: 'w2', wait: '20s' });
  expect(body.jobs).toMatchObject([{ id, run: 2, attempt: 2 }]);
  expect(await mulligan.jobs.runs(id)).toMatchObject([{ outcome: 'crashed', worker: 'w1' }]);
});

it('a store of your own is served without a queue around it', async () => {
  const store = new MemoryStore();
  const server = await createServer(store);
  const from = { incoming: { socket: { remoteAddress: '127.0.0.1' } } };
  expect((await server.fetch(new Request('http://localhost/readyz'), from)).status).toBe(200);
  await server.close();
  await store.close();
});

it('what a remote run logged is kept with its outcome, within bounds and without credentials', async () => {
  const { call, mulligan } = await served();
  const { id } = await mulligan.enqueue('a', 1);
  const lines = Array.from({ length: 60 }, (_, n) => ({ level: 'info', message: `line ${n}` }));
  const log = [...lines, { level: 'warn', at: 1_800_000_000_000, message: 'token=hunter2', fields: { order: 7 } }];
  const error = { message: 'hung up' };
  await call('POST', '/api/v1/settle', { lease: (await claimOne(call)).lease, outcome: 'nack', error, log });
  const { body } = await call('GET', `/api/v1/jobs/${id}/logs`);
  expect(body.logs).toHaveLength(1);
  expect(body.logs[0]).toMatchObject({ run: 1, dropped: 11 });
  expect(body.logs[0].lines).toHaveLength(50);
  expect(body.logs[0].lines.at(-1)).toEqual({
    level: 'warn',
    at: 1_800_000_000_000,
    message: 'token=***',
    fields: { order: 7 },
  });
});

it('a log that is none is refused, and the run is not settled', async () => {
  const { call, mulligan } = await served();
  const { id } = await mulligan.enqueue('a', 1);
  const { lease } = await claimOne(call);
  for (const log of ['text', [{ level: 'loud', message: 'a' }], [{ level: 'info' }], [{ level: 'info', message: 1 }]]) {
    expect((await call('POST', '/api/v1/settle', { lease, outcome: 'ack', log })).status).toBe(400);
  }
  const settled = { id, run: 1, worker: 'w1', outcome: 'completed', decision: { kind: 'complete', rule: 'completed' } };
  for (const log of ['text', '{}', '{"lines":[{}],"dropped":0}', '{"lines":[],"dropped":-1}']) {
    const sent = [[{ ...settled, error: null, startedAt: 1, endedAt: 2, log }]];
    expect((await call('POST', '/api/v1/store/settle', sent)).status).toBe(400);
  }
  expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'running' });
});

it('a worker that speaks HTTP is listed from its claims until it says that it has stopped', async () => {
  const registered = Promise.withResolvers<void>();
  class WatchedStore extends MemoryStore {
    override async register(...args: Parameters<MemoryStore['register']>) {
      await super.register(...args);
      registered.resolve();
    }
  }
  const { call, mulligan } = await served({ target: new WatchedStore() });
  const { id } = await mulligan.enqueue('email.send', 1);
  const claim = { worker: 'py-1', names: ['email.send'], version: '2.0', wait: 0 };
  const { body } = await call('POST', '/api/v1/claim', claim, { 'user-agent': 'python-requests/2.32' });
  expect(body.jobs).toMatchObject([{ id }]);
  await registered.promise;
  const { body: list } = await call('GET', '/api/v1/workers');
  expect(list.items).toMatchObject([
    {
      ...{ id: 'py-1', version: '2.0', host: '127.0.0.1', queues: ['default'], jobs: ['email.send'], state: 'alive' },
      http: { agent: 'python-requests/2.32', takesAll: false },
    },
  ]);
  expect(await call('DELETE', '/api/v1/workers/py-1')).toMatchObject({ status: 200, body: { stopped: true } });
  expect((await call('GET', '/api/v1/workers')).body.items).toEqual([]);
  expect(await call('DELETE', '/api/v1/workers/py-1')).toMatchObject({ status: 404 });
});

it.each([
  ['heartbeat', {}],
  ['settle', { outcome: 'ack' }],
])('a worker is seen with each %s', async (verb, body) => {
  const clock = new VirtualClock();
  const { call, mulligan } = await served({ target: new MemoryStore({ clock }), queue: { clock } });
  const state = async () => (await mulligan.workers.list()).map((one) => one.state);
  await mulligan.enqueue('a', 1);
  const { lease } = await claimOne(call);
  await clock.advance(0);
  await clock.advance(20_000);
  const sent = call('POST', `/api/v1/${verb}`, { lease, ...body });
  let isAnswered = false;
  void sent.finally(() => {
    isAnswered = true;
  });
  // Settlements are written in the next turn of the clock.
  while (!isAnswered) {
    await clock.advance(0);
    await setImmediate();
  }
  expect((await sent).status).toBe(200);
  await clock.advance(25_000);
  expect(await state()).toEqual(['alive']);
  await clock.advance(25_000);
  expect(await state()).toEqual(['silent']);
});
