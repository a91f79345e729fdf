import { describe, expect, it } from 'vitest';
import { Mulligan, StoreUnavailableError } from '../../src/index.ts';
import { Fleet } from '../processes/fleet.ts';
import { quick, short } from '../processes/jobs.ts';
import { expectSoundFile } from '../support/sound-file.ts';
import { checkLedgers } from './ledger-check.ts';
import { noSmallDisk, SmallDisk } from './small-disk.ts';

const skipped = noSmallDisk();
if (skipped !== null) console.warn(`skipped, tests of a full disk: ${skipped}`);
/** The write-ahead log grows to 16 MB before it is folded into the file; it has to fit beside it. */
const DISK_MB = 64;

const inTrouble = ({ log }: { log?: { message: string } }): boolean =>
  log?.message.startsWith('the store does not answer') === true;

describe.skipIf(skipped !== null)('on a full disk', () => {
  it('enqueue says so, everything acknowledged is kept, and work goes on when there is room', async () => {
    using disk = new SmallDisk(DISK_MB);
    await using fleet = await Fleet.open(disk.folder);
    const { mulligan } = fleet;
    const acknowledged = [(await mulligan.enqueue(quick, { n: 0 })).id];
    disk.fill(4);

    const padding = 'x'.repeat(50_000);
    let refusal: unknown = null;
    while (refusal === null) {
      await mulligan.enqueue<object>('quick', { n: acknowledged.length, padding }).then(
        ({ id }) => acknowledged.push(id),
        (error: unknown) => {
          refusal = error;
        },
      );
    }
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal).toHaveProperty('message', expect.stringContaining('the disk is full; free some space'));
    expect(acknowledged.length).toBeGreaterThan(10);
    expect((await mulligan.stats()).states.ready).toBe(acknowledged.length);

    disk.makeRoom();
    acknowledged.push((await mulligan.enqueue(quick, { n: -1 })).id);
    await fleet.start({ concurrency: 10 });
    await fleet.allEnded();
    const { jobs } = await checkLedgers(mulligan, { acknowledged });
    expect(jobs.filter(({ state }) => state !== 'completed')).toEqual([]);
    expectSoundFile(fleet.path);
  });

  it('a worker keeps the outcomes of its runs until there is room, and runs nothing twice', async () => {
    using disk = new SmallDisk(DISK_MB);
    await using fleet = await Fleet.open(disk.folder);
    const { mulligan } = fleet;
    const acknowledged = (
      await mulligan.enqueueMany(
        short,
        Array(400)
          .fill({ ms: 50 })
          .map((input) => ({ input })),
      )
    ).map(({ id }) => id);
    const worker = await fleet.start({ concurrency: 10, lease: '60s' });
    await fleet.until(async () => (await mulligan.stats()).states.completed >= 50);
    disk.fill();
    await worker.heard(inTrouble);
    expect((await mulligan.stats()).states.completed).toBeLessThan(400);

    disk.makeRoom();
    await fleet.allEnded();
    await checkLedgers(mulligan, { acknowledged });
    const { totals } = await mulligan.stats();
    expect(totals.runs).toMatchObject({ completed: 400, failed: 0, crashed: 0, released: 0 });
    expectSoundFile(fleet.path);
  });

  it('a worker that is killed leaves nothing that cannot be recovered when there is room', async () => {
    using disk = new SmallDisk(DISK_MB);
    await using fleet = await Fleet.open(disk.folder);
    const { mulligan } = fleet;
    const acknowledged = (
      await mulligan.enqueueMany(
        short,
        Array(200)
          .fill({ ms: 50 })
          .map((input) => ({ input })),
      )
    ).map(({ id }) => id);
    const worker = await fleet.start({ concurrency: 10, lease: '1s' });
    await fleet.until(async () => (await mulligan.stats()).states.completed >= 20);
    disk.fill();
    await worker.heard(inTrouble);
    await worker.kill();

    disk.makeRoom();
    await fleet.start({ concurrency: 10, lease: '1s' });
    await fleet.allEnded();
    await checkLedgers(mulligan, { acknowledged });
    expect((await mulligan.stats()).states.completed).toBe(200);
    expectSoundFile(fleet.path);
  });

  it('a queue can be closed, cannot be opened for want of room, and is whole as soon as there is some', async () => {
    using disk = new SmallDisk(4);
    const url = `sqlite:${disk.folder}/jobs.db`;
    const first = await Mulligan.open(url);
    const { id } = await first.enqueue(quick, { n: 1 });
    disk.fill();
    await first.close();
    disk.makeRoom();
    const second = await Mulligan.open(url);
    expect(await second.jobs.get(id)).toMatchObject({ state: 'ready' });
    await second.close();

    disk.fill();
    const refusal = await Mulligan.open(url).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal).toHaveProperty('message', expect.stringMatching(/the disk is full|check that it has room/));
    disk.makeRoom();
    await using third = await Mulligan.open(url);
    expect(await third.jobs.get(id)).toMatchObject({ state: 'ready' });
  });
});
