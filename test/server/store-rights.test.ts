import { describe, expect, it } from 'vitest';
import { createToken, type Scope } from '../../src/server/index.ts';
import { decode, encode } from '../../src/store/http/wire.ts';
import type { NewJob, Schedule } from '../../src/store/store.ts';
import { type Served, served } from './served.ts';
import { emptyStore, storeKinds } from './stores.ts';

/* What a token may not do with verbs that its scope includes: those of operators and of other programs. */

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  readonly body: any;
}

interface Opened extends Served {
  /** Calls a verb of the store as a program with such a token would; `app` tells two of one scope apart. */
  as(scope: Scope, app?: string): (verb: string, ...args: unknown[]) => Promise<Answer>;
}

async function open(kind: (typeof storeKinds)[number]): Promise<Opened> {
  const tokens = (['read', 'write', 'work', 'admin'] as const).flatMap((scope) =>
    ['', '2'].map((app) => ({ scope, app, ...createToken(`${scope}${app}`, [scope]) })),
  );
  const opened = await served({
    target: await emptyStore(kind),
    server: { tokens: tokens.map(({ stored }) => stored), chores: false },
  });
  const as: Opened['as'] = (scope, app = '') => {
    const token = tokens.find((one) => one.scope === scope && one.app === app)?.token;
    return async (verb, ...args) => {
      const response = await fetch(`${opened.url}/api/v1/store/${verb}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: encode(args),
      });
      return { status: response.status, body: decode(await response.text()) };
    };
  };
  return { ...opened, as };
}

async function scheduleOf({ as }: Opened, name: string): Promise<Schedule> {
  return (await as('admin')('schedules', { names: [name], limit: 1 })).body.schedules[0];
}

let made = 0;
function newJob({ job }: Pick<Schedule, 'job'>, changes: Partial<NewJob> = {}): NewJob {
  const id = `01990000-0000-7000-8000-${String(++made).padStart(12, '0')}`;
  return { ...job, id, delayMs: 0, dueAt: null, ...changes };
}

describe.each(storeKinds)('behind a server with tokens, on %s', (kind) => {
  it('a worker neither overwrites, pauses nor removes the schedule of an operator', async () => {
    const opened = await open(kind);
    await opened.mulligan.schedules.set('nightly', 'report', {}, { every: '1h' });
    const before = await scheduleOf(opened, 'nightly');
    const evil = { ...before, version: 'v2', code: 'mine' };
    const writes: (Schedule | null)[] = [
      { ...evil, job: { ...before.job, name: 'evil' } },
      { ...evil, paused: true, nextAt: null },
      { ...before, version: 'v2', paused: true, nextAt: null },
      { ...before, version: 'v2', nextAt: (before.nextAt as number) + 1e9 },
      { ...before, timing: { kind: 'every', everyMs: 1, anchor: 0 } },
      null,
    ];
    for (const to of writes) {
      const write = { name: 'nightly', from: before.version, to, jobs: [] };
      expect((await opened.as('work')('writeSchedule', write)).status).toBe(403);
    }
    expect(await scheduleOf(opened, 'nightly')).toEqual(before);
  });

  it('a write over another version than the caller has read changes nothing, whatever it says', async () => {
    const opened = await open(kind);
    await opened.mulligan.schedules.set('nightly', 'report', {}, { every: '1h' });
    const before = await scheduleOf(opened, 'nightly');
    const to = { ...before, version: 'v2', paused: true };
    const { body } = await opened.as('work')('writeSchedule', { name: 'nightly', from: 'v1', to, jobs: [] });
    expect(body).toEqual({ written: false, jobs: [] });
    expect(await scheduleOf(opened, 'nightly')).toEqual(before);
  });

  it('a worker changes the schedule of its code, and what an operator paused stays paused', async () => {
    const opened = await open(kind);
    await opened.mulligan.schedules.set('coded', 'report', {}, { every: '1h' });
    const stored = await scheduleOf(opened, 'coded');
    const coded = { ...stored, version: 'v2', code: 'one' };
    await opened.as('admin')('writeSchedule', { name: 'coded', from: stored.version, to: coded, jobs: [] });
    await opened.mulligan.schedules.pause('coded');
    const paused = await scheduleOf(opened, 'coded');
    const write = (to: Schedule) =>
      opened.as('work')('writeSchedule', { name: 'coded', from: paused.version, to, jobs: [] });
    const changed = { ...paused, version: 'v9', code: 'two', misfireLimit: 3 };
    expect((await write({ ...changed, paused: false, nextAt: stored.nextAt })).status).toBe(403);
    expect((await write({ ...changed, lastAt: 1 })).status).toBe(403);
    expect((await write(changed)).body).toEqual({ written: true, jobs: [] });
    expect(await scheduleOf(opened, 'coded')).toMatchObject({ paused: true, code: 'two', misfireLimit: 3 });
  });

  it('a tick stores the jobs of the schedule and no others', async () => {
    const opened = await open(kind);
    await opened.mulligan.schedules.set('often', 'report', {}, { every: '1s' });
    const before = await scheduleOf(opened, 'often');
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, (before.nextAt as number) - Date.now()) + 50));
    const jobs: NewJob[] = [
      newJob(before, { name: 'charge.card', dueAt: before.nextAt }),
      newJob(before, { queue: 'payments', dueAt: before.nextAt }),
      newJob(before, { payload: '{"to":"me"}', dueAt: before.nextAt }),
      newJob(before, { dueAt: before.nextAt }),
    ];
    for (const job of jobs) {
      const to = { ...before, version: 'v2', nextAt: (before.nextAt as number) + 1_000, lastAt: before.nextAt };
      const { status } = await opened.as('work')('writeSchedule', {
        name: 'often',
        from: before.version,
        to,
        jobs: [job],
      });
      expect(status).toBe(403);
    }
    expect((await opened.mulligan.jobs.count({})).count).toBe(0);
  });

  it('a producer creates limits, and neither changes nor removes them nor stops what they bound', async () => {
    const opened = await open(kind);
    const { as } = opened;
    const code = (settings: object | null, key: string | null = null) => [
      { limit: 'shop', key, source: 'code', settings },
    ];
    expect((await as('write')('writeLimits', code({ concurrency: 0, total: 0, rate: null }))).status).toBe(403);
    expect((await as('write')('writeLimits', code({ concurrency: 5, total: null, rate: null }))).status).toBe(200);
    await as('write')('writeLimits', code({ concurrency: 1, total: 1, rate: null }));
    await as('write')('writeLimits', code({ concurrency: 1 }, 'big'));
    expect((await as('write')('writeLimits', code(null))).status).toBe(403);
    const [limit] = (await as('read')('limits', { limit: 10 })).body;
    expect(limit).toMatchObject({ name: 'shop', code: { concurrency: 5, total: null }, set: null });
    expect((await as('read')('limitKeys', 'shop', { limit: 10 })).body).toEqual([]);
  });

  it('a producer does not overwrite what an operator set before any code did', async () => {
    const { as } = await open(kind);
    const settings = { concurrency: 2 };
    await as('admin')('writeLimits', [{ limit: 'shop', key: null, source: 'set', settings }]);
    await as('write')('writeLimits', [
      { limit: 'shop', key: null, source: 'code', settings: { concurrency: 9, total: 1, rate: null } },
    ]);
    const [limit] = (await as('read')('limits', { limit: 10 })).body;
    expect(limit).toMatchObject({ code: null, set: settings });
  });

  it('a producer gives a key a concurrency where the definition computes it, once', async () => {
    const { as } = await open(kind);
    await as('write')('writeLimits', [
      { limit: 'shop', key: null, source: 'code', settings: { total: null, rate: null } },
      { limit: 'shop', key: 'big', source: 'code', settings: { concurrency: 3 } },
    ]);
    await as('write')('writeLimits', [{ limit: 'shop', key: 'big', source: 'code', settings: { concurrency: 1 } }]);
    const [key] = (await as('read')('limitKeys', 'shop', { limit: 10 })).body;
    expect(key).toMatchObject({ key: 'big', code: { concurrency: 3 } });
  });

  it('a producer cancels no job of others by onLimit, and lists no names or keys', async () => {
    const opened = await open(kind);
    const { as, mulligan } = opened;
    await as('work')('writeLimits', [
      { limit: 'shop', key: null, source: 'code', settings: { concurrency: 1, total: null, rate: null } },
    ]);
    await mulligan.schedules.set('template', 'report', {}, { every: '1h' });
    const template = await scheduleOf(opened, 'template');
    const limits = [{ limit: 'shop', key: 'a' }];
    const victim = newJob(template, { limits });
    expect((await as('write')('enqueue', [victim])).status).toBe(200);
    const evil = newJob(template, { limits, onLimit: [{ limit: 'shop', key: 'a', action: 'cancel-oldest' }] });
    expect((await as('write')('enqueue', [evil])).status).toBe(403);
    const polite = newJob(template, { limits, onLimit: [{ limit: 'shop', key: 'a', action: 'cancel-newest' }] });
    expect((await as('write')('enqueue', [polite])).body).toMatchObject([{ existed: true }]);
    expect((await mulligan.jobs.get(victim.id))?.state).toBe('ready');
    expect((await as('write')('limits', { limit: 10 })).status).toBe(403);
    expect((await as('write')('limitKeys', 'shop', { limit: 10 })).status).toBe(403);
    const named = await as('write')('limits', { names: ['shop'], limit: 10 });
    expect(named.body).toMatchObject([{ name: 'shop', running: 0, waiting: 0, keysSet: 0 }]);
  });

  it('a worker is taken off the list by its own token and by operators', async () => {
    const { as, mulligan } = await open(kind);
    const worker = {
      name: null,
      version: null,
      mulligan: null,
      host: 'h',
      pid: 1,
      concurrency: 1,
      queues: [],
      jobs: [],
    };
    expect((await as('work')('register', 'w1', worker)).status).toBe(200);
    expect((await as('work', '2')('register', 'w1', null)).status).toBe(403);
    expect((await as('work', '2')('register', 'w1', { ...worker, host: 'evil' })).status).toBe(403);
    await using local = mulligan.work();
    await expect.poll(() => mulligan.workers.list(), { timeout: 30_000 }).toHaveLength(2);
    expect((await as('work')('register', local.id, null)).status).toBe(403);
    expect(await mulligan.workers.list()).toHaveLength(2);
    expect((await as('work')('register', 'w1', null)).status).toBe(200);
    expect(await mulligan.workers.list()).toMatchObject([{ id: local.id }]);
  });

  it('a wait that a worker reports holds a gate for an hour at most, whatever its size', async () => {
    const { as, mulligan } = await open(kind);
    const report = {
      epoch: 0,
      claimedFrom: 0,
      worker: 1,
      spanMs: 0,
      alive: 0,
      throttled: 1,
      environment: 0,
      none: 0,
      unstarted: 0,
      tail: 0,
      jobs: [1, 0],
      askers: [1, 0],
      asks: 1,
      retryAfterMs: 1e300,
      firstSuccesses: 0,
      retries: 0,
      slowestMs: 0,
      livingChildren: 0,
    };
    const { status, body } = await as('work')('report', [{ gate: { kind: 'resource', name: 'smtp' }, report }]);
    expect(status).toBe(200);
    expect(body[0].state.heldUntil - body[0].now).toBeLessThanOrEqual(3_600_000);
    expect((await mulligan.gates.show('smtp')).isKnown).toBe(true);
  });
});

it('a worker that speaks HTTP is taken off the list by its own token and by operators', async () => {
  const [one, two, ops] = [createToken('one', ['work']), createToken('two', ['work']), createToken('ops', ['admin'])];
  const { call, mulligan } = await served({ server: { tokens: [one.stored, two.stored, ops.stored] } });
  const as = ({ token }: { token: string }) => ({ authorization: `Bearer ${token}` });
  for (const worker of ['a', 'b']) {
    expect((await call('POST', '/api/v1/claim', { worker, wait: 0 }, as(one))).status).toBe(200);
    await expect
      .poll(async () => (await mulligan.workers.list()).map(({ token }) => token), { timeout: 30_000 })
      .toEqual(['one']);
    expect((await call('DELETE', `/api/v1/workers/${worker}`, undefined, as(two))).status).toBe(403);
    expect((await call('POST', '/api/v1/claim', { worker, wait: 0 }, as(two))).status).toBe(200);
    expect((await call('DELETE', `/api/v1/workers/${worker}`, undefined, as(two))).status).toBe(403);
    const owner = worker === 'a' ? one : ops;
    expect((await call('DELETE', `/api/v1/workers/${worker}`, undefined, as(owner))).status).toBe(200);
  }
});

it('a producer that listens for hints is told of no jobs', async () => {
  const { token, stored } = createToken('listener', ['write']);
  const { url, mulligan } = await served({ server: { tokens: [stored] } });
  const stop = new AbortController();
  const response = await fetch(`${url}/api/v1/store/hints`, {
    headers: { authorization: `Bearer ${token}` },
    signal: stop.signal,
  });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const { id } = await mulligan.enqueue('a', 1);
  await mulligan.jobs.cancel(id);
  await mulligan.enqueue('a', 2);
  const decoder = new TextDecoder();
  const told: string[] = [];
  while (told.join('').split('event: work').length < 3) told.push(decoder.decode((await reader.read()).value));
  stop.abort();
  expect(told.join('')).not.toContain(id);
});
