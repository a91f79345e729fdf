import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Mulligan, StoreUnavailableError } from '../../src/index.ts';
import { Fleet, type WorkerProcess } from '../processes/fleet.ts';
import { quick, short } from '../processes/jobs.ts';
import { expectSoundFile } from '../support/sound-file.ts';
import { checkLedgers } from './ledger-check.ts';

/*
 * SQLite does not mind when its file is deleted or replaced: a process that has it open goes on with the old one. Without a
 * check of our own, everything that is acknowledged from then on would be lost without a word.
 */

const inTrouble = ({ log }: { log?: { message: string } }): boolean =>
  log?.message.startsWith('the store does not answer') === true;

async function expectRefused(call: Promise<unknown>, why: string): Promise<void> {
  const refusal = await call.catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(StoreUnavailableError);
  expect(refusal).toHaveProperty('message', expect.stringContaining(why));
}

/** It noticed, it lives, and it can still be stopped in an orderly way. */
async function expectOrderlyEnd(worker: WorkerProcess): Promise<void> {
  await worker.heard(inTrouble);
  expect(worker.child.exitCode).toBe(null);
  await worker.stop('0s');
  expect(worker.child).toMatchObject({ exitCode: 0, signalCode: null });
  expect(worker.stderr()).toBe('');
}

describe('a file that is deleted under way', () => {
  it('is reported by every process that has it open: nothing more is acknowledged, no process dies, none creates it again', async () => {
    await using fleet = await Fleet.open();
    const { mulligan, path } = fleet;
    await mulligan.enqueueMany(
      short,
      Array(200)
        .fill({ ms: 50 })
        .map((input) => ({ input })),
    );
    const worker = await fleet.start({ concurrency: 10, lease: '1s' });
    await fleet.until(async () => (await mulligan.stats()).states.completed >= 20);
    rmSync(path);
    await expectRefused(mulligan.enqueue(quick, { n: 1 }), `${path} was deleted or moved while in use`);
    await expectRefused(mulligan.stats(), 'deleted or moved');
    await expectOrderlyEnd(worker);
    await mulligan.close();
    expect(existsSync(path)).toBe(false);
  });

  it('is reported also by a client that had not read from it yet, and read once it is back', async () => {
    await using fleet = await Fleet.open();
    const { mulligan, path } = fleet;
    const { id } = await mulligan.enqueue(quick, { n: 1 });
    renameSync(path, `${path}.away`);
    await expectRefused(mulligan.stats(), 'deleted or moved');
    expect(existsSync(path)).toBe(false);
    renameSync(`${path}.away`, path);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'ready' });
  });

  it('takes its write-ahead log along: without that one it is reported just the same', async () => {
    await using fleet = await Fleet.open();
    const { mulligan, path } = fleet;
    await mulligan.enqueue(quick, { n: 1 });
    rmSync(`${path}-wal`);
    await expectRefused(mulligan.enqueue(quick, { n: 2 }), `${path}-wal was deleted or moved while in use`);
  });
});

describe('a file that is moved away and back', () => {
  it('is refused while it is away, and then everything goes on', async () => {
    await using fleet = await Fleet.open();
    const { mulligan, path } = fleet;
    const acknowledged = (
      await mulligan.enqueueMany(
        short,
        Array(400)
          .fill({ ms: 50 })
          .map((input) => ({ input })),
      )
    ).map(({ id }) => id);
    const worker = await fleet.start({ concurrency: 10, lease: '60s' });
    await fleet.until(async () => (await mulligan.stats()).states.completed >= 20);
    renameSync(path, `${path}.away`);
    await expectRefused(mulligan.enqueue(quick, { n: 1 }), 'deleted or moved');
    await worker.heard(inTrouble);
    renameSync(`${path}.away`, path);
    await fleet.allEnded();
    await checkLedgers(mulligan, { acknowledged });
    expect((await mulligan.stats()).totals.runs).toMatchObject({ completed: 400, crashed: 0 });
    expectSoundFile(path);
  });
});

describe('a file that is replaced under way', () => {
  it('is left alone by those who had the old one open, and belongs to those who open it now', async () => {
    await using fleet = await Fleet.open();
    const { mulligan, path, url } = fleet;
    await mulligan.enqueueMany(
      short,
      Array(200)
        .fill({ ms: 50 })
        .map((input) => ({ input })),
    );
    const worker = await fleet.start({ concurrency: 10, lease: '1s' });
    const backup = await Mulligan.open(`${url}.backup`);
    const { id } = await backup.enqueue(quick, { n: 7 });
    await backup.close();
    renameSync(`${path}.backup`, path);

    await expectRefused(mulligan.enqueue(quick, { n: 1 }), `${path} was replaced while in use`);
    await expectOrderlyEnd(worker);
    await mulligan.close();
    for (const part of ['-wal', '-shm']) rmSync(`${path}${part}`, { force: true });
    await using now = await Mulligan.open(url);
    expect(await now.jobs.list()).toMatchObject([{ id, state: 'ready', payload: { n: 7 } }]);
    expectSoundFile(path);
  });
});

describe('a path that is relative', () => {
  it('means the same file when the process changes its folder', async () => {
    const folders = [0, 1].map(() => mkdtempSync(join(tmpdir(), 'mulligan-'))) as [string, string];
    const before = process.cwd();
    try {
      process.chdir(folders[0]);
      await using mulligan = await Mulligan.open('sqlite:jobs.db');
      const { id } = await mulligan.enqueue(quick, { n: 1 });
      process.chdir(folders[1]);
      expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'ready' });
      expect(readdirSync(folders[1])).toEqual([]);
    } finally {
      process.chdir(before);
      for (const folder of folders) rmSync(folder, { recursive: true });
    }
  });
});
