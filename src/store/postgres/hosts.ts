import { ConfigError, StoreUnavailableError } from '../../errors.ts';
import { type Address, parseAddress } from './address.ts';
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
  connect(): Promise<unknown>;
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
  end(): Promise<void>;
  on(event: 'notification', listener: (message: { payload?: string | undefined }) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
}

interface Driver {
  readonly Pool: new (config: Record<string, unknown>) => PoolLike;
  readonly Client: new (config: Record<string, unknown>) => ClientLike;
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

/** The servers of one address: finds the one that can be written to, and looks again when it seems gone. */
export class Hosts {
  readonly name: string;
  readonly #address: Address;
  readonly #driver: Driver;
  readonly #config: Record<string, unknown>;
  /** False behind a pooler that refuses settings at the start of a connection. */
  #ownSessions = true;
  #pool: PoolLike | null = null;
  #url: string;
  #finding: Promise<PoolLike> | null = null;
  #doubted = false;

  static async open(url: string, config: Record<string, unknown> = {}): Promise<Hosts> {
    const address = parseAddress(url);
    const hosts = new Hosts(await loadDriver(), address, config);
    await hosts.pool();
    return hosts;
  }

  private constructor(driver: Driver, address: Address, config: Record<string, unknown>) {
    this.#driver = driver;
    this.#address = address;
    this.#config = config;
    this.#url = address.urls[0] as string;
    this.name = address.name;
  }

  /** True when every connection has a session of its own on the server: LISTEN needs one. */
  get ownSessions(): boolean {
    return this.#ownSessions;
  }

  async query(statement: Statement): Promise<{ rows: unknown[] }> {
    return (await this.pool()).query(statement);
  }

  async connect(): Promise<PoolClientLike> {
    return (await this.pool()).connect();
  }

  /** A connection outside the pool. */
  client(): ClientLike {
    return new this.#driver.Client(this.#settings(this.#url));
  }

  /** The server does not answer as it should; with others at hand, the next call looks for the right one. */
  doubt(): void {
    this.#doubted = this.#address.urls.length > 1;
  }

  async pool(): Promise<PoolLike> {
    if (this.#pool !== null && !this.#doubted) return this.#pool;
    this.#finding ??= this.#find().finally(() => {
      this.#finding = null;
    });
    return this.#finding;
  }

  async close(): Promise<void> {
    const pool = await (this.#finding ?? this.#pool);
    await pool?.end?.();
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
