import { systemClock } from '../../../clock.ts';
import { codeOf, connectionError } from './connection-error.ts';
import { ignore, type PoolClientLike, type PoolLike } from './driver.ts';
import { isAway, withRole } from './failure.ts';
import type { Statement } from './statement.ts';

export interface BorrowOptions {
  /** After so long without an answer none will come, and the connection is ended. Left out: it is waited for. */
  readonly noAnswerMs?: number;
  /** True when the pool's own options make queries fail after a time, with an error that has no code. */
  readonly timesOut?: boolean;
  readonly onReleased?: () => void;
}

/** A connection of a pool while it is ours. Its errors say whether it has broken, and it is given back once. */
export class BorrowedClient implements PoolClientLike {
  readonly #client: PoolClientLike;
  readonly #options: BorrowOptions;
  #hasEnded = false;
  #isReleased = false;

  static async from(pool: PoolLike, options: BorrowOptions = {}): Promise<BorrowedClient> {
    try {
      return new BorrowedClient(await pool.connect(), options);
    } catch (error) {
      throw connectionError(error);
    }
  }

  private constructor(client: PoolClientLike, options: BorrowOptions) {
    this.#client = client;
    this.#options = options;
    // Without a listener, a connection that breaks between two queries would end the process.
    client.on?.('error', this.#ended);
    client.on?.('end', this.#ended);
  }

  readonly #ended = (): void => {
    this.#hasEnded = true;
  };

  get processID(): number | null {
    return this.#client.processID ?? null;
  }

  /** For LISTEN. */
  on(event: 'error' | 'end' | 'notification', listener: (message: never) => void): unknown {
    return this.#client.on?.(event as 'error', listener as (error: Error) => void);
  }

  getTransactionStatus(): 'I' | 'T' | 'E' | null {
    return this.#client.getTransactionStatus?.() ?? null;
  }

  async query(statement: Statement | string, values?: unknown[]): Promise<{ rows: unknown[] }> {
    const { noAnswerMs, timesOut = false } = this.#options;
    const timer = noAnswerMs === undefined ? null : systemClock.after(noAnswerMs, () => this.release(true));
    try {
      return await this.#client.query(statement as string, values);
    } catch (error) {
      const isLost = this.#hasEnded || this.#isReleased;
      if (isLost || (timesOut && codeOf(error) === '')) throw connectionError(error);
      throw error;
    } finally {
      timer?.cancel();
    }
  }

  /**
   * Sends the one statement that the connection was borrowed for, then gives it back; one that is of no more use is ended.
   * `where` names the server in messages.
   */
  async queryOnce(where: string, send: () => Promise<{ rows: unknown[] }>): Promise<{ rows: unknown[] }> {
    try {
      const answer = await send();
      this.release();
      return answer;
    } catch (error) {
      const explained = await withRole(error, where, (text) => this.query(text));
      this.release(isAway(error));
      throw explained;
    }
  }

  release(error?: Error | boolean): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#client.removeListener?.('error', this.#ended);
    this.#client.removeListener?.('end', this.#ended);
    // A pool that ends a connection does not listen to it meanwhile.
    if (error) this.#client.on?.('error', ignore);
    this.#client.release(error);
    this.#options.onReleased?.();
  }
}
