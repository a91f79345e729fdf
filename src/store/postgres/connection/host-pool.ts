import { systemClock } from '../../../clock.ts';
import { StoreUnavailableError } from '../../../errors.ts';
import type { Address } from './address.ts';
import { Turns } from './connection-limiter.ts';
import { type Statement, unnamed } from './database.ts';
import {
  type ClientLike,
  type Driver,
  type DriverClient,
  type DriverPool,
  guarded,
  ignore,
  loadDriver,
  type PoolClientLike,
} from './driver.ts';
import { isAway, isOthersStatement, isUnknownSetting, noHost, withRole } from './failure.ts';
import type { Hosts } from './hosts.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const CONNECTIONS = 10;
/** A statement of ours is short. One that is not stands in the way of others. */
const SESSION = { statement_timeout: 30_000, lock_timeout: 10_000, idle_in_transaction_session_timeout: 60_000 };
/** After so long without an answer it may be that none will come: a network that fails can do so without a word. */
const SILENCE_MS = 5_000;
/** The server would have said by now that it took too long. */
const NO_ANSWER_MS = SESSION.statement_timeout + SILENCE_MS;

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
export class KnownHosts implements Hosts {
  readonly name: string;
  readonly #address: Address;
  readonly #driver: Driver;
  readonly #config: Readonly<Record<string, unknown>>;
  /** False behind a pooler that refuses or ignores settings at the start of a connection. */
  #ownSessions = true;
  /** Whether sessions keep what was prepared in them. */
  #prepares = true;
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
      const answer = await this.#send(client, statement);
      client.release();
      return answer;
    } catch (error) {
      const told = await withRole(error, this.name, (text) => client.query(text));
      client.release(isAway(error));
      throw told;
    } finally {
      watch.cancel();
    }
  }

  async #send(client: PoolClientLike, statement: Statement): Promise<{ rows: unknown[] }> {
    if (!this.#prepares || !this.#ownSessions) return client.query(unnamed(statement));
    try {
      return await client.query(statement);
    } catch (error) {
      if (!isOthersStatement(error)) throw error;
      // It was refused before anything of it was done.
      this.#prepares = false;
      return client.query(unnamed(statement));
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
    return this.#turns.hold(async () => (await this.#current()).pool.connect());
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
    const troubles = new Map<string, unknown>();
    try {
      if (known !== null && (await this.#isWritable(known))) return known;
    } catch {
      // It is asked once more, below.
    }
    // The one that was known comes last: connections to it may have been cut without a word, and new ones get through.
    const others = this.#address.urls.filter((url) => url !== known?.url);
    for (const url of known === null ? others : [...others, known.url]) {
      try {
        return await this.#take(url);
      } catch (error) {
        troubles.set(new URL(url).host, error);
      }
    }
    this.#doubted = true;
    throw noHost(troubles, this.name);
  }

  async #take(url: string): Promise<Host> {
    const host = new Host(url, new this.#driver.Pool(this.#settings(url)), () => this.#onBroken());
    try {
      if (!(await this.#isWritable(host))) {
        throw new StoreUnavailableError('the server only reads');
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
