import { unexpected } from '../../config.ts';
import { ConfigError, StoreUnavailableError } from '../../errors.ts';
import { read } from '../../retry/thrown.ts';
import { type Address, checkSchema, DEFAULT_SCHEMA, parseAddress } from './address.ts';
import type { Statement } from './database.ts';
import { isUnknownSetting, toStoreError } from './failure.ts';

/** A `pg` pool, as far as we use it. */
export interface PoolLike {
  query(statement: Statement): Promise<{ rows: unknown[] }>;
  connect(): Promise<PoolClientLike>;
  end?(): Promise<void>;
  on?(event: 'error', listener: (error: Error) => void): unknown;
}

export interface PoolClientLike {
  query(statement: Statement): Promise<{ rows: unknown[] }>;
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
  release(error?: Error | boolean): void;
}

/** A connection of its own, for LISTEN. */
export interface ClientLike {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
  end(): Promise<void> | void;
  on(event: 'notification', listener: (message: { payload?: string | undefined }) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
}

/** Where statements are sent. */
export interface Hosts {
  /** For messages; without a password. */
  readonly name: string;
  /** True when every connection has a session of its own on the server: LISTEN needs one. */
  readonly ownSessions: boolean;
  query(statement: Statement): Promise<{ rows: unknown[] }>;
  connect(): Promise<PoolClientLike>;
  /** A connection beside the pool. */
  client(): Promise<ClientLike>;
  /** The server does not answer as it should; with others at hand, the next call looks for the right one. */
  doubt(): void;
  close(): Promise<void>;
}

interface Driver {
  readonly Pool: new (config: Record<string, unknown>) => PoolLike;
  readonly Client: new (config: Record<string, unknown>) => ClientLike & { connect(): Promise<unknown> };
}

const CONNECT_TIMEOUT_MS = 5_000;
/** A statement of ours is short. One that is not stands in the way of others. */
const SESSION = { statement_timeout: 30_000, lock_timeout: 10_000, idle_in_transaction_session_timeout: 60_000 };

async function loadDriver(): Promise<Driver> {
  try {
    const { default: pg } = (await import('pg')) as unknown as { default: Driver };
    return pg;
  } catch (error) {
    throw new ConfigError('PostgreSQL needs the package pg beside mulligan: npm install pg', { cause: error });
  }
}

export interface ConnectOptions {
  readonly url?: string;
  readonly pool?: PoolLike;
  readonly poolOptions?: Readonly<Record<string, unknown>>;
  readonly schema?: string;
}

/** The servers, and the schema to use there. */
export async function connect(options: ConnectOptions): Promise<{ hosts: Hosts; schema: string }> {
  const { url, pool, poolOptions = {}, schema } = options;
  if ((url === undefined) === (pool === undefined)) {
    throw new ConfigError('PostgreSQL: expected either a url or a pool; give one of them.');
  }
  if (pool !== undefined) return { hosts: new GivenPool(pool), schema: checkSchema(schema ?? DEFAULT_SCHEMA) };
  const address = parseAddress(url as string);
  const checked = checkSchema(schema ?? address.schema ?? DEFAULT_SCHEMA);
  return { hosts: await KnownHosts.open(address, poolOptions), schema: checked };
}

/** The servers of one address: finds the one that can be written to, and looks again when it seems gone. */
class KnownHosts implements Hosts {
  readonly name: string;
  readonly #address: Address;
  readonly #driver: Driver;
  readonly #config: Readonly<Record<string, unknown>>;
  /** False behind a pooler that refuses settings at the start of a connection. */
  #ownSessions = true;
  #pool: PoolLike | null = null;
  #url: string;
  #finding: Promise<PoolLike> | null = null;
  #doubted = false;

  static async open(address: Address, config: Readonly<Record<string, unknown>>): Promise<Hosts> {
    const hosts = new KnownHosts(await loadDriver(), address, config);
    await hosts.#current();
    return hosts;
  }

  private constructor(driver: Driver, address: Address, config: Readonly<Record<string, unknown>>) {
    this.#driver = driver;
    this.#address = address;
    this.#config = config;
    this.#url = address.urls[0] as string;
    this.name = address.name;
  }

  get ownSessions(): boolean {
    return this.#ownSessions;
  }

  async query(statement: Statement): Promise<{ rows: unknown[] }> {
    return (await this.#current()).query(statement);
  }

  async connect(): Promise<PoolClientLike> {
    return (await this.#current()).connect();
  }

  async client(): Promise<ClientLike> {
    const client = new this.#driver.Client(this.#settings(this.#url));
    // Without a listener an error would end the process.
    client.on('error', () => {});
    await client.connect();
    return client;
  }

  doubt(): void {
    this.#doubted = this.#address.urls.length > 1;
  }

  async close(): Promise<void> {
    const pool = await (this.#finding ?? this.#pool);
    await pool?.end?.();
  }

  async #current(): Promise<PoolLike> {
    if (this.#pool !== null && !this.#doubted) return this.#pool;
    this.#finding ??= this.#find().finally(() => {
      this.#finding = null;
    });
    return this.#finding;
  }

  async #find(): Promise<PoolLike> {
    let trouble: unknown;
    for (const url of this.#address.urls) {
      try {
        return await this.#take(url);
      } catch (error) {
        trouble = error;
      }
    }
    throw toStoreError(trouble, this.name);
  }

  async #take(url: string): Promise<PoolLike> {
    const known = url === this.#url ? this.#pool : null;
    const pool = known ?? this.#makePool(url);
    try {
      await this.#check(pool);
    } catch (error) {
      if (known === null) await pool.end?.();
      if (!this.#ownSessions || !isUnknownSetting(error)) throw error;
      this.#ownSessions = false;
      return this.#take(url);
    }
    if (known === null) {
      // What is still under way on the old one ends with its connection.
      void this.#pool?.end?.().catch(() => {});
      this.#pool = pool;
      this.#url = url;
    }
    this.#doubted = false;
    return pool;
  }

  async #check(pool: PoolLike): Promise<void> {
    const client = await pool.connect();
    try {
      const { rows } = await client.query(
        "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool AS ro",
      );
      if (this.#address.urls.length > 1 && (rows[0] as { ro: boolean }).ro) {
        throw new StoreUnavailableError(`${this.name}: the server only reads; none of the hosts can be written to`);
      }
      client.release();
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  #makePool(url: string): PoolLike {
    const pool = new this.#driver.Pool(this.#settings(url));
    // An idle connection broke: the pool drops it, and the next call makes another.
    pool.on?.('error', () => {});
    return pool;
  }

  #settings(url: string): Record<string, unknown> {
    return {
      connectionString: url,
      application_name: 'mulligan',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      ...(this.#ownSessions && SESSION),
      ...this.#config,
    };
  }
}

/** A pool that belongs to somebody else. */
class GivenPool implements Hosts {
  readonly name = 'PostgreSQL';
  readonly ownSessions = true;
  readonly #pool: PoolLike;

  constructor(pool: PoolLike) {
    const missing = (['query', 'connect'] as const).find((name) => typeof read(pool, name) !== 'function');
    if (missing !== undefined) throw unexpected('PostgreSQL: pool', `a Pool of pg, which has ${missing}()`, pool);
    this.#pool = pool;
  }

  query(statement: Statement): Promise<{ rows: unknown[] }> {
    return this.#pool.query(statement);
  }

  connect(): Promise<PoolClientLike> {
    return this.#pool.connect();
  }

  async client(): Promise<ClientLike> {
    const client = (await this.#pool.connect()) as PoolClientLike & Pick<ClientLike, 'on'>;
    return {
      query: (text, values) => client.query(text, values),
      on: (event: never, listener: never) => client.on(event, listener),
      // It has listened, so it cannot go back to the others.
      end: () => client.release(true),
    };
  }

  doubt(): void {}

  async close(): Promise<void> {}
}
