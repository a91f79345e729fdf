import { describe, expect, inject, it } from 'vitest';
import { Mulligan } from '../../src/index.ts';
import { jobs, quick } from '../processes/jobs.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { checkLedgers } from './ledger-check.ts';

const server = inject('postgresUrl');
const quiet = { jobs, log: () => {} };
const LISTENS = `query LIKE 'LISTEN%'`;

/** Two stores, as two processes would have: one enqueues, the other works. */
async function open(database: TestDatabase): Promise<{ sender: Mulligan; receiver: Mulligan }> {
  return { sender: await Mulligan.open(database.url, quiet), receiver: await Mulligan.open(database.url, quiet) };
}

async function ended(mulligan: Mulligan, id: string): Promise<void> {
  await expect.poll(async () => (await mulligan.jobs.get(id))?.state, { timeout: 60_000 }).toBe('completed');
}

async function listens(database: TestDatabase, pidsBefore: readonly number[] = []): Promise<number[]> {
  const sql = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND ${LISTENS} AND state = 'idle'`;
  const find = async (): Promise<number[]> =>
    ((await database.sql(sql)) as { pid: number }[]).map(({ pid }) => pid).filter((pid) => !pidsBefore.includes(pid));
  await expect.poll(find, { timeout: 60_000 }).toHaveLength(1);
  return find();
}

describe('the connection that hears of new work', () => {
  it('is replaced when the server has ended it: wake-ups work again', async () => {
    await using database = await TestDatabase.create(server);
    const { sender, receiver } = await open(database);
    await using _sender = sender;
    await using _receiver = receiver;
    // Only a wake-up makes it claim.
    receiver.work({ poll: '1h' });
    const acknowledged: string[] = [];
    let pids: number[] = [];
    for (let kill = 0; kill < 3; kill++) {
      pids = await listens(database, pids);
      const { id } = await sender.enqueue(quick, { n: kill });
      acknowledged.push(id);
      await ended(sender, id);
      expect(await database.terminate(LISTENS)).toBe(1);
    }
    // Work that came while it did not listen is claimed when it listens again.
    acknowledged.push((await sender.enqueue(quick, { n: 9 })).id);
    await ended(sender, acknowledged.at(-1) as string);
    await checkLedgers(sender, { acknowledged });
  });

  it('is not needed: while it cannot be made, polling finds the work', async () => {
    await using database = await TestDatabase.create(server);
    await using proxy = await TcpProxy.open(database.port);
    // Every connection that would hear of new work is cut before it does.
    proxy.mishap = (statement) => (statement.startsWith('LISTEN') ? 'lose the request' : null);
    await using sender = await Mulligan.open(database.url, quiet);
    await using receiver = await Mulligan.open(proxy.through(database.url), quiet);
    receiver.work({ poll: '50ms' });
    const acknowledged: string[] = [];
    for (let n = 0; n < 20; n++) {
      const { id } = await sender.enqueue(quick, { n });
      acknowledged.push(id);
      await ended(sender, id);
    }
    await expect.poll(() => proxy.happened['lose the request'], { timeout: 60_000 }).toBeGreaterThan(1);
    await checkLedgers(sender, { acknowledged });
  });
});
