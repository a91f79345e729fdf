import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Fleet } from '../processes/fleet.ts';
import { expectSoundTables } from '../support/postgres-database.ts';
import { PostgresServer } from '../support/postgres-server.ts';
import { chance } from './chance.ts';
import { Effects } from './effects.ts';
import { tell } from './figures.ts';
import { expectAllUp, expectGoodBooks } from './good-books.ts';
import { Load } from './load.ts';

/** Enough for a standby that is asked before a commit is acknowledged. */
const settings = { wal_level: 'replica', max_wal_senders: '4', hot_standby: 'on', wal_receiver_status_interval: '1' };

describe('a primary that is killed while its standby has every commit', () => {
  it('is followed by the standby: no acknowledged job is lost, and workers go on there by themselves', {
    timeout: 150_000,
  }, async () => {
    const luck = chance();
    await using primary = await PostgresServer.start(settings);
    await primary.stop();
    await using standby = await PostgresServer.standbyOf(primary, 'second');
    await primary.start();
    await standby.start();
    await primary.query(`ALTER SYSTEM SET synchronous_standby_names = 'second'`);
    await primary.query('SELECT pg_reload_conf()');
    await expect.poll(() => syncState(primary), { timeout: 30_000 }).toBe('sync');

    await using fleet = await Fleet.at(bothHosts(primary, standby));
    const { mulligan } = fleet;
    const effects = await Effects.open(primary.url, mulligan, standby.url);
    const crew = await Promise.all([fleet.start({ lease: '60s' }), fleet.start({ lease: '60s' })]);
    const load = new Load(mulligan, luck, 3, 'through outages');
    for (let batch = 0; batch < 10; batch++) {
      await effects.enqueue(5, 30);
      await sleep(luck.between(50, 150));
    }
    // What the primary writes from here on does not reach the standby; it must not be acknowledged either.
    await standby.query(`ALTER SYSTEM SET primary_conninfo = ''`);
    await standby.query('SELECT pg_reload_conf()');
    await expect.poll(() => standby.query('SELECT 1 FROM pg_stat_wal_receiver'), { timeout: 30_000 }).toEqual([]);
    await sleep(300);
    const before = load.acknowledged.length;
    await primary.kill();
    await sleep(luck.between(0, 1_000));
    await standby.promote();
    await fleet.until(async () => load.acknowledged.length >= before + 50);
    await load.stop();
    expectAllUp(crew);
    await fleet.allEnded();
    await effects.expectOnceEach();
    const acknowledged = [...load.acknowledged, ...effects.acknowledged];
    const { stats } = await expectGoodBooks(mulligan, { acknowledged, hardy: load.hardy }, crew);
    expect(stats.totals.runs.crashed).toBe(0);
    await expectSoundTables(standby.url);
    tell('a promoted standby', { jobs: stats.totals.enqueued, acknowledgedBefore: before, refused: load.refused });
  });
});

async function syncState(primary: PostgresServer): Promise<unknown> {
  const [row] = await primary.query<{ sync_state: string }>('SELECT sync_state FROM pg_stat_replication');
  return row?.sync_state;
}

/** The standby first: it can be read, and must not be taken. */
function bothHosts(primary: PostgresServer, standby: PostgresServer): string {
  const host = (server: PostgresServer): string => new URL(server.url).host;
  const { protocol, username, pathname } = new URL(primary.url);
  return `${protocol}//${username}@${host(standby)},${host(primary)}${pathname}`;
}
