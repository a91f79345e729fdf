import { closeSync, openSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Fleet } from '../processes/fleet.ts';
import { quick, short, waitsForStop } from '../processes/jobs.ts';
import { expectSoundFile } from '../support/sound-file.ts';
import { checkLedgers } from './ledger-check.ts';

describe('a program that holds the lock of the file for longer than a lease', () => {
  it('takes no job from a live worker: its heartbeats are written before anything else', async () => {
    await using fleet = await Fleet.open();
    const { mulligan, path } = fleet;
    // So long that none of them waits in the worker: all that are claimed run.
    const acknowledged = (
      await mulligan.enqueueMany(
        short,
        Array(25)
          .fill({ ms: 300 })
          .map((input) => ({ input })),
      )
    ).map(({ id }) => id);
    await fleet.start({ concurrency: 5, lease: '1s' });
    await fleet.until(async () => (await mulligan.stats()).states.completed >= 5);
    using holder = new DatabaseSync(path, { timeout: 5_000 });
    holder.exec('BEGIN IMMEDIATE');
    const running = await mulligan.jobs.list({ state: 'running', limit: 1_000 });
    const last = Math.max(...running.map(({ leaseEndsAt }) => leaseEndsAt as number));
    // Long enough for a rescuer to find them, too.
    while (Date.now() <= last + 800) await sleep(20);
    holder.exec('ROLLBACK');
    await fleet.allEnded();
    const { ledgers } = await checkLedgers(mulligan, { acknowledged });
    for (const { id } of running) expect(ledgers.get(id)).toMatchObject([{ run: 1, outcome: 'completed' }]);
    expect(running).not.toEqual([]);
  });
});

/** Holds the write lock of the file for a while, as a VACUUM or a shell does. */
async function holdLock(path: string, ms: number): Promise<void> {
  using holder = new DatabaseSync(path, { timeout: 5_000 });
  holder.exec('BEGIN IMMEDIATE');
  await sleep(ms);
  holder.exec('ROLLBACK');
}

describe('several processes, while a program holds the lock of the file for longer than a lease, three times', () => {
  it('count no crash and bury no job, however long it was held; afterwards they rescue as ever', async () => {
    await using fleet = await Fleet.open();
    const { mulligan, path } = fleet;
    const work = { concurrency: 5, lease: '1s' } as const;
    const crew = await Promise.all([fleet.start(work), fleet.start(work), fleet.start(work)]);
    // The last process has nothing to do: it does not notice by itself that its leases cannot be renewed.
    const acknowledged = (
      await mulligan.enqueueMany(
        short,
        Array(10)
          .fill({ ms: 20_000 })
          .map((input) => ({ input })),
      )
    ).map(({ id }) => id);
    await fleet.until(async () => (await mulligan.stats()).states.running === 10);
    // In the last one, calls that wait for the lock fail.
    for (const ms of [2_000, 2_000, 11_000]) {
      await holdLock(path, ms);
      await sleep(500);
    }
    await fleet.allEnded();
    const { totals, states } = await mulligan.stats();
    expect(totals.runs).toMatchObject({ completed: 10, crashed: 0 });
    expect(states.dead).toBe(0);
    await checkLedgers(mulligan, { acknowledged });

    const [{ id } = { id: '' }] = await mulligan.enqueueMany(waitsForStop, [{ input: null }]);
    await fleet.until(async () => (await mulligan.stats()).states.running === 1);
    const { worker } = (await mulligan.jobs.get(id)) as { worker: string };
    const holder = crew.find(({ child }) => worker.includes(String(child.pid)));
    await (holder as (typeof crew)[number]).kill();
    await fleet.allEnded();
    expect(await mulligan.jobs.runs(id)).toMatchObject([{ outcome: 'crashed' }, { outcome: 'completed' }]);
  });
});

describe('a process that dies in the middle of writing the index of the log', () => {
  it('leaves it to be rebuilt by the next process that opens the file, and processes that watch meanwhile go on', async () => {
    await using fleet = await Fleet.open();
    const { mulligan, path } = fleet;
    // A long log takes a while to read, and until then no other process may read.
    const padding = Array(600).fill({ padding: 'x'.repeat(20_000) });
    await mulligan.enqueueMany<object>(
      'waits',
      padding.map((input) => ({ input })),
      { queue: 'later' },
    );
    const watching = await fleet.start({ concurrency: 10 });
    const index = openSync(`${path}-shm`, 'r+');
    for (let n = 0; n < 150; n++) {
      writeSync(index, Buffer.alloc(96), 0, 96, 0);
      expect((await mulligan.stats()).states.ready).toBe(600);
    }
    closeSync(index);
    const { id } = await mulligan.enqueue(quick, { n: 1 });
    await watching.heard(({ completed }) => completed?.id === id);
    expectSoundFile(path);
  });
});
