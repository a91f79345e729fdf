import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { claim, complete, enqueueOne, newJob, quota, settlement } from '../conformance/builders.ts';
import type { ClaimedJob } from '../store.ts';
import { migrate } from './schema.ts';
import { SqliteStore } from './store.ts';

class Folder implements Disposable {
  readonly path: string = mkdtempSync(join(tmpdir(), 'mulligan-'));
  readonly file: string = join(this.path, 'jobs.db');

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true });
  }
}

/** Another program drops all tables and makes them again, as a restore does that goes through SQLite. */
function replaceTables(path: string): void {
  using db = new DatabaseSync(path, { timeout: 5_000 });
  db.exec('BEGIN IMMEDIATE');
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all();
  for (const { name } of tables as { name: string }[]) db.exec(`DROP TABLE "${name}"`);
  db.exec('PRAGMA user_version = 0');
  migrate(db);
  db.exec('COMMIT');
}

describe('tables that are replaced under a live process', () => {
  it('hold the jobs of each queue under their own queue and name', async () => {
    using folder = new Folder();
    const store = await SqliteStore.open({ path: folder.file });
    await enqueueOne(store, { queue: 'tenant-a', name: 'a' });
    await enqueueOne(store, { queue: 'tenant-b', name: 'b' });
    expect(await store.stats()).toMatchObject({ rows: [{ queue: 'tenant-a' }, { queue: 'tenant-b' }] });

    replaceTables(folder.file);
    // Another process takes the numbers in another order.
    const other = await SqliteStore.open({ path: folder.file });
    const idOfB = await enqueueOne(other, { queue: 'tenant-b', name: 'b' });
    await other.close();
    const idOfA = await enqueueOne(store, { queue: 'tenant-a', name: 'a' });

    for (const [queue, id] of [
      ['tenant-a', idOfA],
      ['tenant-b', idOfB],
    ] as const) {
      const { jobs } = await claim(store, { queues: [quota({ queue })] });
      expect(jobs).toMatchObject([{ id, queue, name: queue === 'tenant-a' ? 'a' : 'b' }]);
      expect(await store.settle(jobs.map((job) => settlement(job, complete)))).toEqual(['settled']);
    }
    const { rows } = await store.stats();
    expect(rows.map(({ queue, name }) => [queue, name]).sort()).toEqual([
      ['tenant-a', 'a'],
      ['tenant-b', 'b'],
    ]);
    await store.close();
  });

  it('do not take a settlement of before for a job of now', async () => {
    using folder = new Folder();
    const store = await SqliteStore.open({ path: folder.file });
    await enqueueOne(store);
    const [before] = (await claim(store)).jobs as [ClaimedJob];
    replaceTables(folder.file);
    const now = newJob();
    await store.enqueue([now]);
    expect((await claim(store)).jobs).toMatchObject([{ id: now.id }]);
    expect(await store.settle([settlement(before, complete)])).toEqual(['stale']);
    expect(await store.get([now.id])).toMatchObject([{ state: 'running' }]);
    await store.close();
  });
});
