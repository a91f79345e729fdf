import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import type { ScheduleInfo } from '../../src/index.ts';
import { tickId } from '../../src/schedule/tick-id.ts';
import { type Chance, chance } from '../faults/chance.ts';
import { Fleet, type WorkerProcess } from '../processes/fleet.ts';
import { quick } from '../processes/jobs.ts';
import { TestDatabase } from '../support/postgres-database.ts';

const LASTS_MS = Number(process.env.MULLIGAN_SOAK_SECONDS ?? 20) * 1_000;
const TIMEOUT_MS = LASTS_MS + 160_000;
const NAME = 'each-second';
const work = { concurrency: 5, lease: '1s' } as const;

/** Three processes, of which one is killed and started again every few hundred ms. Answers how many were killed. */
async function keepKilling(fleet: Fleet, luck: Chance): Promise<number> {
  const crew = Array.from({ length: 3 }, () => fleet.launch(work));
  const stopAt = performance.now() + LASTS_MS;
  let kills = 0;
  for (; performance.now() < stopAt; kills++) {
    const place = luck.index(crew.length);
    const victim = crew[place] as WorkerProcess;
    if (luck.index(3) > 0) await victim.ready;
    await sleep(luck.between(50, 600));
    await victim.kill();
    crew[place] = fleet.launch(work);
  }
  await Promise.all(crew.map((worker) => worker.kill()));
  return kills;
}

/** The schedule when it has fired all that is due, paused. */
async function pausedWhenFired({ mulligan }: Fleet): Promise<ScheduleInfo> {
  for (;;) {
    const details = await mulligan.schedules.show(NAME);
    if (details !== null && (details.schedule.nextAt as number) > details.now) return mulligan.schedules.pause(NAME);
    await sleep(20);
  }
}

async function expectOneJobPerTick(fleet: Fleet): Promise<void> {
  const luck = chance();
  const { mulligan } = fleet;
  const set = await mulligan.schedules.set(NAME, quick, { n: 1 }, { every: '1s', misfire: 'all', misfireLimit: 1_000 });
  const kills = await keepKilling(fleet, luck);
  const spared = await fleet.start(work);
  const { lastAt } = await pausedWhenFired(fleet);
  await fleet.allEnded();
  await spared.stop();

  const ticks: number[] = [];
  for (let tick = set.nextAt as number; tick <= (lastAt as number); tick += 1_000) ticks.push(tick);
  expect(ticks.length).toBeGreaterThanOrEqual(LASTS_MS / 1_000);
  const jobs = await mulligan.jobs.list({ limit: 10_000 });
  expect(jobs.map(({ id }) => id).sort()).toEqual(ticks.map((tick) => tickId(NAME, tick)).sort());
  expect(jobs.filter(({ state }) => state !== 'completed')).toEqual([]);
  expect((await mulligan.stats()).totals.enqueued).toBe(ticks.length);
  expect(kills).toBeGreaterThan(3);
}

describe('a schedule that ticks each second, while 3 worker processes are killed at random', () => {
  it.concurrent('gets exactly one job per tick on SQLite', { timeout: TIMEOUT_MS }, async () => {
    await using fleet = await Fleet.open();
    await expectOneJobPerTick(fleet);
  });

  it.concurrent('gets exactly one job per tick on PostgreSQL', { timeout: TIMEOUT_MS }, async () => {
    await using database = await TestDatabase.create(inject('postgresUrl'));
    await using fleet = await Fleet.at(database.url);
    await expectOneJobPerTick(fleet);
  });
});
