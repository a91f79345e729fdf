import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import { z } from 'zod';
import { defineJob, InputError, Mulligan, typeOf, Unrecoverable } from '../../src/index.ts';
import { Fleet } from '../processes/fleet.ts';
import { alwaysFails, killer, quick } from '../processes/jobs.ts';
import { served } from '../server/served.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { places } from './stores.ts';

describe.each(places)('a job that reacts to a death, on %s', (_, open) => {
  it('runs with the input that was made for the dead job, each time that it dies', async () => {
    const refunds: unknown[] = [];
    const refund = defineJob({
      name: 'refund',
      input: z.object({ order: z.number(), failed: z.string() }),
      run: (input) => void refunds.push(input),
    });
    const charge = defineJob({
      name: 'charge',
      input: z.object({ order: z.number() }),
      onDead: [refund, ({ order }, { id }) => ({ order, failed: id })],
      run() {
        throw new Unrecoverable('no such card');
      },
    });
    await using place = await open();
    await using mulligan = await Mulligan.open(place.url, { jobs: [charge, refund], log: () => {} });
    mulligan.work();
    const { id } = await mulligan.enqueue(charge, { order: 7 });
    await expect.poll(() => refunds, { timeout: 60_000 }).toEqual([{ order: 7, failed: id }]);
    await mulligan.dead.redrive({ ids: [id] });
    await expect.poll(() => refunds.length, { timeout: 60_000 }).toBe(2);
    // The one that is given at enqueue takes its place.
    const other = await mulligan.enqueue(charge, { order: 8 }, { onDead: ['refund', { order: 8, failed: 'by name' }] });
    await expect.poll(() => refunds.at(-1), { timeout: 60_000 }).toEqual({ order: 8, failed: 'by name' });
    expect(await mulligan.jobs.get(other.id)).toMatchObject({ state: 'dead' });
    expect((await mulligan.stats()).totals.enqueued).toBe(5);
  });
});

it('is checked when the job is enqueued: its input, its name, its form', async () => {
  const refund = defineJob({ name: 'refund', input: z.object({ order: z.number() }), run: () => {} });
  const charge = defineJob({ name: 'charge', run: () => {}, output: typeOf<void>() });
  await using mulligan = await Mulligan.open('memory:', { jobs: [charge, refund], log: () => {} });
  const enqueue = (onDead: never): Promise<unknown> => mulligan.enqueue(charge, null, { onDead });
  await expect(enqueue([refund, { order: 'seven' }] as never)).rejects.toThrow(InputError);
  await expect(enqueue([refund, { order: 'seven' }] as never)).rejects.toThrow(/charge: onDead: refund/);
  await expect(enqueue([refund] as never)).rejects.toThrow('enqueue: onDead: expected [job, input], got');
  await expect(enqueue([7, null] as never)).rejects.toThrow(
    'enqueue: onDead[0]: expected a definition made by defineJob, or a job name, got 7.',
  );
  await expect(enqueue((() => {}) as never)).rejects.toThrow('enqueue: onDead: expected [job, input], got');
  const throws = [
    refund,
    () => {
      throw new Error('no order');
    },
  ];
  await expect(enqueue(throws as never)).rejects.toThrow(
    'charge: onDead: expected its function to return an input, got an error that it threw: Error: no order',
  );
  expect(() => defineJob({ name: 'a', onDead: 'refund' as never })).toThrow(
    'job a: onDead: expected a function, or [job, input], got "refund".',
  );
  expect((await mulligan.jobs.count({})).count).toBe(0);
});

it('of a schedule has the id of the job that died, and leaves the schedule as it is when code gives it again', async () => {
  const seen: unknown[] = [];
  const alert = defineJob<{ failed: string }>({ name: 'alert', run: (input) => void seen.push(input) });
  const nightly = defineJob<null>({
    name: 'nightly',
    retry: { maxAttempts: 1 },
    resource: false,
    onDead: [alert, (_input, { id }) => ({ failed: id })],
    run() {
      throw new Error('no');
    },
  });
  const schedules = [{ name: 'n', job: nightly, input: null, every: '1h' }] as const;
  const { mulligan, url } = await served({ queue: { jobs: [nightly, alert], schedules } });
  const before = await mulligan.schedules.show('n');
  await using other = await Mulligan.open(url, { jobs: [nightly, alert], schedules, log: () => {} });
  expect((await other.schedules.show('n'))?.schedule).toEqual(before?.schedule);
  const { id } = await mulligan.schedules.trigger('n');
  mulligan.work();
  await expect.poll(() => seen, { timeout: 60_000 }).toEqual([{ failed: id }]);
});

it('may be given by a program that speaks HTTP', async () => {
  const { call, mulligan } = await served();
  const { status, body } = await call('POST', '/api/v1/jobs', { name: 'a', input: 1, onDead: ['b', { of: 'a' }] });
  expect(status).toBe(201);
  const { body: claimed } = await call('POST', '/api/v1/claim', { worker: 'w1', wait: 0 });
  const { lease } = claimed.jobs[0];
  const error = { name: 'E', message: 'no', class: 'permanent' };
  const settled = await call('POST', '/api/v1/settle', { lease, outcome: 'nack', error });
  expect(settled.body).toMatchObject({ decision: 'dead' });
  expect(await mulligan.jobs.get(body.id)).toMatchObject({ state: 'dead' });
  expect(await mulligan.jobs.list({ name: 'b' })).toMatchObject([{ state: 'ready', payload: { of: 'a' } }]);
});

describe.each([
  ['SQLite', async (): Promise<null> => null],
  ['PostgreSQL', (): Promise<TestDatabase> => TestDatabase.create(inject('postgresUrl'))],
] as const)('when worker processes are killed, on %s,', (_, create) => {
  it('is left also by a worker that knows neither job', async () => {
    await using database = await create();
    await using fleet = database === null ? await Fleet.open() : await Fleet.at(database.url);
    const { mulligan, url } = fleet;
    await fleet.start({ concurrency: 1, lease: '1s', queues: ['default'] });
    const { id } = await mulligan.enqueue(killer, null, { retry: { maxCrashes: 1 }, onDead: [quick, { n: 7 }] });
    const stranger = defineJob({ name: 'stranger', queue: 'elsewhere', run: () => {} });
    await using rescuer = await Mulligan.open(url, { jobs: [stranger], log: () => {} });
    rescuer.work({ lease: '1s' });
    await fleet.until(async () => (await mulligan.jobs.get(id))?.state === 'dead');
    expect(await mulligan.jobs.get(id)).toMatchObject({ deadReason: 'poison' });
    expect(await mulligan.jobs.list({ name: 'quick' })).toMatchObject([{ payload: { n: 7 } }]);
  });

  it('is there once for each dead job', async () => {
    await using database = await create();
    await using fleet = database === null ? await Fleet.open() : await Fleet.at(database.url);
    const { mulligan } = fleet;
    const JOBS = 300;
    const enqueued = await mulligan.enqueueMany(
      alwaysFails,
      Array.from({ length: JOBS }, (_, n) => ({ input: null, onDead: [quick, { n }] as const })),
      { retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: 100 }, jitter: 'none', maxCrashes: 2 } },
    );
    for (let kills = 0; kills < 3; kills++) {
      const worker = await fleet.start({ concurrency: 20, lease: '1s' });
      await sleep(100);
      await worker.kill();
    }
    await fleet.start({ concurrency: 20, lease: '1s' });
    await fleet.allEnded();
    expect((await mulligan.dead.count({})).count).toBe(enqueued.length);
    const reactions = await mulligan.jobs.list({ name: 'quick', limit: 1_000 });
    const numbers = reactions.map(({ payload }) => (payload as { n: number }).n).toSorted((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: JOBS }, (_, n) => n));
  });
});
