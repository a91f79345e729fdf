import { unexpected } from '../../../config.ts';
import { read } from '../../../untrusted/thrown.ts';
import { BorrowedClient } from './borrowed-client.ts';
import { ConnectionLimiter, FEWEST_CONNECTIONS } from './connection-limiter.ts';
import { type ClientLike, ignore, type PoolClientLike, type PoolLike } from './driver.ts';
import type { Hosts } from './hosts.ts';
import { type Statement, unnamed } from './statement.ts';

/** One listens, beside those that every pool has to have. */
const FEWEST = FEWEST_CONNECTIONS + 1;

/** By pool, because several stores may share one. Statements have no limit: they are short, and the pool queues them. */
const limiters: WeakMap<PoolLike, ConnectionLimiter> = new WeakMap();

/** A pool that the caller made and will end. */
export class GivenPool implements Hosts {
  readonly name = 'PostgreSQL';
  readonly ownSessions = true;
  readonly #pool: PoolLike;
  readonly #limiter: ConnectionLimiter;
  readonly #timesOut: boolean;
  #onBroken: () => void = ignore;

  constructor(pool: PoolLike) {
    const missing = (['query', 'connect'] as const).find((name) => typeof read(pool, name) !== 'function');
    if (missing !== undefined) throw unexpected('PostgreSQL: pool', `a Pool of pg, which has ${missing}()`, pool);
    const options = read(pool, 'options');
    const most = read(options, 'max');
    if (typeof most === 'number' && most < FEWEST) {
      const hint = "One listens, one is for handlers' transactions, one for reads, one for heartbeats.";
      throw unexpected('PostgreSQL: pool', `a max of at least ${FEWEST} connections`, most, hint);
    }
    this.#pool = pool;
    this.#timesOut = read(options, 'query_timeout') !== undefined;
    // A pool without a known size is taken to be the smallest, because more could end in a deadlock.
    const connections = (typeof most === 'number' ? most : FEWEST) - 1;
    this.#limiter = limiters.get(pool) ?? new ConnectionLimiter(connections);
    limiters.set(pool, this.#limiter);
  }

  async query(statement: Statement, use: 'statement' | 'read'): Promise<{ rows: unknown[] }> {
    const done = use === 'read' ? await this.#limiter.take('read') : ignore;
    try {
      const client = await this.#borrow();
      return await client.queryOnce(this.name, () => client.query(unnamed(statement)));
    } finally {
      done();
    }
  }

  async connect(): Promise<PoolClientLike> {
    const onReleased = await this.#limiter.take('transaction');
    try {
      return await this.#borrow(onReleased);
    } catch (error) {
      onReleased();
      throw error;
    }
  }

  async client(): Promise<ClientLike> {
    const client = await this.#borrow();
    return {
      query: (text, values) => client.query(text, values),
      on: (event: never, listener: never) => client.on(event, listener),
      // It has listened, or was used for a migration, so it cannot go back to the others.
      end: () => client.release(true),
    };
  }

  #borrow(onReleased: () => void = ignore): Promise<BorrowedClient> {
    return BorrowedClient.from(this.#pool, { timesOut: this.#timesOut, onReleased });
  }

  recheck(): void {}

  onBroken(listener: () => void): void {
    this.#onBroken = listener;
    this.#pool.on?.('error', listener);
  }

  async close(): Promise<void> {
    this.#pool.removeListener?.('error', this.#onBroken);
  }
}
