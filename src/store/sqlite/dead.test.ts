import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { bury, claim, die, newJob, settlement } from '../conformance/builders.ts';
import type { NewJob } from '../store.ts';
import { SqliteStore } from './store.ts';

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

describe('a dry run of a redrive', () => {
  it('does not need the lock of the file', () =>
    withStore(async (store, path) => {
      const id = await bury(store);
      using program = new DatabaseSync(path);
      program.exec('BEGIN IMMEDIATE');
      const answer = await store.redrive({ name: 'email.send', attempts: 'reset', dryRun: true });
      expect(answer).toEqual({ ids: [id], skipped: [] });
    }));

  it('of more jobs than it reads at a time tells what the redrive then does', () =>
    withStore(async (store) => {
      const COUNT = 4_500;
      const keyOf = (index: number): Partial<NewJob> => (index % 1_500 === 0 ? { key: 'shared' } : {});
      const jobs = Array.from({ length: COUNT }, (_, index) => newJob(keyOf(index)));
      for (const job of jobs.filter(({ key }) => key !== null)) {
        // Each holds the key only while it lives.
        await store.enqueue([job]);
        const [started] = (await claim(store)).jobs;
        await store.settle([settlement(started as NonNullable<typeof started>, die())]);
      }
      await store.enqueue(jobs.filter(({ key }) => key === null));
      const started = (await claim(store, { limit: COUNT })).jobs;
      await store.settle(started.map((job) => settlement(job, die())));
      const request = { name: 'email.send', attempts: 'reset' } as const;
      const planned = await store.redrive({ ...request, dryRun: true });
      expect([planned.ids.length, planned.skipped.length]).toEqual([COUNT - 2, 2]);
      const limited = await store.redrive({ ...request, limit: 3_000, dryRun: true });
      expect(limited.ids).toEqual(planned.ids.slice(0, 2_998));
      expect(await store.redrive({ ...request, dryRun: false })).toEqual(planned);
    }));
});
