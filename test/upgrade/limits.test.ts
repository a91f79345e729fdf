import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  claim,
  claimRequest,
  complete,
  crash,
  die,
  LEASE,
  MINUTE,
  newJob,
  newJobs,
  only,
  pruneWith,
  retryIn,
  settleOne,
} from '../../src/store/conformance/builders.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { expectSoundFile } from '../support/sound-file.ts';
import { EARLIER, EarlierVersion } from './earlier-version.ts';

describe('a version without limits on a SQLite file with limits', () => {
  it('claims no limited job, and what it does to one is put right when a newer process prunes', async ({ skip }) => {
    using earlier = EarlierVersion.checkOut(EARLIER);
    if (earlier === null) return skip('this is no clone with the earlier version');
    const { SqliteStore: EarlierStore } = (await import(`${earlier.root}/src/store/sqlite/store.ts`)) as {
      SqliteStore: typeof SqliteStore;
    };
    const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
    const path = join(folder, 'jobs.db');
    const clock = new VirtualClock();
    const store = await SqliteStore.open({ path, inline: clock });
    const older = await EarlierStore.open({ path, inline: clock });
    /** Time passes meanwhile: of two processes that write, each leaves the other a gap. */
    const soon = async <T>(answer: Promise<T>): Promise<T> => (await Promise.all([answer, clock.advance(1_000)]))[0];
    const limits = [{ limit: 'shop', key: 'a' }];
    const settings = { concurrency: 2, total: null, rate: null };
    await soon(store.writeLimits([{ limit: 'shop', key: null, source: 'code', settings }]));
    await soon(store.enqueue([...newJobs(6, { limits }), newJob({ queue: 'default', name: 'plain' })]));

    const plain = only((await soon(claim(older))).jobs);
    expect(plain.name).toBe('plain');
    await soon(settleOne(older, plain, complete));
    expect((await soon(claim(older))).jobs).toEqual([]);

    // Its rescue of crashed runs knows nothing of their places.
    expect((await soon(store.claimLimited(claimRequest()))).jobs).toHaveLength(2);
    await clock.advance(LEASE + MINUTE);
    const expired = await soon(older.expired(10));
    const settled = expired.map((job, index) => crash(job, index === 0 ? retryIn(0) : die()));
    expect(await soon(older.settle(settled))).toEqual(['settled', 'settled']);
    expect((await soon(store.claimLimited(claimRequest()))).jobs).toEqual([]);
    await soon(pruneWith(store, { completedMs: null, deadMs: null, cancelledMs: null }, 10));
    expect((await soon(claim(older))).jobs).toEqual([]);
    expect((await soon(store.claimLimited(claimRequest()))).jobs).toHaveLength(2);

    await older.close();
    await store.close();
    expectSoundFile(path);
    rmSync(folder, { recursive: true });
  });
});
