import pg from 'pg';
import { describe, expect, inject, it } from 'vitest';
import { defineJob, Mulligan } from '../../src/index.ts';
import { failsTwice, jobs, quick, snoozes } from '../processes/jobs.ts';
import { findPgBouncer, PgBouncer } from '../support/pgbouncer.ts';
import { expectSoundTables, TestDatabase } from '../support/postgres-database.ts';
import { runSql } from '../support/postgres-schema.ts';
import { Effects } from './effects.ts';
import { checkLedgers } from './ledger-check.ts';

const server = inject('postgresUrl');
const missing = findPgBouncer() === null;
if (missing) console.warn('skipped, a pooler in transaction mode: there is no pgbouncer in the PATH or in /usr/sbin');
const ignored = 'statement_timeout, lock_timeout, idle_in_transaction_session_timeout';

const until = defineJob<null>({
  name: 'until',
  run: (_, { signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    }),
});

describe.skipIf(missing).each([
  ['refuses', {}],
  ['ignores', { ignore_startup_parameters: ignored }],
])('behind a pooler in transaction mode that %s settings', (_, settings) => {
  it('everything works by polling, and no connection keeps anything of it', async () => {
    await using database = await TestDatabase.create(server);
    await using bouncer = await PgBouncer.start(database.url, settings as Record<string, string>);
    const options = { jobs: [...jobs, until], log: () => {} };
    {
      await using sender = await Mulligan.open(bouncer.url, options);
      await using receiver = await Mulligan.open(bouncer.url, options);
      const effects = await Effects.open(database.url, sender);
      receiver.work({ concurrency: 10, poll: '50ms', lease: '3s' });
      const acknowledged = (
        await sender.enqueueMany(
          quick,
          Array(200)
            .fill({ n: 1 })
            .map((input) => ({ input })),
        )
      ).map(({ id }) => id);
      for (let n = 0; n < 5; n++) {
        acknowledged.push((await sender.enqueue(failsTwice, null)).id, (await sender.enqueue(snoozes, { ms: 20 })).id);
      }
      await effects.enqueue(10, 10);
      acknowledged.push(await enqueueInTransaction(bouncer.url, sender));
      const { id } = await sender.enqueue(until, null);
      await expect.poll(async () => (await sender.jobs.get(id))?.state, { timeout: 30_000 }).toBe('running');
      await sender.jobs.cancel(id);
      await expect
        .poll(
          async () => {
            const { states } = await sender.stats();
            return states.ready + states.running + states.scheduled + states.retrying;
          },
          { timeout: 60_000 },
        )
        .toBe(0);
      expect(await sender.jobs.get(id)).toMatchObject({ state: 'cancelled' });
      await effects.expectOnceEach();
      await checkLedgers(sender, { acknowledged });
      await expectNothingKept(bouncer.url);
    }
    await expectSoundTables(database.url);
  });
});

describe.skipIf(missing)('behind a pooler in transaction mode whose sessions look like ours', () => {
  it('statements that were prepared in another session are sent as they are', async () => {
    await using database = await TestDatabase.create(server);
    const { pathname } = new URL(database.url);
    const name = `"${pathname.slice(1)}"`;
    await runSql(database.url, `ALTER DATABASE ${name} SET idle_in_transaction_session_timeout = 60000`);
    await using bouncer = await PgBouncer.start(database.url, { ignore_startup_parameters: ignored });
    const options = { jobs: [...jobs], log: () => {} };
    await using sender = await Mulligan.open(bouncer.url, options);
    await using receiver = await Mulligan.open(bouncer.url, options);
    receiver.work({ concurrency: 10, poll: '50ms', lease: '3s' });
    const one = (): Promise<{ readonly id: string }> => sender.enqueue(quick, { n: 1 });
    const acknowledged: string[] = [];
    for (let round = 0; round < 20; round++) {
      acknowledged.push(...(await Promise.all([one(), one(), sender.enqueue(failsTwice, null)])).map(({ id }) => id));
    }
    await expect.poll(async () => (await sender.stats()).states.completed, { timeout: 60_000 }).toBe(60);
    await checkLedgers(sender, { acknowledged });
  });
});

async function enqueueInTransaction(url: string, mulligan: Mulligan): Promise<string> {
  const tx = new pg.Client({ connectionString: url });
  await tx.connect();
  await tx.query('BEGIN');
  const { id } = await mulligan.enqueue(quick, { n: 2 }, { tx });
  await tx.query('COMMIT');
  await tx.end();
  return id;
}

const KEPT = `
  SELECT pg_backend_pid() AS pid, current_setting('search_path') AS path, current_setting('statement_timeout') AS statements,
    (SELECT count(*)::int FROM pg_listening_channels()) AS channels,
    (SELECT count(*)::int FROM pg_prepared_statements) AS prepared,
    (SELECT count(*)::int FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory') AS locks,
    (SELECT count(*)::int FROM pg_class WHERE relpersistence = 't') AS temporary`;

/** Each of the pooler's connections to the server is as it was when it was made. */
async function expectNothingKept(url: string): Promise<void> {
  const seen = new Set<number>();
  const clients = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query('BEGIN');
      return client;
    }),
  );
  for (const client of clients) {
    const { pid, ...kept } = (await client.query(KEPT)).rows[0];
    seen.add(pid);
    expect(kept).toEqual({
      path: '"$user", public',
      statements: '0',
      channels: 0,
      prepared: 0,
      locks: 0,
      temporary: 0,
    });
  }
  for (const client of clients) await client.end();
  expect(seen.size).toBe(3);
}
