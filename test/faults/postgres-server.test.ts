import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../src/index.ts';
import type { WorkOptions } from '../../src/worker/options.ts';
import { Fleet, type Message, type WorkerProcess } from '../processes/fleet.ts';
import { quick, short } from '../processes/jobs.ts';
import { expectSoundTables, TestDatabase } from '../support/postgres-database.ts';
import { PostgresServer } from '../support/postgres-server.ts';
import { chance } from './chance.ts';
import { Effects } from './effects.ts';
import { tell } from './figures.ts';
import { expectAllUp, expectGoodBooks } from './good-books.ts';
import { checkLedgers } from './ledger-check.ts';
import { hardy, Load } from './load.ts';

/** How often the server is killed; more for a soak. */
const KILLS = Math.ceil(Number(process.env.MULLIGAN_SOAK_SECONDS ?? 5) / 5);
const PATIENCE_MS = KILLS * 20_000 + 90_000;
const SHORT_LEASE_MS = 2_000;

let server: PostgresServer;
beforeAll(async () => {
  server = await PostgresServer.start({ fsync: 'on' });
});
afterAll(() => server[Symbol.asyncDispose]());

function runOf(started: Message['started']): string[] {
  return started === undefined ? [] : [`${started.id} ${started.run}`];
}

/** How many writes of this database the server has refused or rolled back. */
async function rollbacks(database: TestDatabase): Promise<number> {
  const [row] = await server.query<{ count: number }>(
    'SELECT xact_rollback::int AS count FROM pg_stat_database WHERE datname = $1',
    [database.name],
  );
  return row?.count ?? 0;
}

/** How many running jobs have a lease that is over. */
async function endedLeases(database: TestDatabase): Promise<number> {
  const [row] = await database.sql(
    'SELECT count(*)::int AS count FROM mulligan.live WHERE worker IS NOT NULL AND lease_ends_at < mulligan.now_ms()',
  );
  return (row as { count: number }).count;
}

function said(worker: WorkerProcess, beginning: string): number {
  return worker.messages.filter(({ log }) => log?.message.startsWith(beginning)).length;
}

describe('a server that is killed under load', () => {
  it('costs no acknowledged job and no lease, and workers go on by themselves when it is back', {
    timeout: PATIENCE_MS,
  }, async () => {
    const luck = chance();
    await using database = await TestDatabase.create(server.url);
    await using fleet = await Fleet.at(database.url);
    const { mulligan } = fleet;
    const start = (options: WorkOptions): Promise<WorkerProcess> => fleet.start(options, { tellsStarts: true });
    // Leases so long that what ends while the server is away can still be recorded; and short ones that end meanwhile.
    const crew = await Promise.all([start({ lease: '10s' }), start({ lease: '10s' })]);
    crew.push(await start({ queues: ['long'], concurrency: 50, lease: SHORT_LEASE_MS }));
    // They only look for expired leases, and one of them is always the first to look when the server is back.
    for (let n = 0; n < 10; n++) mulligan.work({ queues: ['nothing'], lease: '1s', poll: '1h' });
    const load = new Load(mulligan, luck, 3, 'through outages');
    const effects = await Effects.open(database.url, mulligan);
    const long: string[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      await fleet.until(async () => (await mulligan.jobs.list({ queue: 'long', state: 'running' })).length === 0);
      // They outlast the absence of the server, and their leases do not.
      const through = await mulligan.enqueueMany(
        short,
        Array(10)
          .fill({ ms: 10_000 })
          .map((input) => ({ input })),
        { ...hardy, queue: 'long' },
      );
      long.push(...through.map(({ id }) => id));
      await effects.enqueue(10, 50);
      await fleet.until(async () => (await mulligan.jobs.list({ queue: 'long', state: 'running' })).length >= 10);
      const enqueued = load.acknowledged.length + luck.between(0, 50);
      await fleet.until(async () => load.acknowledged.length >= enqueued);
      await server.kill();
      const [refused, leasesEndAt] = [load.refused, performance.now() + SHORT_LEASE_MS];
      await fleet.until(async () => load.refused > refused && performance.now() > leasesEndAt);
      await server.start();
      await fleet.until((mulligan) =>
        mulligan.stats().then(
          () => true,
          () => false,
        ),
      );
      const again = load.acknowledged.length + luck.between(0, 200);
      await fleet.until(async () => load.acknowledged.length >= again);
    }
    await load.stop();
    expectAllUp(crew);
    await fleet.allEnded();
    await effects.expectOnceEach();
    const acknowledged = [...load.acknowledged, ...effects.acknowledged, ...long];
    const { stats, ledgers } = await expectGoodBooks(mulligan, { acknowledged, hardy: load.hardy }, crew);
    // Except claims whose answer was lost with the server: no worker knew of those runs, and none was started.
    const started = new Set(crew.flatMap(({ messages }) => messages.flatMap((message) => runOf(message.started))));
    const rescued = [...ledgers].flatMap(([id, rows]) =>
      rows.filter(({ run, outcome }) => outcome === 'crashed' && started.has(`${id} ${run}`)),
    );
    expect(rescued).toEqual([]);
    for (const id of long) expect(ledgers.get(id)).toMatchObject([{ run: 1, outcome: 'completed' }]);
    await expectSoundTables(database.url);
    tell('killed servers', { jobs: stats.totals.enqueued, kills: KILLS, refused: load.refused, through: long.length });
  });
});

describe('a server that only reads for a while', () => {
  it('is not claimed from, is complained about once, and records afterwards what has ended meanwhile', async () => {
    await using database = await TestDatabase.create(server.url);
    // Also when the test fails half way, or the database could not be dropped.
    await using _writable = { [Symbol.asyncDispose]: readWrite };
    await using fleet = await Fleet.at(database.url);
    const { mulligan } = fleet;
    const acknowledged = (
      await mulligan.enqueueMany(
        short,
        Array(300)
          .fill({ ms: 50 })
          .map((input) => ({ input })),
      )
    ).map(({ id }) => id);
    const worker = await fleet.start({ concurrency: 10, lease: '60s', poll: '50ms' });
    // Runs that outlast it, on leases that do not; and workers that look for expired leases.
    await fleet.start({ queues: ['long'], concurrency: 5, lease: '1s' });
    const through = await mulligan.enqueueMany(
      short,
      Array(5)
        .fill({ ms: 9_000 })
        .map((input) => ({ input })),
      { ...hardy, queue: 'long' },
    );
    acknowledged.push(...through.map(({ id }) => id));
    for (let n = 0; n < 5; n++) mulligan.work({ queues: ['nothing'], lease: '1s', poll: '50ms' });
    await fleet.until(async () => (await mulligan.jobs.list({ queue: 'long', state: 'running' })).length === 5);
    await fleet.until(async () => (await mulligan.stats()).states.completed >= 30);
    await server.query('ALTER SYSTEM SET default_transaction_read_only = on');
    await server.query('SELECT pg_reload_conf()');
    await worker.heard(({ log }) => log?.message.startsWith('the store does not answer') === true);
    const refusal = await mulligan.enqueue(quick, { n: 1 }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal).toHaveProperty('message', expect.stringContaining('the server only reads'));
    const before = (await mulligan.stats()).states;
    expect(before.completed).toBeLessThan(305);
    // Many polls, settlements and heartbeats later. A process that works can still read.
    const rolledBack = await rollbacks(database);
    await fleet.until(async () => (await rollbacks(database)) >= rolledBack + 50 && (await endedLeases(database)) >= 5);
    expect((await mulligan.stats()).states).toEqual(before);
    expect(before.running).toBeGreaterThan(0);
    expect(said(worker, 'the store does not answer')).toBe(1);

    await readWrite();
    await fleet.allEnded();
    await worker.heard(({ log }) => log?.message.startsWith('the store answers again') === true);
    acknowledged.push((await mulligan.enqueue(quick, { n: 2 })).id);
    await fleet.allEnded();
    const { stats } = await checkLedgers(mulligan, { acknowledged });
    expect(stats.totals.runs).toMatchObject({ completed: 306, failed: 0, crashed: 0, released: 0 });
    expect(said(worker, 'the store')).toBe(2);
    await expectSoundTables(database.url);
  });
});

async function readWrite(): Promise<void> {
  await server.query('ALTER SYSTEM RESET default_transaction_read_only');
  await server.query('SELECT pg_reload_conf()');
}
