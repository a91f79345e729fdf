import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { expect, it, vi } from 'vitest';
import { defineJob } from '../../src/definition.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { createToken } from '../../src/server/index.ts';
import { decode, encode } from '../../src/store/http/wire.ts';
import { heldWords, holdJobs } from '../support/held-jobs.ts';
import { served } from './served.ts';

it('an application uses a remote queue unchanged: it enqueues, works, retries and waits for the result', async () => {
  const { url, mulligan } = await served();
  const seen: number[] = [];
  const double = defineJob<{ n: number }>({
    name: 'double',
    retry: { backoff: { kind: 'fixed', base: 0 }, jitter: 'none' },
    async run({ n }, { attempt, once }) {
      seen.push(await once('effect', () => n));
      if (attempt === 1) throw new Error('the first attempt fails');
      return n * 2;
    },
  });
  await using remote = await Mulligan.open(url, { jobs: [double], log: () => {} });
  const worker = remote.work();
  const enqueued = await remote.enqueue(double, { n: 21 }, { tags: ['a'] });
  expect(await remote.result(enqueued, { timeout: '10s' })).toBe(42);
  expect(seen).toEqual([21, 21]);
  expect(await mulligan.jobs.get(enqueued.id)).toMatchObject({ state: 'completed', runs: 2, tags: ['a'] });
  expect(await mulligan.workers.list()).toMatchObject([{ id: worker.id, jobs: ['double'] }]);
});

it('a token that may only read can do nothing else through the store, and sees payloads redacted', async () => {
  const { token, stored } = createToken('reader', ['read']);
  const { url, mulligan } = await served({ server: { tokens: [stored] } });
  const { id } = await mulligan.enqueue('a', { user: 'ada', password: 'hunter2' });
  await using remote = await Mulligan.open(url, { token, log: () => {} });
  expect((await remote.jobs.get(id))?.payload).toEqual({ user: 'ada', password: '[redacted]' });
  await expect(remote.enqueue('a', 1)).rejects.toMatchObject({
    code: 'FORBIDDEN',
    message: expect.stringMatching(/scope write/),
  });
  await expect(remote.jobs.cancel({ ids: [id] })).rejects.toThrow(/scope admin/);
});

it.each([['read', 'write', 'work'] as const, ['read', 'write'] as const])(
  'a token without admin changes no schedule by hand, and triggers none: %s, %s, %s',
  async (...scopes) => {
    const { token, stored } = createToken('app', scopes.filter(Boolean));
    const { url, mulligan } = await served({ server: { tokens: [stored], chores: false } });
    await mulligan.schedules.set('nightly', 'a', { password: 'p' }, { every: '1h' });
    await using remote = await Mulligan.open(url, { token, log: () => {} });
    const before = await mulligan.schedules.show('nightly');
    const orders = [
      () => remote.schedules.set('evil', 'a', 1, { every: '1h' }),
      () => remote.schedules.set('nightly', 'a', 1, { every: '2h' }),
      () => remote.schedules.pause('nightly'),
      () => remote.schedules.remove('nightly'),
      () => remote.schedules.trigger('nightly'),
    ];
    for (const order of orders) await expect(order()).rejects.toThrow(/scope (admin|work)/);
    expect((await mulligan.schedules.list()).map(({ name }) => name)).toEqual(['nightly']);
    expect((await mulligan.schedules.show('nightly'))?.schedule).toEqual(before?.schedule);
    expect((await mulligan.jobs.count({})).count).toBe(0);
  },
);

it('a worker with a token fires schedules, and gives those of its code', async () => {
  const { token, stored } = createToken('worker', ['read', 'write', 'work']);
  const { url, mulligan } = await served({ server: { tokens: [stored], chores: false } });
  await mulligan.schedules.set('stored', 'tick', 'by hand', { every: '1s' });
  const seen = new Set<string>();
  const tick = defineJob<string>({ name: 'tick', run: (from) => void seen.add(from) });
  const schedules = [{ name: 'coded', job: tick, input: 'by code', every: '1s' } as const];
  await using remote = await Mulligan.open(url, { token, jobs: [tick], schedules, log: () => {} });
  remote.work();
  await vi.waitUntil(() => seen.size === 2, { timeout: 60_000 });
});

it('a token that may only read sees inputs of schedules redacted', async () => {
  const { token, stored } = createToken('reader', ['read']);
  const { url, mulligan } = await served({ server: { tokens: [stored] } });
  await mulligan.schedules.set('nightly', 'a', { user: 'ada', password: 'p' }, { every: '1h' });
  await using remote = await Mulligan.open(url, { token, log: () => {} });
  const [shown] = await remote.schedules.list();
  expect(shown?.input).toEqual({ user: 'ada', password: '[redacted]' });
});

it('a remote worker reports to gates: an outage opens them, and its jobs keep their attempts', async () => {
  const { url, mulligan } = await served();
  const send = defineJob<number>({
    name: 'send',
    resource: 'smtp',
    async run() {
      await sleep(1.5);
      throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    },
  });
  const problems: string[] = [];
  const log = ({ message }: { message: string }): void => void problems.push(message);
  await using remote = await Mulligan.open(url, { jobs: [send], log });
  await remote.enqueueMany(
    send,
    Array.from({ length: 25 }, (_, input) => ({ input })),
  );
  remote.work();
  await vi.waitUntil(async () => (await mulligan.gates.list())[0]?.phase === 'open', { timeout: 60_000 });
  expect(problems.filter((message) => /does not answer/.test(message))).toEqual([]);
  expect((await mulligan.jobs.count({ state: 'dead' })).count).toBe(0);
});

it.each([
  ['https://ada:secret@queue.example.com', /without a user or password/],
  ['http://127.0.0.1:1/?token=secret', /without \? and #/],
  ['http://', /expected https:\/\/HOST/],
])('%s is refused, and what it hides is not shown', async (url, message) => {
  const refused = await Mulligan.open(url).catch((error: Error) => error);
  expect(refused).toMatchObject({ code: 'CONFIG', message: expect.stringMatching(message) });
  expect(String(refused)).not.toMatch(/secret/);
});

it('a server that is away is an unavailable store, and a token is for servers only', async () => {
  await expect(Mulligan.open('http://127.0.0.1:9')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  await expect(Mulligan.open('memory:', { token: 'x' })).rejects.toThrow(/token: expected it together with/);
});

it('what JSON loses survives the way', () => {
  const list = Object.assign([1], { stoppedAfter: 'x' });
  const values = [
    new Map([['a', 1]]),
    new Set(['b']),
    [-0, Number.NaN, Number.POSITIVE_INFINITY, 5n],
    { $map: [['a', 1]], nested: { $set: [1], 'a b': null } },
    JSON.parse('{"__proto__":{"x":1}}'),
    list,
  ];
  const back = decode(encode(values)) as typeof values;
  expect(back).toEqual(values);
  expect(Object.is((back[2] as number[])[0], -0)).toBe(true);
  expect((back[5] as typeof list).stoppedAfter).toBe('x');
});

it('every command works against a server, as it does against its database', async () => {
  const { url, mulligan } = await served();
  const cli = async (...args: string[]) => {
    const { stdout } = await promisify(execFile)('node_modules/.bin/node', [
      'bin/mulligan.js',
      ...args,
      '--json',
      '--db',
      url,
    ]);
    return JSON.parse(stdout);
  };
  const { id } = await cli('enqueue', 'email.send', '{"to":"a"}', '--delay', '1h');
  expect(await mulligan.jobs.get(id)).toMatchObject({ name: 'email.send', state: 'scheduled' });
  const [shown, stats, cancelled, doctor] = await Promise.all([
    cli('jobs', 'show', id),
    cli('stats'),
    cli('jobs', 'cancel', id),
    cli('doctor'),
  ]);
  expect(shown.job).toMatchObject({ id });
  expect(stats).toMatchObject({ totals: { enqueued: 1 } });
  expect(JSON.stringify(cancelled)).toContain(id);
  expect(doctor.checks).toContainEqual(expect.objectContaining({ name: 'connection', health: 'ok' }));
  await holdJobs(mulligan);
  const { checks } = await cli('doctor');
  expect(checks).toContainEqual(expect.objectContaining({ name: 'waiting', health: 'warn', found: heldWords }));
});
