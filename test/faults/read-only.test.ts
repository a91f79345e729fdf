import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Mulligan, StoreUnavailableError } from '../../src/index.ts';
import { Fleet } from '../processes/fleet.ts';
import { quick, short } from '../processes/jobs.ts';
import { expectSoundFile } from '../support/sound-file.ts';
import { checkLedgers } from './ledger-check.ts';
import { noSmallDisk, SmallDisk } from './small-disk.ts';

/** Files that no process may change, not even root or one that has them open: `chattr +i`. */
class Frozen implements Disposable {
  readonly #files: readonly string[];

  constructor(...files: string[]) {
    this.#files = files;
    execFileSync('chattr', ['+i', ...files], { stdio: 'pipe' });
  }

  [Symbol.dispose](): void {
    execFileSync('chattr', ['-i', ...this.#files], { stdio: 'pipe' });
  }
}

/** Why no file can be frozen here under those who write it; null when one can. */
function noFreezing(): string | null {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
  const path = join(folder, 'probe');
  const file = openSync(path, 'w');
  try {
    using _frozen = new Frozen(path);
    writeSync(file, 'x');
    return 'on this file system, chattr +i does not stop those who have the file open';
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'EPERM' && message.includes('write') ? null : `chattr +i does not work here: ${message.trim()}`;
  } finally {
    closeSync(file);
    rmSync(folder, { recursive: true });
  }
}

const cannotFreeze = noFreezing();
if (cannotFreeze !== null) console.warn(`skipped, a file that turns read-only under way: ${cannotFreeze}`);
const cannotMount = noSmallDisk();
if (cannotMount !== null) console.warn(`skipped, a read-only disk: ${cannotMount}`);

describe.skipIf(cannotFreeze !== null)('a file that turns read-only under way', () => {
  it('is reported, harms nothing, and is used again once it can be written', async () => {
    await using fleet = await Fleet.open();
    const { mulligan, path, url } = fleet;
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
    {
      using _frozen = new Frozen(path, `${path}-wal`);
      const refusal = await mulligan.enqueue(quick, { n: 1 }).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(StoreUnavailableError);
      expect(refusal).toHaveProperty('message', expect.stringContaining('read-only'));
      await expect(Mulligan.open(url)).rejects.toThrow('expected a file that can be written, but it is read-only');
      await worker.heard(({ log }) => log?.message.startsWith('the store does not answer') === true);
      expect((await mulligan.stats()).states.completed).toBeLessThan(400);
    }
    acknowledged.push((await mulligan.enqueue(quick, { n: 2 })).id);
    await fleet.allEnded();
    await checkLedgers(mulligan, { acknowledged });
    const { totals } = await mulligan.stats();
    expect(totals.runs).toMatchObject({ completed: 401, failed: 0, crashed: 0, released: 0 });
    expectSoundFile(path);
  });
});

describe.skipIf(cannotMount !== null)('a read-only disk', () => {
  it('is reported when the queue is opened, and opens once it can be written', async () => {
    using disk = new SmallDisk(4);
    const url = `sqlite:${join(disk.folder, 'jobs.db')}`;
    const first = await Mulligan.open(url);
    const { id } = await first.enqueue(quick, { n: 1 });
    await first.close();
    disk.remount('ro');
    const refusal = await Mulligan.open(url).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal).toHaveProperty('message', expect.stringContaining('read-only'));
    disk.remount('rw');
    await using fleet = await Fleet.open(disk.folder);
    await fleet.start({ concurrency: 1 });
    await fleet.allEnded();
    await checkLedgers(fleet.mulligan, { acknowledged: [id] });
  });
});
