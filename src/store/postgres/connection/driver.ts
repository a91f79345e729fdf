import { ConfigError } from '../../../errors.ts';
import { ConnectionError, connectionError, UnreadableAnswerError } from './connection-error.ts';
import type { Statement } from './statement.ts';

/* The package `pg`, as far as it is used here. Its own types stay outside: a program without PostgreSQL does not have it. */

/** A `pg` pool, as far as we use it. */
export interface PoolLike {
  query(statement: Statement): Promise<{ rows: unknown[] }>;
  connect(): Promise<PoolClientLike>;
  end?(): Promise<void>;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  removeListener?(event: 'error', listener: (error: Error) => void): unknown;
}

export interface PoolClientLike {
  query(statement: Statement): Promise<{ rows: unknown[] }>;
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
  release(error?: Error | boolean): void;
  on?(event: 'error' | 'end', listener: (error: Error) => void): unknown;
  removeListener?(event: 'error' | 'end', listener: (error: Error) => void): unknown;
  /** As the server last said: idle, in a transaction, or in one that has failed. Not every version of `pg` has it. */
  getTransactionStatus?(): 'I' | 'T' | 'E' | null;
  /** Of the server's process. */
  readonly processID?: number | null;
}

/** A connection of its own, for LISTEN and migrations. */
export interface ClientLike {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
  end(): Promise<void> | void;
  on(event: 'notification', listener: (message: { payload?: string | undefined }) => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
}

export interface DriverPool extends PoolLike {
  end(): Promise<void>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'connect' | 'remove', listener: (client: DriverClient) => void): unknown;
}

export interface DriverClient {
  end(): Promise<void>;
  on(event: 'error', listener: () => void): unknown;
}

type Connected = (error?: Error) => void;

interface PgStream {
  on(event: string, listener: (chunk: Uint8Array) => void): unknown;
  destroy(error: Error): void;
}

interface PgClient extends ClientLike {
  connect(callback?: Connected): Promise<unknown> | undefined;
  /** Not documented, but the same in all versions of pg 8. */
  readonly connection?: {
    attachListeners(stream: PgStream): void;
    on(event: string, listener: () => void): unknown;
  };
  readonly password?: unknown;
}

export interface Driver {
  readonly Pool: new (config: Record<string, unknown>) => DriverPool;
  readonly Client: new (config: Record<string, unknown>) => PgClient;
}

export async function loadDriver(): Promise<Driver> {
  try {
    const { default: pg } = (await import('pg')) as unknown as { default: Driver };
    return { Pool: pg.Pool, Client: safeClient(pg.Client) };
  } catch (error) {
    throw new ConfigError('PostgreSQL needs the package pg beside mulligan: npm install pg', { cause: error });
  }
}

/** A client of `pg` whose connection errors have a class, and whose errors never end the process. */
function safeClient(Client: Driver['Client']): Driver['Client'] {
  return class SafeClient extends Client {
    #asksForPassword = false;

    constructor(config: Record<string, unknown>) {
      super(config);
      // Without a listener an error would end the process.
      this.on('error', ignore);
      const { connection } = this;
      if (connection === undefined) return;
      const asks = (): void => {
        this.#asksForPassword = true;
      };
      for (const kind of ['CleartextPassword', 'MD5Password', 'SASL']) connection.on(`authentication${kind}`, asks);
      const attach = connection.attachListeners;
      connection.attachListeners = (stream) => attach.call(connection, withoutThrowing(stream));
    }

    override connect(callback?: Connected): Promise<unknown> | undefined {
      if (callback === undefined)
        return super.connect()?.catch((error: unknown) => Promise.reject(this.#explained(error)));
      return super.connect((error, ...rest) => callback(error && (this.#explained(error) as Error), ...rest));
    }

    #explained(error: unknown): unknown {
      const explained = connectionError(error);
      if (!(explained instanceof ConnectionError) || !this.#asksForPassword || this.password) return explained;
      return new ConnectionError(error, 'no password');
    }
  };
}

/**
 * `pg` reads answers in the stream's data event, where an error that is thrown (an answer longer than the longest
 * string, for example) would end the process. It ends the connection instead, and so rejects the query.
 */
function withoutThrowing(stream: PgStream): PgStream {
  return {
    on(event, listener) {
      if (event !== 'data') return stream.on(event, listener);
      return stream.on(event, (chunk) => {
        try {
          listener(chunk);
        } catch (error) {
          stream.destroy(new UnreadableAnswerError(error));
        }
      });
    },
    destroy: (error) => stream.destroy(error),
  };
}

export function ignore(): void {}
