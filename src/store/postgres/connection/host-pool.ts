import { systemClock } from '../../../clock.ts';
import { MulliganError, StoreUnavailableError } from '../../../errors.ts';
import type { Address } from './address.ts';
import { BorrowedClient } from './borrowed-client.ts';
import { ConnectionLimiter } from './connection-limiter.ts';
import { type ClientLike, type Driver, type DriverClient, type DriverPool, ignore, loadDriver } from './driver.ts';
import { isOthersStatement, isProtocolViolation, noHost, toStoreError } from './failure.ts';
import type { Hosts } from './hosts.ts';
import { type Statement, unnamed } from './statement.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const CONNECTIONS = 10;
/** Our statements are short. One that is not blocks others. */
const SESSION = { statement_timeout: 30_000, lock_timeout: 10_000, idle_in_transaction_session_timeout: 60_000 };
/** After so long without an answer perhaps none will come: a network can fail without closing a connection. */
const SILENCE_MS = 5_000;
/** The server would have ended the statement by now, and said so. */
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
    pool.on('connect', (client) => this.#clients.add(client));
    pool.on('remove', (client) => this.#clients.delete(client));
  }

  /** Rejects the calls that still wait for an answer here: none will come. */
  abandon(): void {
    void this.pool.end().catch(ignore);
    for (const client of this.#clients) void client.end().catch(ignore);
  }
}

/** The servers of one address: finds the one that can be written to, and checks again when it seems gone. */
export class HostPool implements Hosts {
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
  readonly #limiter: ConnectionLimiter;
  readonly #noAnswerMs: number;
  #mustCheck = false;

  static async open(address: Address, config: Readonly<Record<string, unknown>>): Promise<Hosts> {
    const hosts = new HostPool(await loadDriver(), address, config);
    await hosts.#current();
    return hosts;
  }

  private constructor(driver: Driver, address: Address, config: Readonly<Record<string, unknown>>) {
    this.#driver = driver;
    this.#address = address;
    this.#config = config;
    this.name = address.name;
    this.#most = typeof config.max === 'number' ? config.max : CONNECTIONS;
    this.#limiter = new ConnectionLimiter(this.#most);
    // The driver's own limit rejects with an error without a class or a code.
    this.#noAnswerMs = typeof config.query_timeout === 'number' ? config.query_timeout : NO_ANSWER_MS;
  }

  get ownSessions(): boolean {
    return this.#ownSessions;
  }

  async query(statement: Statement, use: 'statement' | 'read'): Promise<{ rows: unknown[] }> {
    const done = await this.#limiter.take(use);
    try {
      return await this.#query(statement);
    } finally {
      done();
    }
  }

  async #query(statement: Statement): Promise<{ rows: unknown[] }> {
    const host = await this.#current();
    const client = await this.#borrow(host);
    const watch = this.#watch(host, client);
    try {
      return await client.queryOnce(this.name, () => this.#send(client, statement));
    } finally {
      watch.cancel();
    }
  }

  async #send(client: BorrowedClient, statement: Statement): Promise<{ rows: unknown[] }> {
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

  /** Ends a connection whose answer cannot come any more. A statement that the server still works on is left alone. */
  #watch(host: Host, client: BorrowedClient): { cancel(): void } {
    let ended = false;
    const check = async (): Promise<void> => {
      const isWorking = await this.#isWorking(host, client).catch(() => {
        this.recheck();
        return false;
      });
      if (ended) return;
      if (isWorking) timer = systemClock.after(SILENCE_MS, check);
      else client.release(true);
    };
    let timer = systemClock.after(SILENCE_MS, check);
    return {
      cancel(): void {
        ended = true;
        timer.cancel();
      },
    };
  }

  async #isWorking(host: Host, { processID }: BorrowedClient): Promise<boolean> {
    // A pooler's number says nothing about the server's processes; the longest wait has to do.
    if (!this.#ownSessions || typeof processID !== 'number') return true;
    const asked = `SELECT 1 FROM pg_stat_activity WHERE pid = ${processID} AND state = 'active'`;
    return (await this.#ask(host, asked)).length > 0;
  }

  async connect(): Promise<BorrowedClient> {
    const onReleased = await this.#limiter.take('transaction');
    try {
      return await this.#borrow(await this.#current(), onReleased);
    } catch (error) {
      onReleased();
      throw error;
    }
  }

  #borrow({ pool }: Host, onReleased: () => void = ignore): Promise<BorrowedClient> {
    return BorrowedClient.from(pool, { noAnswerMs: this.#noAnswerMs, onReleased });
  }

  async client(): Promise<ClientLike> {
    const url = this.#host?.url ?? (this.#address.urls[0] as string);
    const client = new this.#driver.Client(this.#settings(url));
    client.on('error', () => this.#onBroken());
    await client.connect();
    return client;
  }

  recheck(): void {
    this.#mustCheck = true;
  }

  onBroken(listener: () => void): void {
    this.#onBroken = listener;
  }

  async close(): Promise<void> {
    await this.#finding?.catch(ignore);
    await this.#host?.pool.end();
  }

  async #current(): Promise<Host> {
    if (this.#host !== null && !this.#mustCheck) return this.#host;
    this.#finding ??= this.#find().finally(() => {
      this.#finding = null;
    });
    return this.#finding;
  }

  async #find(): Promise<Host> {
    this.#mustCheck = false;
    const known = this.#host;
    const troubles = new Map<string, unknown>();
    try {
      if (known !== null && (await this.#isWritable(known))) return known;
    } catch (error) {
      this.#refuseBug(error);
    }
    // The known one is tried last, with new connections: the old ones may have been cut silently.
    const others = this.#address.urls.filter((url) => url !== known?.url);
    for (const url of known === null ? others : [...others, known.url]) {
      try {
        return await this.#take(url);
      } catch (error) {
        this.#refuseBug(error);
        troubles.set(new URL(url).host, error);
      }
    }
    this.#mustCheck = true;
    throw noHost(troubles, this.name);
  }

  /** A mistake of ours is no reason to try the next host. */
  #refuseBug(error: unknown): void {
    if (!(toStoreError(error, this.name) instanceof MulliganError)) throw error;
  }

  async #take(url: string): Promise<Host> {
    const host = new Host(url, new this.#driver.Pool(this.#settings(url)), () => this.#onBroken());
    try {
      if (!(await this.#isWritable(host))) {
        throw new StoreUnavailableError('the server only reads');
      }
    } catch (error) {
      host.abandon();
      if (!this.#ownSessions || !isProtocolViolation(error)) throw error;
      return this.#takeWithoutSettings(url);
    }
    if (this.#ownSessions) this.#ownSessions = await this.#hasItsSettings(host);
    this.#host?.abandon();
    this.#host = host;
    return host;
  }

  async #takeWithoutSettings(url: string): Promise<Host> {
    this.#ownSessions = false;
    try {
      return await this.#take(url);
    } catch (error) {
      this.#ownSessions = true;
      throw error;
    }
  }

  /** A pooler may also take the settings and keep them to itself; what was asked for is then not there. */
  async #hasItsSettings(host: Host): Promise<boolean> {
    const name = 'idle_in_transaction_session_timeout';
    const [row] = await this.#ask(host, `SELECT setting::int AS ms FROM pg_settings WHERE name = '${name}'`);
    return (row as { ms: number }).ms === this.#settings(host.url)[name];
  }

  /** A single host is taken as it is: its statements will fail if it only reads. */
  async #isWritable(host: Host): Promise<boolean> {
    const asked = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool AS ro";
    const [row] = await this.#ask(host, asked);
    return this.#address.urls.length === 1 || !(row as { ro: boolean }).ro;
  }

  /** Something that is answered at once, or not at all. */
  async #ask(host: Host, text: string): Promise<unknown[]> {
    const client = await this.#borrow(host);
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
      keepAlive: true,
      ...(this.#ownSessions && SESSION),
      ...this.#config,
      Client: this.#driver.Client,
      query_timeout: undefined,
      // One more than is ever in use, to check on the others.
      max: this.#most + 1,
    };
  }
}
