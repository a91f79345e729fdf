import { checkInteger, isPlainObject, unexpected } from '../../../config.ts';
import { ConfigError } from '../../../errors.ts';
import { checkSchema, DEFAULT_SCHEMA, parseAddress } from './address.ts';
import type { Statement } from './database.ts';
import type { ClientLike, PoolClientLike, PoolLike } from './driver.ts';
import { GivenPool } from './given-pool.ts';
import { KnownHosts } from './host-pool.ts';

/** Where statements are sent. */
export interface Hosts {
  /** For messages; without a password. */
  readonly name: string;
  /** True when every connection has a session of its own on the server: LISTEN needs one. */
  readonly ownSessions: boolean;
  query(statement: Statement): Promise<{ rows: unknown[] }>;
  /** A connection for a transaction; who asks may have to wait for another transaction to end. */
  connect(): Promise<PoolClientLike>;
  /** A connection beside the pool. */
  client(): Promise<ClientLike>;
  /** The server does not answer as it should: the next call looks whether it, or another one, does. */
  doubt(): void;
  /** Told when a connection broke that nobody was using: perhaps the server is gone. */
  onBroken(listener: () => void): void;
  close(): Promise<void>;
}

export interface ConnectOptions {
  readonly url?: string;
  readonly pool?: PoolLike;
  readonly poolOptions?: Readonly<Record<string, unknown>>;
  readonly schema?: string;
}

/** One that holds a transaction, and one for what has to be asked beside it: heartbeats, and what is enqueued in there. */
const LEAST = {
  min: 2,
  hint: 'With one, a transaction would wait for itself; those that are not needed are not made.',
};

/** The servers, and the schema to use there. */
export async function connect(options: ConnectOptions): Promise<{ hosts: Hosts; schema: string }> {
  const { url, pool, schema } = options;
  if ((url === undefined) === (pool === undefined)) {
    throw new ConfigError('PostgreSQL: expected either a url or a pool; give one of them.');
  }
  if (pool !== undefined && options.poolOptions !== undefined) {
    throw new ConfigError(
      'PostgreSQL: expected poolOptions beside a url, got one beside a pool, which has options of its own; leave it out.',
    );
  }
  if (pool !== undefined) return { hosts: new GivenPool(pool), schema: checkSchema(schema ?? DEFAULT_SCHEMA) };
  if (typeof url !== 'string') throw unexpected('PostgreSQL: url', 'a text, postgres://host:5432/database', url);
  const { poolOptions = {} } = options;
  if (!isPlainObject(poolOptions)) throw unexpected('PostgreSQL: poolOptions', 'an object', poolOptions);
  if (poolOptions.max !== undefined) checkInteger(poolOptions.max, 'PostgreSQL: poolOptions.max', LEAST);
  const address = parseAddress(url);
  const checked = checkSchema(schema ?? address.schema ?? DEFAULT_SCHEMA);
  return { hosts: await KnownHosts.open(address, poolOptions), schema: checked };
}
