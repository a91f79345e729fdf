import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Fleet, type WorkerProcess } from '../processes/fleet.ts';
import { expectSoundFile } from '../support/sound-file.ts';
import { chance } from './chance.ts';
import { expectGoodBooks } from './good-books.ts';
import { drain, keepKilling, work } from './killing.ts';
import { Load } from './load.ts';

/** Longer for a soak. */
const LASTS_MS = Number(process.env.MULLIGAN_SOAK_SECONDS ?? 10) * 1_000;
const TIMEOUT_MS = LASTS_MS + 60_000;

describe('worker processes that are killed at any moment', () => {
  it('lose no acknowledged job and settle none twice, while jobs keep coming in', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const luck = chance();
    await using fleet = await Fleet.open();
    const load = new Load(fleet.mulligan, luck, 3);
    const everyone = await keepKilling(fleet, luck, LASTS_MS);
    await load.stop();
    everyone.push(await drain(fleet));
    await expectGoodBooks(fleet.mulligan, load, everyone);
    expectSoundFile(fleet.path);
  });
});

describe('worker processes that are paused beyond their lease, again and again', () => {
  it('lose no acknowledged job and settle none twice when they go on', { timeout: TIMEOUT_MS }, async () => {
    const luck = chance();
    await using fleet = await Fleet.open();
    const names = ['one', 'two', 'three'];
    const crew = await Promise.all(names.map((name) => fleet.start({ ...work, name })));
    const load = new Load(fleet.mulligan, luck, 3);
    const stopAt = performance.now() + LASTS_MS * 0.7;
    const crashed = async (): Promise<number> => (await fleet.mulligan.stats()).totals.runs.crashed;
    // On a busy machine a pause may find nothing that runs.
    while (performance.now() < stopAt || (await crashed()) === 0) {
      await sleep(luck.between(0, 200));
      const index = luck.index(crew.length);
      await pauseBeyondLease(fleet, crew[index] as WorkerProcess, names[index] as string);
    }
    await load.stop();
    await fleet.allEnded();
    await expectGoodBooks(fleet.mulligan, load, crew);
    expectSoundFile(fleet.path);
    expect((await fleet.mulligan.stats()).totals.runs.crashed).toBeGreaterThan(0);
  });
});

/**
 * Until another worker has taken over its jobs. A process may be paused while it holds the file's lock; then no other
 * can take over anything, and the pause ends after a while.
 */
async function pauseBeyondLease(fleet: Fleet, { child }: WorkerProcess, name: string): Promise<void> {
  const patientUntil = performance.now() + 2_500;
  child.kill('SIGSTOP');
  await fleet.until(async (mulligan) => {
    const running = await mulligan.jobs.list({ state: 'running', limit: 1_000 });
    return performance.now() > patientUntil || !running.some(({ worker }) => worker?.startsWith(`${name}-`));
  });
  child.kill('SIGCONT');
}
