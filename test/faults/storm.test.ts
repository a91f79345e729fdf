import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Fleet, type WorkerProcess } from '../processes/fleet.ts';
import { type Chance, chance } from './chance.ts';
import { checkLedgers } from './ledger-check.ts';
import { Load } from './load.ts';
import { expectSoundFile } from './sound-file.ts';

/** Longer for a soak. */
const STORM_MS = Number(process.env.MULLIGAN_SOAK_SECONDS ?? 10) * 1_000;
const PATIENCE_MS = STORM_MS + 60_000;
const work = { concurrency: 20, lease: '1s' } as const;

describe('worker processes that are killed at any moment', () => {
  it('lose no acknowledged job and settle none twice, while jobs keep coming in', {
    timeout: PATIENCE_MS,
  }, async () => {
    const luck = chance();
    await using fleet = await Fleet.open();
    const load = new Load(fleet.mulligan, luck, 3);
    const everyone = await keepKilling(fleet, luck);
    await load.stop();
    await drain(fleet);
    await expectGoodBooks(fleet, load, everyone);
    expect((await fleet.mulligan.stats()).totals.runs.crashed).toBeGreaterThan(0);
  });
});

describe('worker processes that are paused beyond their lease, again and again', () => {
  it('lose no acknowledged job and settle none twice when they go on', { timeout: PATIENCE_MS }, async () => {
    const luck = chance();
    await using fleet = await Fleet.open();
    const names = ['one', 'two', 'three'];
    const crew = await Promise.all(names.map((name) => fleet.start({ ...work, name })));
    const load = new Load(fleet.mulligan, luck, 3);
    const stopAt = performance.now() + STORM_MS * 0.7;
    while (performance.now() < stopAt) {
      await sleep(luck.between(0, 200));
      const index = luck.index(crew.length);
      await pauseBeyondLease(fleet, crew[index] as WorkerProcess, names[index] as string);
    }
    await load.stop();
    await fleet.allEnded();
    await expectGoodBooks(fleet, load, crew);
    expect((await fleet.mulligan.stats()).totals.runs.crashed).toBeGreaterThan(0);
  });
});

/** Four places, of which one is emptied and filled again every few hundred ms; some are hit while they start. */
async function keepKilling(fleet: Fleet, luck: Chance): Promise<WorkerProcess[]> {
  const crew = Array.from({ length: 4 }, () => fleet.launch(work));
  const everyone = [...crew];
  const stopAt = performance.now() + STORM_MS;
  while (performance.now() < stopAt) {
    await sleep(luck.between(50, 400));
    const place = luck.index(crew.length);
    await (crew[place] as WorkerProcess).kill();
    crew[place] = fleet.launch(work);
    everyone.push(crew[place]);
  }
  await Promise.all(crew.map((worker) => worker.kill()));
  return everyone;
}

async function drain(fleet: Fleet): Promise<void> {
  const fresh = await fleet.start(work);
  await fleet.allEnded();
  await fresh.stop();
}

/**
 * Until another worker has taken over its jobs. A process may be paused while it holds the file's lock; then nobody
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

/** What the store says, what the processes were told, and what the file looks like. */
async function expectGoodBooks(fleet: Fleet, load: Load, workers: readonly WorkerProcess[]): Promise<void> {
  const { acknowledged, hardy } = load;
  const { jobs, ledgers } = await checkLedgers(fleet.mulligan, { acknowledged });
  expect(jobs.filter(({ id, state }) => hardy.has(id) && state !== 'completed')).toEqual([]);
  const told = new Set<string>();
  for (const { id, run } of workers.flatMap(({ messages }) => messages.flatMap(({ completed }) => completed ?? []))) {
    expect(told.has(id), `job ${id} was completed twice`).toBe(false);
    told.add(id);
    expect(ledgers.get(id)?.at(-1)).toMatchObject({ run, outcome: 'completed' });
  }
  expect(told.size).toBeGreaterThan(0);
  expectSoundFile(fleet.path);
}
