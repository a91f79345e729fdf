import { describe, expect, inject, it } from 'vitest';
import { defineJob, Mulligan } from '../../src/index.ts';
import { TestDatabase } from '../support/postgres-database.ts';

const server = inject('postgresUrl');
const JOBS = 20;
const LEASE_MS = 2_000;

describe('a lock that another session holds for longer than a lease', () => {
  it('costs no lease: workers that could not renew are not taken for dead', async () => {
    await using database = await TestDatabase.create(server);
    const gate = Promise.withResolvers<void>();
    const job = defineJob<null>({ name: 'held', retry: { maxAttempts: 1 }, run: () => gate.promise });
    await using mulligan = await Mulligan.open(database.url, { jobs: [job], log: () => {} });
    // Other processes, which look for expired leases all the time.
    await using other = await Mulligan.open(database.url, { jobs: [job], log: () => {} });
    for (let n = 0; n < 5; n++) other.work({ queues: ['nothing'], lease: '1s', poll: '50ms' });
    const worker = mulligan.work({ concurrency: JOBS, lease: LEASE_MS });
    await other.enqueueMany(
      job,
      Array(JOBS)
        .fill(null)
        .map((input) => ({ input })),
    );
    await expect.poll(() => worker.running).toBe(JOBS);

    const locker = await database.connect();
    await locker.query('BEGIN; LOCK TABLE mulligan.live IN ACCESS EXCLUSIVE MODE');
    const until = await lastLeaseEnd(locker);
    await expect.poll(async () => (await storeNow(locker)) > until + LEASE_MS, { timeout: 30_000 }).toBe(true);
    await locker.end();
    // All have renewed again, and were looked for meanwhile.
    const renewedUntil = (await storeNow(database)) + 2 * LEASE_MS;
    const first = 'SELECT min(lease_ends_at)::float8 AS at FROM mulligan.live WHERE worker IS NOT NULL';
    await expect.poll(async () => (await one(database, first)) > renewedUntil, { timeout: 30_000 }).toBe(true);
    gate.resolve();
    await worker.whenIdle();
    expect((await mulligan.stats()).totals.runs).toMatchObject({ completed: JOBS, crashed: 0 });
  });
});

interface Queries {
  query?(text: string): Promise<{ rows: unknown[] }>;
  sql?(text: string): Promise<unknown[]>;
}

async function one(on: Queries, text: string): Promise<number> {
  const rows = on.sql === undefined ? ((await on.query?.(text))?.rows ?? []) : await on.sql(text);
  return (rows[0] as { at: number }).at;
}

function storeNow(on: Queries): Promise<number> {
  return one(on, 'SELECT mulligan.now_ms()::float8 AS at');
}

/** The session that holds the lock can still read. */
function lastLeaseEnd(on: Queries): Promise<number> {
  return one(on, 'SELECT max(lease_ends_at)::float8 AS at FROM mulligan.live');
}
