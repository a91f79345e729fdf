import { describe, expect, inject, it } from 'vitest';
import { Fleet, type WorkerProcess } from '../processes/fleet.ts';
import { quick, short } from '../processes/jobs.ts';
import { expectSoundTables, TestDatabase } from '../support/postgres-database.ts';
import { chance } from './chance.ts';
import { expectGoodBooks } from './good-books.ts';
import { Load } from './load.ts';

const server = inject('postgresUrl');
const MINUTE_MS = 60_000;
const LEASE_MS = 2_000;

describe('workers on PostgreSQL whose clocks are wrong by minutes', () => {
  it('keep their leases, start nothing too soon and write the ledger in the time of the store', async () => {
    const luck = chance();
    await using database = await TestDatabase.create(server);
    await using fleet = await Fleet.at(database.url);
    const { mulligan } = fleet;
    const skewed = (minutes: number): Promise<WorkerProcess> => {
      const clock = new URL(`../support/skewed-clock.ts?ms=${minutes * MINUTE_MS}`, import.meta.url);
      return fleet.start({ concurrency: 10, lease: LEASE_MS, poll: '50ms' }, { execArgv: [`--import=${clock}`] });
    };
    const crew = await Promise.all([skewed(-7), skewed(0), skewed(7)]);
    const from = await storeNow(database);
    const later = await mulligan.enqueueMany(
      quick,
      Array(30)
        .fill({ n: 1 })
        .map((input) => ({ input })),
      { delay: '1500ms' },
    );
    // They outlast their leases, so that each worker has to renew some.
    const long = await mulligan.enqueueMany(
      short,
      Array(15)
        .fill({ ms: 2 * LEASE_MS })
        .map((input) => ({ input })),
    );
    const load = new Load(mulligan, luck, 2);
    await fleet.until(async () => load.acknowledged.length >= 300);
    await load.stop();
    await fleet.allEnded();
    const until = await storeNow(database);

    const acknowledged = [...load.acknowledged, ...[...later, ...long].map(({ id }) => id)];
    const { jobs, ledgers, stats } = await expectGoodBooks(mulligan, { acknowledged, hardy: load.hardy }, crew);
    expect(stats.totals.runs.crashed).toBe(0);
    expect(crew.flatMap(({ messages }) => messages.filter(({ leaseLost }) => leaseLost))).toEqual([]);
    const rows = [...ledgers.values()].flat();
    expect(new Set(rows.map(({ worker }) => worker)).size).toBe(3);
    for (const { startedAt, endedAt } of rows) {
      expect(startedAt).toBeGreaterThanOrEqual(from);
      expect(endedAt).toBeLessThanOrEqual(until);
    }
    for (const { enqueuedAt, finishedAt } of jobs) {
      expect(enqueuedAt).toBeGreaterThanOrEqual(from);
      expect(finishedAt).toBeLessThanOrEqual(until);
    }
    for (const { id } of later) {
      const [first] = ledgers.get(id) ?? [];
      const job = jobs.find((one) => one.id === id);
      expect(first?.startedAt).toBeGreaterThanOrEqual((job?.enqueuedAt as number) + 1_500);
    }
    await expectSoundTables(database.url);
  });
});

async function storeNow(database: TestDatabase): Promise<number> {
  const [row] = (await database.sql('SELECT mulligan.now_ms()::text AS now')) as { now: string }[];
  return Number(row?.now);
}
