import { once } from 'node:events';
import { request } from 'node:http';
import { expect, it } from 'vitest';
import { defineJob } from '../../src/definition.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { trip } from '../../src/store/conformance/gate-builders.ts';
import { MemoryStore } from '../../src/store/memory/store.ts';
import { claimOne, served } from './served.ts';

it('the document and the page name every route once', async () => {
  const { call } = await served();
  const { body: document } = await call('GET', '/openapi.json');
  expect(document.openapi).toBe('3.1.0');
  const paths = Object.keys(document.paths);
  expect(paths).toEqual(
    expect.arrayContaining(['/api/v1/jobs/{id}', '/api/v1/settle', '/api/v1/store/claimGated', '/scale/{name}']),
  );
  const ids = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods as object).map((one) => one.operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
  const { body: page } = await call('GET', '/docs');
  for (const path of paths) expect(page).toContain(path);
});

it('a request that is not valid is a problem that names each wrong field', async () => {
  const { call } = await served();
  const { status, headers, body } = await call('POST', '/api/v1/jobs', { name: '', priority: 11, colour: 'red' });
  expect([status, headers.get('content-type')]).toEqual([400, 'application/problem+json']);
  expect(body).toMatchObject({ type: 'urn:mulligan:problem:bad-request', status: 400, code: 'BAD_REQUEST' });
  expect(body.issues.map(({ path }: { path: string }) => path)).toEqual(expect.arrayContaining(['name', 'priority']));
  expect(await call('GET', '/nowhere')).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
  const wrong = await call('DELETE', '/api/v1/jobs', {});
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST, GET']);
  expect(await call('GET', '/api/v1/jobs/unknown')).toMatchObject({ status: 404, body: { code: 'JOB_NOT_FOUND' } });
});

it('pages follow each other by their cursor, without a gap or a double', async () => {
  const { call, mulligan } = await served();
  await mulligan.enqueueMany(
    'a',
    Array.from({ length: 25 }, (_, index) => ({ input: index })),
  );
  const seen: number[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body } = await call(
      'GET',
      `/api/v1/jobs?name=a&state=ready,scheduled&limit=10${cursor && `&cursor=${cursor}`}`,
    );
    seen.push(...body.items.map(({ payload }: { payload: number }) => payload));
    cursor = body.next;
  }
  expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 25 }, (_, index) => index));
  expect((await call('GET', '/api/v1/jobs/count?name=a')).body).toEqual({ count: 25, isExact: true });
});

it('a request that is sent again with its Idempotency-Key yields the same job, also after that has ended', async () => {
  const { call } = await served();
  const key = { 'idempotency-key': 'order-1' };
  const first = await call('POST', '/api/v1/jobs', { name: 'a' }, key);
  await call('POST', '/api/v1/settle', { lease: (await claimOne(call)).lease, outcome: 'ack' });
  const second = await call('POST', '/api/v1/jobs', { name: 'a' }, key);
  expect([first.status, second.status]).toEqual([201, 200]);
  expect(second.body).toEqual({ id: first.body.id, existed: true });
  const batch = { name: 'b', jobs: [{ input: 1 }, { input: 2 }] };
  const [once1, twice] = [
    await call('POST', '/api/v1/jobs/batch', batch, key),
    await call('POST', '/api/v1/jobs/batch', batch, key),
  ];
  expect(twice.body.jobs.map(({ id }: { id: string }) => id)).toEqual(
    once1.body.jobs.map(({ id }: { id: string }) => id),
  );
  expect((await call('POST', '/api/v1/jobs', { name: 'a', key: 'x' }, key)).status).toBe(400);
});

it('dead letters are listed, redriven and discarded, by who and how many', async () => {
  const { call, mulligan } = await served();
  const die = async () => {
    const { lease } = await claimOne(call);
    await call('POST', '/api/v1/settle', {
      lease,
      outcome: 'nack',
      error: { class: 'permanent', message: 'no such user' },
    });
  };
  await mulligan.enqueueMany('a', [{ input: 1 }, { input: 2 }]);
  await die();
  await die();
  expect((await call('GET', '/api/v1/dead')).body.items).toHaveLength(2);
  const [group] = (await call('GET', '/api/v1/errors?state=dead')).body.items;
  expect(group).toMatchObject({ dead: 2, sample: { error: { message: 'no such user' } } });
  expect((await call('GET', `/api/v1/errors/${group.fingerprint.slice(0, 6)}`)).body.dead).toBe(2);
  const dry = await call('POST', '/api/v1/dead/redrive', { error: group.fingerprint, dryRun: true });
  expect(dry.body).toMatchObject({ dryRun: true, count: 2 });
  const redriven = await call('POST', '/api/v1/dead/redrive', { error: group.fingerprint, limit: 1 });
  expect(redriven.body).toMatchObject({ count: 1, operation: { by: 'local from 127.0.0.1' } });
  expect((await call('POST', '/api/v1/dead/discard', { name: 'a' })).body).toMatchObject({ count: 1 });
  const { body } = await call('GET', '/api/v1/audit');
  expect(body.items.map(({ action }: { action: string }) => action)).toEqual(['discard', 'redrive']);
});

it('queues, gates, limits and schedules are operated, and each order is on record', async () => {
  const limited = defineJob({ name: 'shop.sync', limit: { name: 'shopify', concurrency: 2 }, run: () => {} });
  const { call } = await served({ queue: { jobs: [limited] } });
  expect((await call('POST', '/api/v1/queues/emails/pause', {})).status).toBe(404);
  const paused = await call('POST', '/api/v1/queues/emails/pause', { force: true });
  expect(paused.body).toEqual({ queue: 'emails', paused: true });
  expect((await call('GET', '/api/v1/queues')).body.items).toContainEqual({ queue: 'emails', paused: true });
  await call('POST', '/api/v1/queues/emails/resume', {});
  expect((await call('POST', '/api/v1/gates/webhook%2Fexample.com/open', {})).body).toMatchObject({
    pin: 'open',
    name: 'webhook/example.com',
  });
  expect((await call('GET', '/api/v1/gates/webhook%2Fexample.com')).body.history).toHaveLength(1);
  expect((await call('GET', '/api/v1/gates')).body.items).toHaveLength(1);
  const set = await call('PUT', '/api/v1/limits/shopify', { concurrency: 5, rate: { limit: 90, per: '10s' } });
  expect(set.body.limit.settings).toMatchObject({ concurrency: 5, rate: { limit: 90, perMs: 10_000 } });
  expect((await call('GET', '/api/v1/limits/shopify?key=a')).body.keys).toHaveLength(1);
  await call('POST', '/api/v1/limits/shopify/reset', {});
  expect((await call('GET', '/api/v1/limits')).body.items[0].settings.concurrency).toBe(2);
  expect((await call('GET', '/api/v1/limits/none')).status).toBe(404);
  const schedule = { job: 'report', input: { password: 'x' }, cron: '0 3 * * *', timezone: 'Europe/Berlin' };
  expect((await call('PUT', '/api/v1/schedules/nightly', schedule)).body).toMatchObject({
    name: 'nightly',
    input: { password: '[redacted]' },
  });
  expect((await call('GET', '/api/v1/schedules')).body.items).toMatchObject([{ name: 'nightly', job: 'report' }]);
  expect((await call('GET', '/api/v1/schedules/nightly')).body.nextTimes).toHaveLength(5);
  for (const order of ['pause', 'resume', 'trigger']) {
    expect((await call('POST', `/api/v1/schedules/nightly/${order}`, {})).status).toBe(200);
  }
  expect((await call('DELETE', '/api/v1/schedules/nightly', {})).body).toEqual({ removed: true });
  expect((await call('DELETE', '/api/v1/schedules/nightly', {})).status).toBe(404);
  const { body } = await call('GET', '/api/v1/audit');
  const rows = body.items.map(({ action, by, state }: Record<string, string>) => [action, by, state]);
  const done = (action: string): string[] => [action, 'local from 127.0.0.1', 'done'];
  expect(rows).toEqual(
    ['schedule', 'schedule', 'schedule', 'schedule', 'schedule', 'limit', 'limit', 'gate', 'resume', 'pause'].map(done),
  );
});

it('statistics, workers, metrics, health and readiness are served', async () => {
  const { call, mulligan } = await served();
  await mulligan.enqueue('a', 1);
  expect((await call('GET', '/api/v1/stats')).body.states.ready).toBe(1);
  expect((await call('GET', '/api/v1/workers')).body.items).toEqual([]);
  expect((await call('GET', '/metrics')).body).toMatch(/^# HELP mulligan_/);
  expect((await call('GET', '/healthz')).body).toEqual({ status: 'ok' });
  expect((await call('GET', '/readyz')).body).toEqual({ status: 'ready' });
});

it('requests are counted by route, never by the path that a client chose', async () => {
  const { call } = await served();
  await call('GET', '/api/v1/jobs/0198c7a2-0000-7000-8000-000000000000');
  await call('GET', '/api/v1/jobs/0198c7a2-0000-7000-8000-000000000001');
  await call('GET', '/wp-login.php');
  const { body } = await call('GET', '/metrics');
  const counted = `${body}`.split('\n').filter((line) => line.startsWith('mulligan_http_requests_total{'));
  expect(counted).toEqual([
    'mulligan_http_requests_total{route="/api/v1/jobs/{id}",method="GET",status="404"} 2',
    'mulligan_http_requests_total{route="none",method="GET",status="404"} 1',
  ]);
});

it('a server whose store is gone is alive but not ready', async () => {
  const store = new MemoryStore();
  const { call } = await served({ target: store });
  await store.close();
  expect((await call('GET', '/healthz')).status).toBe(200);
  expect(await call('GET', '/readyz')).toMatchObject({ status: 503, body: { code: 'CLOSED' } });
});

it('only jobs that are due and admissible count for an autoscaler', async () => {
  const store = new MemoryStore();
  const { call, mulligan } = await served({ target: store });
  const behind = await Mulligan.open(store, { queues: { default: { resource: 'smtp' } }, log: () => {} });
  await behind.enqueueMany(
    'mail',
    Array.from({ length: 5 }, (_, index) => ({ input: index })),
  );
  await mulligan.enqueueMany(
    'a',
    Array.from({ length: 3 }, (_, index) => ({ input: index })),
  );
  await mulligan.enqueue('later', 1, { delay: '1h' });
  const scale = async () => (await call('GET', '/scale/default')).body;
  expect(await scale()).toEqual({ queue: 'default', due: 8, admissible: 8, paused: false });
  await trip(store, 'smtp');
  expect(await scale()).toEqual({ queue: 'default', due: 8, admissible: 3, paused: false });
  await mulligan.queues.pause('default');
  expect(await scale()).toEqual({ queue: 'default', due: 8, admissible: 0, paused: true });
});

type ReadUntil = (enough: (text: string) => boolean) => Promise<string>;

/** Opens a stream of events: from then on none is missed. */
async function openEvents(url: string, headers: Record<string, string> = {}): Promise<ReadUntil> {
  const asked = request(`${url}/api/v1/events`, { headers });
  asked.end();
  const [response] = await once(asked, 'response');
  return async (enough) => {
    let text = '';
    for await (const part of response) {
      text += part;
      if (enough(text)) break;
    }
    asked.destroy();
    return text;
  };
}

it('live changes are streamed, and a reader continues after the last event that it saw', async () => {
  const { url, call, mulligan } = await served();
  const live = await openEvents(url);
  const { id } = await mulligan.enqueue('a', 1);
  await call('POST', '/api/v1/settle', { lease: (await claimOne(call)).lease, outcome: 'ack' });
  const isOver = (text: string): boolean => text.includes('event: completed');
  const text = await live(isOver);
  expect([...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name)).toEqual(
    expect.arrayContaining(['enqueued', 'started', 'completed']),
  );
  expect(text).toContain(id);
  const [, first] = /^id: (.*)$/m.exec(text) ?? [];
  const again = await (await openEvents(url, { 'last-event-id': first as string }))(isOver);
  expect(again).not.toContain('event: enqueued');
  expect(again).toContain('event: started');
  const lost = await (await openEvents(url, { 'last-event-id': 'elsewhere-5' }))((more) => more.includes('\n\nid'));
  expect(lost).toContain('event: reset');
});

it('jobs behind limits count for an autoscaler as far as their keys have room', async () => {
  const limited = defineJob<string>({
    name: 'limited',
    limit: { name: 'shop', key: (shop) => shop, concurrency: 2, total: 3 },
    run: () => {},
  });
  const { call, mulligan } = await served({ queue: { jobs: [limited] } });
  await mulligan.enqueueMany(
    limited,
    [...'aaaabb'].map((input) => ({ input })),
  );
  await mulligan.enqueue('a', 1);
  expect((await call('GET', '/scale/default')).body).toMatchObject({ due: 7, admissible: 4 });
});

it('a result that is asked for without waiting is told as it is', async () => {
  const { call, mulligan } = await served();
  const { id } = await mulligan.enqueue('a', 1);
  const result = () => call('GET', `/api/v1/jobs/${id}/result`);
  expect(await result()).toMatchObject({ status: 202, body: { ended: false } });
  await call('POST', '/api/v1/settle', { lease: (await claimOne(call)).lease, outcome: 'ack', result: 42 });
  expect(await result()).toMatchObject({ status: 200, body: { result: 42 } });
  expect((await call('GET', '/api/v1/jobs/01a1e66b-ca0d-7002-8a73-4eec0f72415c/result')).status).toBe(404);
});

it('a drain runs what is due and answers; without handlers there is nothing to drain', async () => {
  const ran: number[] = [];
  const work = defineJob<number>({
    name: 'work',
    retry: { maxAttempts: 1 },
    run(n) {
      ran.push(n);
      if (n === 2) throw new Error('no');
    },
  });
  const { call, mulligan } = await served({ queue: { jobs: [work] } });
  await mulligan.enqueueMany(
    work,
    Array.from({ length: 6 }, (_, index) => ({ input: index })),
  );
  const first = await call('POST', '/drain', { maxJobs: 4, maxMs: '20s' });
  expect(first.body).toEqual({ completed: 3, retrying: 0, dead: 1, others: 0, isDone: false });
  expect(ran).toHaveLength(4);
  expect((await call('POST', '/drain', {})).body).toEqual({
    completed: 2,
    retrying: 0,
    dead: 0,
    others: 0,
    isDone: true,
  });
  const bare = await served();
  expect(await bare.call('POST', '/drain', {})).toMatchObject({ status: 409, body: { code: 'NO_DEFINITIONS' } });
});
