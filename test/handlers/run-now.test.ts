import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import { defineJob, Mulligan } from '../../src/index.ts';
import { Fleet } from '../processes/fleet.ts';
import { waitsForStop } from '../processes/jobs.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { places } from './stores.ts';

const JOBS = 150;

describe.each(places)('a job that looks for an approval and snoozes for an hour, on %s', (_, open) => {
  it('never sleeps through one that comes while it runs, at whatever moment', async () => {
    const approved = new Set<number>();
    const order = defineJob<number>({
      name: 'order',
      resource: false,
      async run(n, { snooze }) {
        if (approved.has(n)) return;
        await sleep(n % 5);
        snooze('1h');
      },
    });
    await using place = await open();
    await using mulligan = await Mulligan.open(place.url, { jobs: [order], log: () => {} });
    const enqueued = await mulligan.enqueueMany(
      order,
      Array.from({ length: JOBS }, (_, input) => ({ input })),
    );
    mulligan.work({ concurrency: 20 });
    await Promise.all(
      enqueued.map(async ({ id }, n) => {
        while ((await mulligan.jobs.get(id))?.runs === 0) await sleep(1);
        // From during the run to after it.
        await sleep((n % 7) * 2);
        approved.add(n);
        await mulligan.jobs.runNow({ ids: [id] });
        expect(await mulligan.result(id)).toBeUndefined();
      }),
    );
    expect((await mulligan.stats()).states).toMatchObject({ completed: JOBS, scheduled: 0 });
  });
});

it.each([
  ['SQLite', async (): Promise<null> => null],
  ['PostgreSQL', (): Promise<TestDatabase> => TestDatabase.create(inject('postgresUrl'))],
] as const)(
  'a job that is to run now, whose worker process is killed, runs as soon as it is rescued, on %s',
  async (_, create) => {
    await using database = await create();
    await using fleet = database === null ? await Fleet.open() : await Fleet.at(database.url);
    const { mulligan } = fleet;
    const retry = { backoff: { kind: 'fixed', base: '1h' }, jitter: 'none' } as const;
    const first = await fleet.start({ concurrency: 1, lease: '1s' });
    const { id } = await mulligan.enqueue(waitsForStop, null, { retry });
    await fleet.until(async () => (await mulligan.jobs.get(id))?.state === 'running');
    expect(await mulligan.jobs.runNow({ ids: [id] })).toMatchObject({ count: 1, ids: [id], others: [] });
    await first.kill();
    await fleet.start({ concurrency: 1, lease: '1s' });
    await fleet.until(async () => (await mulligan.jobs.get(id))?.runs === 2);
    expect((await mulligan.jobs.runs(id))[0]).toMatchObject({ outcome: 'crashed', decision: { delayMs: 3_600_000 } });
  },
);
