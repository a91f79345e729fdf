import { describe, expect, it, vi } from 'vitest';
import { defineJob } from '../../src/definition.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { createToken } from '../../src/server/index.ts';
import { encode } from '../../src/store/http/wire.ts';
import type { Schedule } from '../../src/store/store.ts';
import { type OrderVerb, rowOf, verbNames } from '../../src/store/verbs.ts';
import { type Served, served } from './served.ts';
import { emptyStore, storeKinds } from './stores.ts';

/* An order leaves exactly one row with the name of its token: by a raw verb, by REST, and by a library that opened the server. */

const sync = defineJob({ name: 'sync', limit: { name: 'shop', concurrency: 3 }, run() {} });
const ops = createToken('ops', ['admin']);
const authorization = `Bearer ${ops.token}`;
const UNKNOWN = '01990000-0000-7000-8000-000000000000';

async function open(kind: (typeof storeKinds)[number]): Promise<Served> {
  const target = await emptyStore(kind);
  const opened = await served({ target, queue: { jobs: [sync] }, server: { tokens: [ops.stored], chores: false } });
  await opened.mulligan.schedules.set('nightly', 'sync', {}, { every: '1h' }, { by: 'setup' });
  return opened;
}

async function rowsOf({ mulligan }: Served, give: () => Promise<unknown>) {
  const before = await mulligan.audit.list({ limit: 1_000 });
  await give();
  return (await mulligan.audit.list({ limit: 1_000 })).slice(0, -before.length);
}

type Raw = readonly [note: RegExp | null, args: (before: Schedule) => readonly unknown[]];

/** Calls without an order, as a client would send them that wants no row. */
const raw: { readonly [Verb in OrderVerb]: readonly Raw[] } = {
  hold: [
    [/^queue q was paused$/, () => [{ queue: 'q' }, null]],
    [/^resource r was paused until 2100-01-01T00:00:00.000Z$/, () => [{ resource: 'r' }, Date.UTC(2100, 0)]],
  ],
  release: [[/^queue q was resumed$/, () => [{ queue: 'q' }]]],
  cancel: [[null, () => [[UNKNOWN]]]],
  changeGate: [[/^gate smtp was pinned open$/, () => [{ kind: 'resource', name: 'smtp' }, 'open', 'who?']]],
  writeLimits: [
    [
      /^limit shop was set: \{"concurrency":0\}; limit shop, key a, was reset$/,
      () => [
        [
          { limit: 'shop', key: null, source: 'set', settings: { concurrency: 0 }, merge: true },
          { limit: 'shop', key: 'a', source: 'set', settings: null },
        ],
      ],
    ],
  ],
  writeRetention: [
    [
      /^retention of all other names was set: completed=7d; retention of sync was reset$/,
      () => [
        [
          { name: null, state: 'completed', source: 'set', keptMs: 604_800_000 },
          { name: 'sync', state: 'dead', source: 'set' },
        ],
      ],
    ],
  ],
  writeSchedule: [
    [/^schedule nightly was paused$/, (before) => [written(before, { paused: true, nextAt: null })]],
    [/^schedule nightly was resumed$/, (before) => [written(before, { paused: false, nextAt: 1 })]],
    [/^schedule nightly was set: /, (before) => [written(before, { timing: { kind: 'at', at: 1 } })]],
    [/^schedule nightly was removed$/, (before) => [{ name: 'nightly', from: before.version, to: null, jobs: [] }]],
  ],
  change: [[null, () => [changeOf('cancel')]]],
};

let versions = 0;
function written(before: Schedule, changes: Partial<Schedule>) {
  const to = { ...before, ...changes, version: `v${++versions}` };
  return { name: before.name, from: before.version, to, jobs: [] };
}

function changeOf(action: string, rest: object = {}) {
  const none = { selection: {}, part: 1, intervalMs: 0, keepAttempts: false, canary: 0 };
  return { ...none, id: UNKNOWN, action, order: 'one', by: 'who?', ...rest };
}

type Order = readonly [action: string, give: (mulligan: Mulligan) => Promise<unknown>];

const byLibrary: readonly Order[] = [
  ['pause', ({ queues }) => queues.pause('q')],
  ['resume', ({ queues }) => queues.resume('q')],
  ['gate', ({ gates }) => gates.open('smtp')],
  ['limit', ({ limits }) => limits.set('shop', { concurrency: 1 })],
  ['limit', ({ limits }) => limits.reset('shop')],
  ['retention', ({ retention }) => retention.set({ dead: '1d' }, { name: 'sync' })],
  ['retention', ({ retention }) => retention.reset({ name: 'sync' })],
  ['schedule', ({ schedules }) => schedules.pause('nightly')],
  ['schedule', ({ schedules }) => schedules.pause('nightly')],
  ['schedule', ({ schedules }) => schedules.trigger('nightly')],
  ['cancel', async ({ jobs }) => jobs.cancel((await jobs.list())[0]?.id as string)],
  ['schedule', ({ schedules }) => schedules.resume('nightly')],
  ['schedule', ({ schedules }) => schedules.remove('nightly')],
];

const byRest: readonly (readonly [action: string, method: string, path: string, body: unknown])[] = [
  ['pause', 'POST', '/queues/q/pause', { force: true }],
  ['resume', 'POST', '/queues/q/resume', {}],
  ['gate', 'POST', '/gates/smtp/open', {}],
  ['limit', 'PUT', '/limits/shop', { concurrency: 1 }],
  ['limit', 'POST', '/limits/shop/reset', {}],
  ['schedule', 'PUT', '/schedules/weekly', { job: 'sync', every: '7d' }],
  ['schedule', 'POST', '/schedules/weekly/pause', {}],
  ['schedule', 'POST', '/schedules/weekly/resume', {}],
  ['schedule', 'POST', '/schedules/weekly/trigger', {}],
  ['schedule', 'DELETE', '/schedules/weekly', {}],
  ['cancel', 'POST', '/jobs/cancel', { name: 'sync' }],
];

describe.each(storeKinds)('an order leaves one row on %s', (kind) => {
  it('by a raw verb, whatever the client sends along', async () => {
    const opened = await open(kind);
    const call = (verb: string, args: readonly unknown[]) =>
      fetch(`${opened.url}/api/v1/store/${verb}`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: encode(args),
      });
    const orderVerbs = verbNames.filter((name): name is OrderVerb => rowOf(name).isOrder === true);
    expect(Object.keys(raw).sort()).toEqual(orderVerbs.toSorted());
    for (const verb of orderVerbs) {
      for (const [note, argsOf] of raw[verb]) {
        const { schedules } = (await (await call('schedules', [{ names: ['nightly'], limit: 1 }])).json()) as {
          schedules: [Schedule];
        };
        const rows = await rowsOf(opened, async () => {
          expect((await call(verb, argsOf(schedules[0]))).status, verb).toBe(200);
        });
        expect(
          rows.map(({ by }) => by),
          verb,
        ).toEqual([expect.stringMatching(/^ops from 127\.0\.0\.1/)]);
        if (note !== null) expect(rows[0]?.note).toMatch(note);
      }
    }
  });

  it('and a false note, or the name of another operator, does not get there', async () => {
    const opened = await open(kind);
    const order = { id: '01990000-0000-7000-8000-000000000001', by: 'the boss', note: 'nothing happened' };
    const body = encode([{ queue: 'q' }, null, order]);
    const headers = { authorization, 'content-type': 'application/json' };
    const send = () => fetch(`${opened.url}/api/v1/store/hold`, { method: 'POST', headers, body });
    const rows = await rowsOf(opened, async () => {
      await send();
      await send();
    });
    expect(rows).toMatchObject([{ id: order.id, action: 'pause', note: 'queue q was paused' }]);
    expect(rows[0]?.by).toMatch(/^ops from .*: the boss$/);
    const forged = encode([changeOf('reveal', { stop: 'nobody looked' })]);
    const { status } = await fetch(`${opened.url}/api/v1/store/change`, { method: 'POST', headers, body: forged });
    expect(status).toBe(400);
  });

  it('by a library that opened the server', async () => {
    const opened = await open(kind);
    await using remote = await Mulligan.open(opened.url, { token: ops.token, log: () => {} });
    for (const [action, give] of byLibrary) {
      const rows = await rowsOf(opened, () => give(remote));
      expect(rows, `${give}`).toMatchObject([{ action, state: 'done', by: expect.stringMatching(/^ops from /) }]);
    }
  });

  it('by REST', async () => {
    const opened = await open(kind);
    for (const [action, method, path, body] of byRest) {
      const rows = await rowsOf(opened, async () => {
        expect((await opened.call(method, `/api/v1${path}`, body, { authorization })).status, path).toBe(200);
      });
      expect(rows, path).toMatchObject([{ action, state: 'done', by: expect.stringMatching(/^ops from /) }]);
    }
  });

  it('while ticks and the schedules of code leave none', async () => {
    const opened = await open(kind);
    const schedules = [{ name: 'coded', job: sync, input: {}, every: '1s' } as const];
    const rows = await rowsOf(opened, async () => {
      await using remote = await Mulligan.open(opened.url, {
        token: ops.token,
        jobs: [sync],
        schedules,
        log: () => {},
      });
      remote.work();
      await vi.waitUntil(async () => (await opened.mulligan.jobs.count({ name: 'sync' })).count > 0, {
        timeout: 60_000,
      });
    });
    expect(rows).toEqual([]);
  });
});
