import { EventEmitter } from 'node:events';
import { describe, expect, inject, it } from 'vitest';
import { TestDatabase } from '../../../../test/support/postgres-database.ts';
import { TcpProxy } from '../../../../test/support/tcp-proxy.ts';
import { systemClock } from '../../../clock.ts';
import { StoreBusyError, StoreUnavailableError } from '../../../errors.ts';
import { PostgresStore } from '../store.ts';
import { connect } from './connect.ts';
import { Database } from './database.ts';
import type { PoolClientLike, PoolLike } from './driver.ts';
import { toStoreError } from './failure.ts';
import { GivenPool } from './given-pool.ts';

const url = inject('postgresUrl');
const MINUTE_MS = 60_000;

function withCode(code: string): Error {
  return Object.assign(new Error('any text: Connection terminated unexpectedly'), { code });
}

/** A pool with one connection, whose queries are answered by `query`. */
function poolOf(query: (client: EventEmitter) => Promise<{ rows: unknown[] }>): PoolLike {
  const client = new EventEmitter();
  const lent = Object.assign(client, { query: () => query(client), release() {} });
  return { query: () => query(client), connect: async () => lent as unknown as PoolClientLike };
}

/** What becomes of an error, and whether it was taken for an outage. */
async function outcome(pool: PoolLike): Promise<{ error: unknown; isOutage: boolean }> {
  let now = 0;
  const clock = { ...systemClock, monotonic: () => now };
  const db = new Database(new GivenPool(pool), 'mulligan', clock);
  let isLost = false;
  db.onLost = () => {
    isLost = true;
  };
  const error = await db.query('SELECT 1').catch((thrown: unknown) => thrown);
  now += MINUTE_MS / 2;
  return { error, isOutage: isLost || db.takeAwayMs() > 0 };
}

describe('an error that no server and no connection has made', () => {
  it.each([
    ['a TypeError', new TypeError('Connection terminated unexpectedly')],
    ['a RangeError', new RangeError('connect ECONNREFUSED')],
    ['an error without a code, on a connection that goes on', new Error('Connection terminated unexpectedly')],
    ['a statement that the server does not understand', withCode('42601')],
  ])('is thrown as it is, and is no outage: %s', async (_, thrown) => {
    const found = await outcome(poolOf(() => Promise.reject(thrown)));
    expect(found).toEqual({ error: thrown, isOutage: false });
  });

  it('is thrown as it is, and is no outage: a TypeError while a connection is made', async () => {
    const thrown = new TypeError('x is not a function');
    const pool = { ...poolOf(() => Promise.reject(thrown)), connect: () => Promise.reject(thrown) };
    expect(await outcome(pool)).toEqual({ error: thrown, isOutage: false });
  });
});

describe('a failure of the connection', () => {
  it('is an outage when its error has no code, because the connection has ended', async () => {
    const thrown = new Error('any text');
    const found = await outcome(
      poolOf(async (client) => {
        client.emit('end');
        throw thrown;
      }),
    );
    expect(found.error).toBeInstanceOf(StoreUnavailableError);
    expect(found.isOutage).toBe(true);
  });

  it('is an outage when no connection can be made, whatever the error', async () => {
    for (const thrown of [new Error('any text'), withCode('CERT_HAS_EXPIRED'), withCode('ECONNREFUSED')]) {
      const pool = { ...poolOf(() => Promise.reject(thrown)), connect: () => Promise.reject(thrown) };
      const { error, isOutage } = await outcome(pool);
      expect(error).toBeInstanceOf(StoreUnavailableError);
      expect(isOutage).toBe(true);
    }
  });

  it('is not the same as a lock that was not given in time, which is no outage', async () => {
    const { error, isOutage } = await outcome(poolOf(() => Promise.reject(withCode('55P03'))));
    expect(error).toBeInstanceOf(StoreBusyError);
    expect(isOutage).toBe(false);
  });

  it('is recognised by SQLSTATE', () => {
    for (const state of ['08006', '53100', '53300', '57P01', '57P03', '58030', 'XX000', '25006', '28P01', '3D000']) {
      expect(toStoreError(withCode(state), 'here')).toBeInstanceOf(StoreUnavailableError);
    }
    for (const state of ['22012', '23514', '42601', '42P07', '0A000', 'P0001']) {
      const error = withCode(state);
      expect(toStoreError(error, 'here')).toBe(error);
    }
  });
});

describe('an answer that the driver fails to read', () => {
  it('rejects the statement, ends its connection and is no outage; the process goes on', async () => {
    await using database = await TestDatabase.create(url);
    await using proxy = await TcpProxy.open(database.port);
    const store = await PostgresStore.open({ url: database.url });
    const { hosts, schema } = await connect({ url: proxy.through(database.url) });
    const db = new Database(hosts, schema, systemClock);
    let isLost = false;
    db.onLost = () => {
      isLost = true;
    };
    proxy.mishap = (statement) => (statement.includes('spoil this') ? 'spoil the answer' : null);
    await expect(db.query("SELECT 'spoil this'")).rejects.toThrow("the server's answer could not be read: ");
    expect(await db.query('SELECT 1')).toEqual([[1]]);
    expect(isLost).toBe(false);
    await db.close();
    await store.close();
  });
});
