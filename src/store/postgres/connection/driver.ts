import { ConfigError } from '../../../errors.ts';
import type { Statement } from './database.ts';

/* The package `pg`, as far as it is used here. Its own types stay outside: whoever does not use it need not have it. */

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
  on?(event: 'error', listener: (error: Error) => void): unknown;
  removeListener?(event: 'error', listener: (error: Error) => void): unknown;
  /** As the server last said: idle, in a transaction, or in one that has failed. Not every version of `pg` has it. */
  getTransactionStatus?(): 'I' | 'T' | 'E' | null;
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

export interface DriverPool extends PoolLike {
  end(): Promise<void>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'connect' | 'remove', listener: (client: DriverClient) => void): unknown;
}

export interface DriverClient {
  end(): Promise<void>;
  on(event: 'error', listener: () => void): unknown;
}

export interface Driver {
  readonly Pool: new (config: Record<string, unknown>) => DriverPool;
  readonly Client: new (config: Record<string, unknown>) => ClientLike & { connect(): Promise<unknown> };
}

export async function loadDriver(): Promise<Driver> {
  try {
    const { default: pg } = (await import('pg')) as unknown as { default: Driver };
    return pg;
  } catch (error) {
    throw new ConfigError('PostgreSQL needs the package pg beside mulligan: npm install pg', { cause: error });
  }
}

export function ignore(): void {}

/** A connection that breaks while nobody asks it anything would throw its error at the whole process. */
export function guarded(client: PoolClientLike, onReleased: () => void = ignore): PoolClientLike {
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
