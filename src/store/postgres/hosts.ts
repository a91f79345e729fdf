import { systemClock } from '../../clock.ts';
import { unexpected } from '../../config.ts';
import { ConfigError, StoreUnavailableError } from '../../errors.ts';
import { read } from '../../retry/thrown.ts';
import { type Address, checkSchema, DEFAULT_SCHEMA, parseAddress } from './address.ts';
import type { Statement } from './database.ts';
import { isAway, isUnknownSetting, toStoreError } from './failure.ts';
import { Turns } from './turns.ts';

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
  on?(event: 'error', listener: (error: Error) => void): unknown;
  removeListener?(event: 'error', listener: (error: Error) => void): unknown;
  /** Of the server's process. */
  readonly processID?: number | null;
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
  /** The server does not answer as it should: the next call looks whether it, or another one, does. */
  doubt(): void;
  /** Told when a connection broke that nobody was using: perhaps the server is gone. */
  onBroken(listener: () => void): void;
  close(): Promise<void>;
}

interface DriverPool extends PoolLike {
  end(): Promise<void>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'connect' | 'remove', listener: (client: DriverClient) => void): unknown;
}

interface DriverClient {
  end(): Promise<void>;
  on(event: 'error', listener: () => void): unknown;
}

interface Driver {
  readonly Pool: new (config: Record<string, unknown>) => DriverPool;
  readonly Client: new (config: Record<string, unknown>) => ClientLike & { connect(): Promise<unknown> };
}

const CONNECT_TIMEOUT_MS = 5_000;
const CONNECTIONS = 10;
/** A statement of ours is short. One that is not stands in the way of others. */
const SESSION = { statement_timeout: 30_000, lock_timeout: 10_000, idle_in_transaction_session_timeout: 60_000 };
/** After so long without an answer it may be that none will come: a network that fails can do so without a word. */
const SILENCE_MS = 5_000;
/** The server would have said by now that it took too long. */
const NO_ANSWER_MS = SESSION.statement_timeout + SILENCE_MS;

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

/** One server, and the connections to it. */
class Host {
  readonly url: string;
  readonly pool: DriverPool;
  readonly #clients: Set<DriverClient> = new Set();

  constructor(url: string, pool: DriverPool, onBroken: () => void) {
    this.url = url;
    this.pool = pool;
    // An idle connection broke: the pool drops it, and the next call makes another.
    pool.on('error', onBroken);
    pool.on('connect', (client) => {
      this.#clients.add(client);
      // The server may end it with the same words that let it in, before whoever waits for it has got it.
      client.on('error', ignore);
    });
    pool.on('remove', (client) => this.#clients.delete(client));
  }

  /** Whoever still waits for an answer here is told that none will come, and may ask elsewhere. */
  abandon(): void {
    void this.pool.end().catch(ignore);
    for (const client of this.#clients) void client.end().catch(ignore);
  }
}

/** The servers of one address: finds the one that can be written to, and looks again when it seems gone. */
class KnownHosts implements Hosts {
  readonly name: string;
  readonly #address: Address;
  readonly #driver: Driver;
  readonly #config: Readonly<Record<string, unknown>>;
  /** False behind a pooler that refuses or ignores settings at the start of a connection. */
  #ownSessions = true;
  #host: Host | null = null;
  #finding: Promise<Host> | null = null;
  #onBroken: () => void = ignore;
  readonly #most: number;
  readonly #turns: Turns;
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
    this.name = address.name;
    this.#most = typeof config.max === 'number' ? config.max : CONNECTIONS;
    this.#turns = new Turns(this.#most);
  }

  get ownSessions(): boolean {
    return this.#ownSessions;
  }

  async query(statement: Statement): Promise<{ rows: unknown[] }> {
    const done = await this.#turns.take('statement');
    try {
      return await this.#query(statement);
    } finally {
      done();
    }
  }

  async #query(statement: Statement): Promise<{ rows: unknown[] }> {
    const host = await this.#current();
    const client = guarded(await host.pool.connect());
    const watch = this.#watch(host, client);
    try {
      const answer = await client.query(statement);
      client.release();
      return answer;
    } catch (error) {
      client.release(isAway(error));
      throw error;
    } finally {
      watch.cancel();
    }
  }

  /** Ends a connection whose answer cannot come any more; one that the server still works on is left alone. */
  #watch(host: Host, client: PoolClientLike): { cancel(): void } {
    let ended = false;
    const look = async (): Promise<void> => {
      const isWorking = await this.#isWorking(host, client).catch(() => {
        // Not only this one: whoever comes next looks first.
        this.doubt();
        return false;
      });
      if (ended) return;
      if (isWorking) timer = systemClock.after(SILENCE_MS, look);
      else client.release(true);
    };
    let timer = systemClock.after(SILENCE_MS, look);
    return {
      cancel(): void {
        ended = true;
        timer.cancel();
      },
    };
  }

  async #isWorking(host: Host, { processID }: PoolClientLike): Promise<boolean> {
    // A pooler's number says nothing about the server's processes; the longest wait has to do.
    if (!this.#ownSessions || typeof processID !== 'number') return true;
    const asked = `SELECT 1 FROM pg_stat_activity WHERE pid = ${processID} AND state = 'active'`;
    return (await this.#ask(host, asked)).length > 0;
  }

  async connect(): Promise<PoolClientLike> {
    const done = await this.#turns.take('transaction');
    try {
      return guarded(await (await this.#current()).pool.connect(), done);
    } catch (error) {
      done();
      throw error;
    }
  }

  async client(): Promise<ClientLike> {
    const url = this.#host?.url ?? (this.#address.urls[0] as string);
    const client = new this.#driver.Client(this.#settings(url));
    // Without a listener an error would end the process.
    client.on('error', () => this.#onBroken());
    await client.connect();
    return client;
  }

  doubt(): void {
    this.#doubted = true;
  }

  onBroken(listener: () => void): void {
    this.#onBroken = listener;
  }

  async close(): Promise<void> {
    await this.#finding?.catch(ignore);
    await this.#host?.pool.end();
  }

  async #current(): Promise<Host> {
    if (this.#host !== null && !this.#doubted) return this.#host;
    this.#finding ??= this.#find().finally(() => {
      this.#finding = null;
    });
    return this.#finding;
  }

  async #find(): Promise<Host> {
    this.#doubted = false;
    const known = this.#host;
    let trouble: unknown;
    try {
      if (known !== null && (await this.#isWritable(known))) return known;
    } catch (error) {
      trouble = error;
    }
    // The one that was known comes last: connections to it may have been cut without a word, and new ones get through.
    const others = this.#address.urls.filter((url) => url !== known?.url);
    for (const url of known === null ? others : [...others, known.url]) {
      try {
        return await this.#take(url);
      } catch (error) {
        trouble = error;
      }
    }
    this.#doubted = true;
    throw toStoreError(trouble, this.name);
  }

  async #take(url: string): Promise<Host> {
    const host = new Host(url, new this.#driver.Pool(this.#settings(url)), () => this.#onBroken());
    try {
      if (!(await this.#isWritable(host))) {
        throw new StoreUnavailableError(`${this.name}: the server only reads; none of the hosts can be written to`);
      }
    } catch (error) {
      host.abandon();
      if (!this.#ownSessions || !isUnknownSetting(error)) throw error;
      this.#ownSessions = false;
      return this.#take(url);
    }
    if (this.#ownSessions) this.#ownSessions = await this.#hasItsSettings(host);
    this.#host?.abandon();
    this.#host = host;
    return host;
  }

  /** A pooler may also take the settings and keep them to itself; what was asked for is then not there. */
  async #hasItsSettings(host: Host): Promise<boolean> {
    const name = 'idle_in_transaction_session_timeout';
    const [row] = await this.#ask(host, `SELECT setting::int AS ms FROM pg_settings WHERE name = '${name}'`);
    return (row as { ms: number }).ms === this.#settings(host.url)[name];
  }

  /** Where there is one host only, it is taken as it is: the statements will tell. */
  async #isWritable(host: Host): Promise<boolean> {
    const asked = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool AS ro";
    const [row] = await this.#ask(host, asked);
    return this.#address.urls.length === 1 || !(row as { ro: boolean }).ro;
  }

  /** Something that is answered at once, or not at all. */
  async #ask({ pool }: Host, text: string): Promise<unknown[]> {
    const client = guarded(await pool.connect());
    const silence = systemClock.after(SILENCE_MS, () => client.release(true));
    try {
      const { rows } = await client.query(text);
      client.release();
      return rows;
    } catch (error) {
      client.release(true);
      throw error;
    } finally {
      silence.cancel();
    }
  }

  #settings(url: string): Record<string, unknown> {
    return {
      connectionString: url,
      application_name: 'mulligan',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: NO_ANSWER_MS,
      keepAlive: true,
      ...(this.#ownSessions && SESSION),
      ...this.#config,
      // One more than is ever in use, to ask for whether the others are well.
      max: this.#most + 1,
    };
  }
}

function ignore(): void {}

/** A connection that breaks while nobody asks it anything would throw its error at the whole process. */
function guarded(client: PoolClientLike, onReleased: () => void = ignore): PoolClientLike {
  const release = client.release;
  let released = false;
  client.on?.('error', ignore);
  client.release = (error) => {
    if (released) return;
    released = true;
    client.removeListener?.('error', ignore);
    release.call(client, error);
    onReleased();
  };
  return client;
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

  async connect(): Promise<PoolClientLike> {
    return guarded(await this.#pool.connect());
  }

  async client(): Promise<ClientLike> {
    const client = (await this.connect()) as PoolClientLike & Pick<ClientLike, 'on'>;
    return {
      query: (text, values) => client.query(text, values),
      on: (event: never, listener: never) => client.on(event, listener),
      // It has listened, so it cannot go back to the others.
      end: () => client.release(true),
    };
  }

  doubt(): void {}

  onBroken(listener: () => void): void {
    this.#pool.on?.('error', listener);
  }

  async close(): Promise<void> {}
}
