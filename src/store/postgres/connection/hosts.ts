import type { Use } from './connection-limiter.ts';
import type { ClientLike, PoolClientLike } from './driver.ts';
import type { Statement } from './statement.ts';

/** Where statements are sent. */
export interface Hosts {
  /** For messages; without a password. */
  readonly name: string;
  /** True when every connection has a session of its own on the server: LISTEN needs one. */
  readonly ownSessions: boolean;
  query(statement: Statement, use: Exclude<Use, 'transaction'>): Promise<{ rows: unknown[] }>;
  /** A connection for a transaction. It may have to wait for another transaction to end. */
  connect(): Promise<PoolClientLike>;
  /** A connection beside the pool, whose statements may take any time. */
  client(): Promise<ClientLike>;
  /** The server does not answer as it should: the next call checks whether it, or another one, does. */
  recheck(): void;
  /** Called when an idle connection broke: perhaps the server is gone. */
  onBroken(listener: () => void): void;
  close(): Promise<void>;
}
