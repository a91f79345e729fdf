import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import { Fleet } from '../processes/fleet.ts';
import { expectSoundTables, TestDatabase } from '../support/postgres-database.ts';
import { chance } from './chance.ts';
import { Effects } from './effects.ts';
import { tell } from './figures.ts';
import { expectAllUp, expectGoodBooks } from './good-books.ts';
import { drain, keepKilling, work } from './killing.ts';
import { Load } from './load.ts';

const server = inject('postgresUrl');
/** Longer for a soak. */
const STORM_MS = Number(process.env.MULLIGAN_SOAK_SECONDS ?? 4) * 1_000;
const PATIENCE_MS = STORM_MS + 90_000;

describe('worker processes on PostgreSQL that are killed at any moment', () => {
  it('lose no acknowledged job and settle none twice, while jobs keep coming in', {
    timeout: PATIENCE_MS,
  }, async () => {
    const luck = chance();
    await using database = await TestDatabase.create(server);
    await using fleet = await Fleet.at(database.url);
    const load = new Load(fleet.mulligan, luck, 3);
    const everyone = await keepKilling(fleet, luck, STORM_MS);
    await load.stop();
    everyone.push(await drain(fleet));
    const { stats } = await expectGoodBooks(fleet.mulligan, load, everyone);
    expect(stats.totals.runs.crashed).toBeGreaterThan(0);
    tell('killed workers', { jobs: stats.totals.enqueued, kills: everyone.length, crashed: stats.totals.runs.crashed });
    await expectSoundTables(database.url);
  });
});

describe('connections that the server ends at any moment', () => {
  it('cost no acknowledged job, no effect and no worker process: each connects again', {
    timeout: PATIENCE_MS,
  }, async () => {
    const luck = chance();
    await using database = await TestDatabase.create(server);
    await using fleet = await Fleet.at(database.url);
    const crew = await Promise.all([fleet.start(work), fleet.start(work), fleet.start(work)]);
    const load = new Load(fleet.mulligan, luck, 3, 'through outages');
    const effects = await Effects.open(database.url, fleet.mulligan);
    const stopAt = performance.now() + STORM_MS;
    let ended = 0;
    while (performance.now() < stopAt) {
      await effects.enqueue(3, luck.between(0, 60));
      ended += await database.terminate(luck.index(4) === 0 ? 'true' : `pid % 5 = ${luck.index(5)}`);
      await sleep(luck.between(0, 100));
    }
    await load.stop();
    expectAllUp(crew);
    await fleet.allEnded();
    const { stats } = await expectGoodBooks(fleet.mulligan, load, crew);
    await effects.expectOnceEach();
    tell('ended connections', {
      jobs: stats.totals.enqueued,
      ended,
      refused: load.refused,
      effects: effects.acknowledged.length,
    });
    expect(ended).toBeGreaterThan(20);
    await expectSoundTables(database.url);
  });
});

describe('more handlers in a transaction than there are connections', () => {
  it('leave room for heartbeats and wait for their turn, however long it takes', async () => {
    await using database = await TestDatabase.create(server);
    await using fleet = await Fleet.at(database.url);
    const effects = await Effects.open(database.url, fleet.mulligan);
    // Twelve are more than the ten connections, and each lasts longer than a connection is waited for.
    await effects.enqueue(12, 6_000);
    const crew = [await fleet.start({ concurrency: 12, lease: '2s' })];
    // Another process, which looks for leases that are not extended.
    fleet.mulligan.work({ queues: ['nothing'], lease: '1s' });
    await fleet.allEnded();
    await effects.expectOnceEach();
    const { stats } = await expectGoodBooks(
      fleet.mulligan,
      { acknowledged: effects.acknowledged, hardy: new Set() },
      crew,
    );
    expect(stats.totals.runs).toMatchObject({ completed: 12, failed: 0, crashed: 0 });
  });
});
