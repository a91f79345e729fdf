import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { idsOf, newJob, newJobs } from '../conformance/builders.ts';
import { PART_BYTES } from './parts.ts';
import { SqliteStore } from './store.ts';

describe('an enqueue of more bytes than one message carries', () => {
  const large = JSON.stringify('x'.repeat(PART_BYTES / 3));

  async function withStore(test: (store: SqliteStore, path: string) => Promise<void>): Promise<void> {
    const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
    const path = join(folder, 'jobs.db');
    const store = await SqliteStore.open({ path });
    try {
      await test(store, path);
    } finally {
      await store.close();
      rmSync(folder, { recursive: true });
    }
  }

  it('answers each job in its place', () =>
    withStore(async (store) => {
      const holder = newJob({ key: 'k' });
      await store.enqueue([holder]);
      const jobs = [...newJobs(4, { payload: large }), newJob({ key: 'k', payload: large }), ...newJobs(4)];
      expect(await store.enqueue(jobs)).toEqual(
        jobs.map(({ id, key }) => (key === 'k' ? { id: holder.id, existed: true } : { id, existed: false })),
      );
      expect(await store.list({ limit: 20 })).toHaveLength(9);
    }));

  it('is sent to its end when the store is closed meanwhile', () =>
    withStore(async (store, path) => {
      const jobs = newJobs(9, { payload: large });
      const enqueued = store.enqueue(jobs);
      await store.close();
      expect(idsOf(await enqueued)).toEqual(idsOf(jobs));
      const again = await SqliteStore.open({ path });
      expect(await again.count({})).toMatchObject({ count: 9 });
      await again.close();
    }));

  it('may come as many calls of one moment', () =>
    withStore(async (store) => {
      const jobs = newJobs(12, { payload: large });
      await Promise.all(jobs.map((job) => store.enqueue([job])));
      expect(await store.count({})).toMatchObject({ count: 12 });
    }));
});
