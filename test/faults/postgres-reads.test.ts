import pg from 'pg';
import { describe, expect, inject, it } from 'vitest';
import { defineJob, Mulligan } from '../../src/index.ts';
import { PostgresStore } from '../../src/store/postgres/index.ts';
import { TestDatabase } from '../support/postgres-database.ts';

const server = inject('postgresUrl');
const JOBS = 20;
const READS = 40;
const LEASE_MS = 2_000;

describe('slow reads in the process of a worker', () => {
  it.each(['a pool of our own', 'a pool of the caller'])(
    'leave connections of %s to heartbeats: no healthy job is rescued',
    async (which) => {
      await using database = await TestDatabase.create(server);
      const pool = which === 'a pool of our own' ? null : new pg.Pool({ connectionString: database.url, max: 10 });
      const store = await PostgresStore.open(pool === null ? { url: database.url } : { pool });
      const gate = Promise.withResolvers<void>();
      const job = defineJob<null>({ name: 'held', retry: { maxAttempts: 1 }, run: () => gate.promise });
      const mulligan = await Mulligan.open(store, { jobs: [job], log: () => {} });
      // Another process, which looks for expired leases.
      const other = await Mulligan.open(database.url, { jobs: [job], log: () => {} });
      other.work({ queues: ['nothing'], lease: '1s' });
      const worker = mulligan.work({ concurrency: JOBS, lease: LEASE_MS });
      await other.enqueueMany(
        job,
        Array(JOBS)
          .fill(null)
          .map((input) => ({ input })),
      );
      await expect.poll(() => worker.running).toBe(JOBS);

      // A read of finished jobs waits for this lock. Heartbeats and claims do not touch that table.
      const locker = await database.connect();
      await locker.query('BEGIN; LOCK TABLE mulligan.finished IN ACCESS EXCLUSIVE MODE');
      const reads = Array.from({ length: READS }, () => mulligan.jobs.list({ state: 'dead' }).catch(() => null));
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      await expect.poll(async () => (await database.sql(waiting)).length, { timeout: 20_000 }).toBeGreaterThan(0);

      // All leases end later than three leases from now only if heartbeats go on all the time.
      const until = (await times(database)).now + 3 * LEASE_MS;
      await expect
        .poll(async () => (await times(database)).firstEnd > until, { timeout: 30_000, interval: 100 })
        .toBe(true);
      await locker.end();
      await Promise.all(reads);
      gate.resolve();
      await worker.whenIdle();
      expect((await mulligan.stats()).totals.runs).toMatchObject({ completed: JOBS, crashed: 0 });
      await mulligan.close();
      await other.close();
      await pool?.end();
    },
  );
});

async function times(database: TestDatabase): Promise<{ now: number; firstEnd: number }> {
  const [row] = await database.sql(
    `SELECT mulligan.now_ms()::float8 AS now, min(lease_ends_at)::float8 AS "firstEnd"
     FROM mulligan.live WHERE worker IS NOT NULL`,
  );
  return row as { now: number; firstEnd: number };
}
