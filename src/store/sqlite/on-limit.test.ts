import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { withStore } from '../../../test/support/sqlite-file.ts';
import { claimRequest, complete, HOUR, newJob, only, pruneWith, settleOne, startOne } from '../conformance/builders.ts';
import type { NewJob } from '../store.ts';
import { enqueueTables } from './enqueue-tables.ts';

/* What an enqueue asks beside the jobs is kept for as long as it says something. */

const [SHOP, TENANT] = [
  { limit: 'shop', key: 'a' },
  { limit: 'tenant', key: 't' },
] as const;
const KEEP_ALL = { completedMs: null, deadMs: null, cancelledMs: null };
const behindBoth = (): NewJob => newJob({ limits: [SHOP, TENANT] });

function rows(path: string, sql: string): unknown[] {
  using db = new DatabaseSync(path, { readOnly: true });
  return db.prepare(sql).all();
}

describe('pruning', () => {
  it('deletes a throttled key when its window is over, and not with its job', () =>
    withStore(async ({ store, path, clock }) => {
      const windows = (): number => rows(path, 'SELECT 1 FROM key_windows').length;
      await settleOne(store, await startOne(store, { key: 'k', keyLife: 'window', windowMs: HOUR }), complete);
      await clock.advance(HOUR / 2);
      expect((await pruneWith(store, { ...KEEP_ALL, completedMs: 1 }, 10)).jobs).toBe(1);
      expect(windows()).toBe(1);
      await clock.advance(HOUR / 2);
      await pruneWith(store, KEEP_ALL, 10);
      expect(windows()).toBe(0);
    }));

  it('deletes lists of limits behind which no job waits', () =>
    withStore(async ({ store, path }) => {
      const lists = (): unknown[] => rows(path, 'SELECT name FROM limit_lists ORDER BY name');
      await store.enqueue([behindBoth(), newJob({ limits: [SHOP] })]);
      await pruneWith(store, KEEP_ALL, 10);
      expect(lists()).toEqual([{ name: 'shop' }, { name: 'tenant' }]);
      const { jobs } = await store.claimLimited(claimRequest());
      await pruneWith(store, KEEP_ALL, 10);
      expect([jobs.length, lists()]).toEqual([2, []]);
    }));
});

it('the migration lists the limits of jobs that wait already', () =>
  withStore(async ({ store, path }) => {
    await store.enqueue([behindBoth()]);
    await store.writeLimits([
      { limit: 'shop', key: null, source: 'code', settings: { concurrency: 1, total: null, rate: null } },
    ]);
    {
      using db = new DatabaseSync(path);
      db.exec('DROP TABLE key_windows; DROP TABLE limit_lists;');
      db.exec(enqueueTables);
    }
    const refused = newJob({ limits: [SHOP], onLimit: [{ ...SHOP, action: 'cancel-newest' }] });
    expect(only(await store.enqueue([refused])).existed).toBe(true);
  }));
