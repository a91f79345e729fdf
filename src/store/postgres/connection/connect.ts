import { checkInteger, isPlainObject, unexpected } from '../../../config.ts';
import { ConfigError } from '../../../errors.ts';
import { checkSchema, DEFAULT_SCHEMA, parseAddress } from './address.ts';
import { FEWEST_CONNECTIONS } from './connection-limiter.ts';
import type { PoolLike } from './driver.ts';
import { GivenPool } from './given-pool.ts';
import { HostPool } from './host-pool.ts';
import type { Hosts } from './hosts.ts';

export interface ConnectOptions {
  readonly url?: string;
  readonly pool?: PoolLike;
  readonly poolOptions?: Readonly<Record<string, unknown>>;
  readonly schema?: string;
}

const LEAST = {
  min: FEWEST_CONNECTIONS,
  hint: "One is for handlers' transactions, one for reads, one for heartbeats; those that are not needed are not made.",
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
  return { hosts: await HostPool.open(address, poolOptions), schema: checked };
}
