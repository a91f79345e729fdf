/**
 * `statement`: claims, heartbeats, settlements, enqueues: short, and leases depend on them. `read`: may be slow.
 * `transaction`: a handler's, as long as the handler likes.
 */
export type Use = 'statement' | 'read' | 'transaction';

/** A quarter of the connections is enough for reads. */
const READ_PART = 1 / 4;
/** So many are left to statements while reads and transactions have all of theirs, where there are enough. */
const KEPT_FOR_STATEMENTS = 2;
/** One for each use. */
export const FEWEST_CONNECTIONS = 3;

/**
 * Decides which call gets the next connection. Slow reads and handlers' transactions take no more than their part, so
 * that heartbeats always get through. The driver's own queue cannot do that; it also times out calls that wait long,
 * as if the server were gone.
 */
export class ConnectionLimiter {
  readonly #most: Readonly<Record<Use, number>>;
  readonly #inUse: Record<Use, number> = { statement: 0, read: 0, transaction: 0 };
  readonly #waiting: Record<Use, (() => void)[]> = { statement: [], read: [], transaction: [] };

  constructor(connections: number) {
    const read = Math.max(1, Math.floor(connections * READ_PART));
    const transaction = Math.max(1, connections - read - KEPT_FOR_STATEMENTS);
    this.#most = { statement: connections, read, transaction };
  }

  /** Waits until this use may have a connection. Answers what gives it back. */
  async take(use: Use): Promise<() => void> {
    if (this.#isFree(use)) this.#inUse[use]++;
    else await new Promise<void>((resolve) => this.#waiting[use].push(resolve));
    return () => {
      this.#inUse[use]--;
      this.#next('statement');
      this.#next('transaction');
      this.#next('read');
    };
  }

  #isFree(use: Use): boolean {
    const { statement, read, transaction } = this.#inUse;
    return statement + read + transaction < this.#most.statement && this.#inUse[use] < this.#most[use];
  }

  #next(use: Use): void {
    if (!this.#isFree(use)) return;
    const resolve = this.#waiting[use].shift();
    if (resolve === undefined) return;
    this.#inUse[use]++;
    resolve();
  }
}
