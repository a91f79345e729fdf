import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import { Mulligan } from '../../src/index.ts';
import { tickId } from '../../src/schedule/tick-id.ts';
import { MemoryStore } from '../../src/store/memory/store.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import type { Store } from '../../src/store/store.ts';
import { VirtualClock } from '../../src/testing/index.ts';
import { movableTime, newSchema, runSql } from '../support/postgres-schema.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** Workers on one store whose clock is set by the test. They serve a queue without jobs: here they only fire ticks. */
interface SetClock extends AsyncDisposable {
  readonly mulligan: Mulligan;
  /** Sets the clock of the store, and waits until the workers have looked. */
  moveTo(time: number): Promise<void>;
}

const work = { queues: ['none'], poll: '20ms' } as const;

async function onVirtualClock(clock: VirtualClock, store: Store): Promise<SetClock> {
  const mulligan = await Mulligan.open(store, { clock, log: () => {} });
  for (let n = 0; n < 3; n++) mulligan.work(work);
  return {
    mulligan,
    moveTo: async (time) => {
      clock.set(time);
      await clock.advance(500);
    },
    [Symbol.asyncDispose]: async () => {
      const closed = mulligan.close();
      await clock.advance(MINUTE_MS);
      await closed;
    },
  };
}

async function onMemory(startAt: number): Promise<SetClock> {
  const clock = new VirtualClock({ startAt });
  return onVirtualClock(clock, new MemoryStore({ clock }));
}

async function onSqlite(startAt: number): Promise<SetClock> {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
  const clock = new VirtualClock({ startAt });
  const queue = await onVirtualClock(clock, await SqliteStore.open({ path: join(folder, 'jobs.db'), inline: clock }));
  return {
    ...queue,
    [Symbol.asyncDispose]: async () => {
      await queue[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

async function onPostgres(startAt: number): Promise<SetClock> {
  const [url, schema] = [inject('postgresUrl'), newSchema()];
  const open = (): Promise<Mulligan> => Mulligan.open(`${url}?schema=${schema}`, { log: () => {} });
  const [mulligan, second] = [await open(), await open()];
  await movableTime(url, schema);
  const setTime = (time: number): Promise<unknown> =>
    runSql(url, `UPDATE ${schema}.test_time SET shift = $1`, [time - Date.now()]);
  await setTime(startAt);
  for (const queue of [mulligan, second, second]) queue.work(work);
  return {
    mulligan,
    moveTo: async (time) => {
      await setTime(time);
      const isBehind = async (): Promise<boolean> =>
        (await mulligan.schedules.list()).some(({ nextAt }) => nextAt !== null && nextAt <= time);
      while (await isBehind()) await sleep(10);
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([mulligan.close(), second.close()]);
      await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
    },
  };
}

const stores = [
  ['memory', onMemory],
  ['SQLite', onSqlite],
  ['PostgreSQL', onPostgres],
] as const;
const berlin = { timezone: 'Europe/Berlin', misfire: 'all' } as const;

describe.each(stores)('on %s', (_, open) => {
  it.each([
    [23, '2026-03-28T23:00:00Z', '2026-03-29T01:00:00Z'],
    [25, '2026-10-24T22:00:00Z', '2026-10-25T00:30:00Z'],
  ])('each tick of a day of %i hours gets one job', async (hours, midnight, halfPastTwo) => {
    const start = Date.parse(midnight) - 10 * MINUTE_MS;
    await using queue = await open(start);
    const { schedules, jobs } = queue.mulligan;
    await schedules.set('hourly', 'report', {}, { cron: '0 * * * *', ...berlin });
    await schedules.set('half past two', 'report', {}, { cron: '30 2 * * *', ...berlin });
    const end = start + hours * HOUR_MS;
    for (let time = start; time < end; time += 25 * MINUTE_MS) await queue.moveTo(time);
    await queue.moveTo(end - 1);
    const ticks = Array.from({ length: hours }, (_, hour) => Date.parse(midnight) + hour * HOUR_MS);
    const expected = [...ticks.map((tick) => tickId('hourly', tick)), tickId('half past two', Date.parse(halfPastTwo))];
    expect((await jobs.list({ limit: 100 })).map(({ id }) => id).sort()).toEqual(expected.sort());
  });

  it('no tick is fired again, and none is left out, when the clock of the store steps back and forth', async () => {
    const start = Date.parse('2026-06-01T00:00:00Z');
    await using queue = await open(start);
    await queue.mulligan.schedules.set('s', 'report', {}, { every: '1m', misfire: 'all', misfireLimit: 1_000 });
    const minutes = [3, 1, 4, 2, 30, 5, 31, 29, 90, 0, 91];
    for (const minute of minutes) await queue.moveTo(start + minute * MINUTE_MS + 1);
    const ticks = Array.from({ length: 91 }, (_, minute) => start + (minute + 1) * MINUTE_MS);
    const found = await queue.mulligan.jobs.list({ limit: 1_000 });
    expect(found.map(({ id }) => id).sort()).toEqual(ticks.map((tick) => tickId('s', tick)).sort());
    expect((await queue.mulligan.stats()).totals.enqueued).toBe(91);
  });
});
