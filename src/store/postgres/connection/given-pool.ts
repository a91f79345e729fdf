import { unexpected } from '../../../config.ts';
import { read } from '../../../untrusted/thrown.ts';
import { Turns } from './connection-limiter.ts';
import { type Statement, unnamed } from './database.ts';
import { type ClientLike, guarded, ignore, type PoolClientLike, type PoolLike } from './driver.ts';
import { withRole } from './failure.ts';
import type { Hosts } from './hosts.ts';

/** One that listens, one that holds a transaction, and one for what has to be asked beside it. */
const FEWEST_CONNECTIONS = 3;

/** By pool, because several stores may share one. Statements need no turn: they are short, and the pool has them wait. */
const turnsOf: WeakMap<PoolLike, Turns> = new WeakMap();

/** A pool that belongs to somebody else. */
export class GivenPool implements Hosts {
  readonly name = 'PostgreSQL';
  readonly ownSessions = true;
  readonly #pool: PoolLike;
  readonly #turns: Turns;
  #onBroken: () => void = ignore;

  constructor(pool: PoolLike) {
    const missing = (['query', 'connect'] as const).find((name) => typeof read(pool, name) !== 'function');
    if (missing !== undefined) throw unexpected('PostgreSQL: pool', `a Pool of pg, which has ${missing}()`, pool);
    const most = read(read(pool, 'options'), 'max');
    if (typeof most === 'number' && most < FEWEST_CONNECTIONS) {
      const hint = 'With fewer, one waits for another without end; those that are not needed are not made.';
      throw unexpected('PostgreSQL: pool', `a max of at least ${FEWEST_CONNECTIONS} connections`, most, hint);
    }
    this.#pool = pool;
    // One listens. A pool that does not tell its size is taken to be the smallest: more would be asking for a deadlock.
    const connections = (typeof most === 'number' ? most : FEWEST_CONNECTIONS) - 1;
    this.#turns = turnsOf.get(pool) ?? new Turns(connections);
    turnsOf.set(pool, this.#turns);
  }

  query(statement: Statement): Promise<{ rows: unknown[] }> {
    const sent = unnamed(statement);
    return this.#pool.query(sent).catch(async (error: unknown) => {
      throw await withRole(error, this.name, (text) => this.#pool.query({ ...sent, text, values: [] }));
    });
  }

  async connect(): Promise<PoolClientLike> {
    return this.#turns.hold(() => this.#pool.connect());
  }

  async client(): Promise<ClientLike> {
    const client = guarded(await this.#pool.connect()) as PoolClientLike & Pick<ClientLike, 'on'>;
    return {
      query: (text, values) => client.query(text, values),
      on: (event: never, listener: never) => client.on(event, listener),
      // It has listened, so it cannot go back to the others.
      end: () => client.release(true),
    };
  }

  doubt(): void {}

  onBroken(listener: () => void): void {
    this.#onBroken = listener;
    this.#pool.on?.('error', listener);
  }

  async close(): Promise<void> {
    this.#pool.removeListener?.('error', this.#onBroken);
  }
}
