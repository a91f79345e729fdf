import { guarded, type PoolClientLike } from './driver.ts';

/** Connections that are left to statements when handlers' transactions take theirs for as long as they like. */
const KEPT_FOR_STATEMENTS = 3;

type Kind = 'statement' | 'transaction';

/**
 * Who may have a connection next. The driver's own queue gives up on those who wait long, and cannot tell a server that
 * is gone from one that is busy; nor does it keep room for the heartbeats of runs that hold a transaction.
 */
export class Turns {
  readonly #most: Readonly<Record<Kind, number>>;
  readonly #waiting: Record<Kind, (() => void)[]> = { statement: [], transaction: [] };
  #inUse = 0;
  #transactions = 0;

  constructor(connections: number) {
    this.#most = { statement: connections, transaction: Math.max(1, connections - KEPT_FOR_STATEMENTS) };
  }

  /** Answers what gives the turn back. */
  async take(kind: Kind): Promise<() => void> {
    if (!this.#isFree(kind)) await new Promise<void>((resolve) => this.#waiting[kind].push(resolve));
    else this.#count(kind, 1);
    return () => {
      this.#count(kind, -1);
      this.#next('statement');
      this.#next('transaction');
    };
  }

  /** A connection for a transaction, which has its turn until it is released. */
  async hold(connect: () => Promise<PoolClientLike>): Promise<PoolClientLike> {
    const done = await this.take('transaction');
    try {
      return guarded(await connect(), done);
    } catch (error) {
      done();
      throw error;
    }
  }

  #isFree(kind: Kind): boolean {
    if (this.#inUse >= this.#most.statement) return false;
    return kind === 'statement' || this.#transactions < this.#most.transaction;
  }

  #next(kind: Kind): void {
    if (!this.#isFree(kind)) return;
    const resolve = this.#waiting[kind].shift();
    if (resolve === undefined) return;
    this.#count(kind, 1);
    resolve();
  }

  #count(kind: Kind, change: 1 | -1): void {
    this.#inUse += change;
    if (kind === 'transaction') this.#transactions += change;
  }
}
