import { describe, expect, it } from 'vitest';
import { partsOf } from '../../src/mulligan.ts';
import { type Tick, tickOf } from '../../src/schedule/tick.ts';
import { createToken, type Scope } from '../../src/server/index.ts';
import { claimRequest, quota, newJob as someJob } from '../../src/store/conformance/builders.ts';
import { decode, encode } from '../../src/store/http/wire.ts';
import { reactionTo } from '../../src/store/reaction.ts';
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
  header(scope: Scope, app?: string): Record<string, string>;
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
  const header: Opened['header'] = (scope, app = '') => {
    const token = tokens.find((one) => one.scope === scope && one.app === app)?.token;
    return { authorization: `Bearer ${token}` };
  };
  const as: Opened['as'] = (scope, app) => {
    return async (verb, ...args) => {
      const response = await fetch(`${opened.url}/api/v1/store/${verb}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...header(scope, app) },
        body: encode(args),
      });
      return { status: response.status, body: decode(await response.text()) };
    };
  };
  return { ...opened, as, header };
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
      { ...before, timing: { kind: 'every', everyMs: 1_000, anchor: 0 } },
      null,
    ];
    for (const to of writes) {
      const write = { name: 'nightly', from: before.version, to, jobs: [] };
      expect((await opened.as('work')('writeSchedule', write)).status).toBe(403);
    }
    expect(await scheduleOf(opened, 'nightly')).toEqual(before);
  });

  it('a schedule that the library refuses, or of another name than is written, is refused', async () => {
    const opened = await open(kind);
    await opened.mulligan.schedules.set('nightly', 'report', {}, { every: '1h' });
    const before = await scheduleOf(opened, 'nightly');
    const own = { ...before, name: 'own', version: 'v1', code: 'mine' };
    const timings: unknown[] = [
      { kind: 'cron', cron: 'x', timezone: 'UTC' },
      { kind: 'cron', cron: '0 3 * * * * 2030', timezone: 'UTC' },
      { kind: 'cron', cron: '0 3 * * *', timezone: 'Mars/Base' },
      { kind: 'every', everyMs: 1, anchor: 0 },
      { kind: 'every', everyMs: 1_000.5, anchor: 0 },
      { kind: 'every', everyMs: 1e308, anchor: 0 },
      { kind: 'every', everyMs: 1_000, anchor: -8.64e15 },
      { kind: 'at', at: 8.64e15 },
    ];
    const writes: unknown[] = [
      ...timings.map((timing) => ({ ...own, timing })),
      ...[0, 10_001, 2 ** 31 - 1].map((misfireLimit) => ({ ...own, misfire: 'all', misfireLimit })),
      ...[-8.64e15, 8.64e15].flatMap((at) => [
        { ...own, nextAt: at },
        { ...own, lastAt: at },
      ]),
      { ...own, name: 'nightly' },
    ];
    for (const scope of ['work', 'admin'] as const) {
      for (const to of writes) {
        const { status } = await opened.as(scope)('writeSchedule', { name: 'own', from: null, to, jobs: [] });
        expect([to, status]).toEqual([to, 400]);
      }
    }
    expect(await opened.mulligan.schedules.list()).toMatchObject([{ name: 'nightly', job: 'report' }]);
    const { body } = await opened.as('work')('writeSchedule', { name: 'own', from: null, to: own, jobs: [] });
    expect(body).toEqual({ written: true, jobs: [] });
  });

  it('a stored schedule has the name under which it was written, whatever it says itself', async () => {
    const opened = await open(kind);
    await opened.mulligan.schedules.set('nightly', 'report', {}, { every: '1h' });
    const to = { ...(await scheduleOf(opened, 'nightly')), version: 'v1' };
    await partsOf(opened.mulligan).store.writeSchedule({ name: 'other', from: null, to, jobs: [] });
    expect(await scheduleOf(opened, 'other')).toEqual({ ...to, name: 'other' });
  });

  it('a stored schedule that cannot be read is shown, paused and set anew', async () => {
    const opened = await open(kind);
    await opened.mulligan.schedules.set('nightly', 'report', {}, { every: '1h' });
    const stored = await scheduleOf(opened, 'nightly');
    const timing = { kind: 'cron', cron: '0 3 * * *', timezone: 'Mars/Base' } as const;
    const to = { ...stored, version: 'v1', nextAt: 1, timing };
    for (const name of ['bad', 'worse']) {
      await partsOf(opened.mulligan).store.writeSchedule({ name, from: null, to, jobs: [] });
    }
    expect(await opened.mulligan.schedules.show('bad')).toMatchObject({ nextTimes: [1] });
    expect((await opened.call('GET', '/api/v1/schedules/bad', undefined, opened.header('read'))).status).toBe(200);
    const path = '/api/v1/schedules/bad/pause';
    expect((await opened.call('POST', path, {}, opened.header('admin'))).status).toBe(200);
    const write = { name: 'worse', from: 'v1', to: { ...stored, name: 'worse', version: 'v2' }, jobs: [] };
    expect((await opened.as('admin')('writeSchedule', write)).body).toEqual({ written: true, jobs: [] });
  });

  it('no program enqueues a job in the place of a tick or of a reaction to a death', async () => {
    const opened = await open(kind);
    const { as, mulligan } = opened;
    await mulligan.schedules.set('payroll', 'payroll.run', {}, { every: '1h' });
    const before = await scheduleOf(opened, 'payroll');
    const { jobs } = tickOf(before, 'v2', before.nextAt as number) as Tick;
    const id = jobs[0]?.id as string;
    for (const scope of ['write', 'admin'] as const) {
      for (const taken of [id, id.toUpperCase()]) {
        expect((await as(scope)('enqueue', [newJob(before, { id: taken, name: 'harmless' })])).status).toBe(400);
      }
    }
    const reaction = reactionTo({ id, run: 1, endedAt: 1 }, someJob());
    expect((await as('write')('enqueue', [reaction])).status).toBe(400);
    expect((await mulligan.jobs.count({})).count).toBe(0);
    expect((await as('write')('enqueue', [newJob(before)])).status).toBe(200);
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

  it('limits that the library refuses are refused', async () => {
    const { as } = await open(kind);
    const of = (settings: object, source = 'code') => [{ limit: 'bad', key: null, source, settings }];
    const good = { limit: 10, perMs: 1_000, burst: 1 };
    const changes = [{ burst: 0 }, { burst: 11 }, { burst: 1.5 }, { perMs: 0 }, { perMs: 0.5 }, { limit: 0 }];
    for (const change of [...changes, { limit: 1e-300 }, { limit: 1e308, burst: 1e308 }, { limit: 1_000_001 }]) {
      const rate = { ...good, ...change };
      expect([rate, (await as('write')('writeLimits', of({ rate }))).status]).toEqual([rate, 400]);
      expect([rate, (await as('admin')('writeLimits', of({ rate }, 'set'))).status]).toEqual([rate, 400]);
    }
    for (const settings of [{ concurrency: 0.5 }, { total: 1_000_001 }, { concurrencyBefore: -1 }]) {
      expect([settings, (await as('work')('writeLimits', of(settings))).status]).toEqual([settings, 400]);
    }
    const zeros = [{ concurrency: 0 }, { total: 0 }, { concurrencyBefore: 0 }];
    for (const settings of zeros) expect((await as('write')('writeLimits', of(settings))).status).toBe(403);
    expect((await as('read')('limits', { limit: 10 })).body).toEqual([]);
  });

  it('a bad rate that is stored already stops no claim of other limits', async () => {
    const opened = await open(kind);
    const { as, mulligan } = opened;
    const { store } = partsOf(mulligan);
    const bad = [{ burst: 0 }, { burst: 2 }, { burst: 5 }, { perMs: 0 }, { limit: 1e-300 }, { burst: 1e308 }];
    for (const [at, change] of bad.entries()) {
      const rate = { limit: 1, perMs: 3_600_000, burst: 1, ...change };
      const [limit, other] = [`bad${at}`, `good${at}`];
      await store.writeLimits([{ limit, key: null, source: 'code', settings: { rate } }]);
      await store.writeLimits([{ limit: other, key: null, source: 'code', settings: { concurrency: 5 } }]);
      await store.enqueue([1, 2].map(() => someJob({ limits: [{ limit, key: 'k' }] })));
      const request = claimRequest({ queues: [quota({ share: 10 })] });
      const first = (await as('work')('claimLimited', request)).body.jobs;
      expect([rate, first.length > 0]).toEqual([rate, true]);
      const [{ id } = { id: '' }] = await store.enqueue([someJob({ limits: [{ limit: other, key: 'k' }] })]);
      const { body } = await as('work')('claimLimited', request);
      expect([rate, body.jobs.map((job: { id: string }) => job.id)]).toEqual([rate, expect.arrayContaining([id])]);
    }
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
