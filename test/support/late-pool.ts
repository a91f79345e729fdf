import pg from 'pg';
import type { PoolClientLike, PoolLike } from '../../src/store/postgres/connection/driver.ts';
import type { Statement } from '../../src/store/postgres/connection/statement.ts';

const LOOK_MS = 5;
const WAITS_FOR_LOCK = `SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'`;

/** A transaction that the test ends. */
export interface OpenTransaction {
  /** Commits it; carries out its statement before, if it has not been yet. */
  commit(): void;
}

/** The statement to stop at. With a `lock`, the transaction takes that lock and stops before its statement, else after it. */
interface Stop {
  readonly text: RegExp;
  readonly lock: string | null;
  reached(transaction: OpenTransaction): void;
}

/**
 * A `pg` pool for tests of what overlaps. A statement that was announced with `keepOpen` is carried out, and its
 * transaction stays open until the test commits it: others cannot see what it wrote, and wait for its locks.
 */
export class LatePool implements PoolLike, AsyncDisposable {
  readonly options: { readonly max: number } = { max: 20 };
  readonly #pool: pg.Pool;
  #next: Stop | null = null;
  readonly #working: Set<number> = new Set();

  constructor(url: string) {
    this.#pool = new pg.Pool({ connectionString: url, max: this.options.max });
  }

  /** The transaction of the next statement whose text matches, as soon as the server has carried it out. */
  keepOpen(text: RegExp): Promise<OpenTransaction> {
    return this.#stopAt(text, null);
  }

  /** The same, but as soon as it has taken this lock, and before its statement. */
  lockFirst(text: RegExp, lock: string): Promise<OpenTransaction> {
    return this.#stopAt(text, lock);
  }

  #stopAt(text: RegExp, lock: string | null): Promise<OpenTransaction> {
    return new Promise((reached) => {
      this.#next = { text, lock, reached };
    });
  }

  /** Answers true as soon as a statement of this pool waits for a lock, false when the call has ended before. */
  async waitsForLock(call: Promise<unknown>): Promise<boolean> {
    let ended = false;
    const end = (): void => {
      ended = true;
    };
    call.then(end, end);
    while (!ended) {
      for (const pid of this.#working) {
        if ((await this.#pool.query(WAITS_FOR_LOCK, [pid])).rows.length > 0) return true;
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    return false;
  }

  async query(statement: Statement): Promise<{ rows: unknown[] }> {
    const client = await this.connect();
    try {
      return await client.query(statement);
    } finally {
      client.release();
    }
  }

  async connect(): Promise<PoolClientLike> {
    const client = await this.#pool.connect();
    const send = client.query.bind(client) as unknown as PoolClientLike['query'];
    const { processID } = client as unknown as { processID: number };
    const query = async (statement: Statement | string, values?: unknown[]): Promise<{ rows: unknown[] }> => {
      const stop = this.#take(typeof statement === 'string' ? statement : statement.text);
      const paused = (): Promise<void> => new Promise((resolve) => stop?.reached({ commit: resolve }));
      this.#working.add(processID);
      try {
        if (stop === null) return await send(statement as string, values);
        await send('BEGIN');
        if (stop.lock !== null) {
          await send(stop.lock);
          await paused();
        }
        const answer = await send(statement as string, values);
        if (stop.lock === null) await paused();
        await send('COMMIT');
        return answer;
      } finally {
        this.#working.delete(processID);
      }
    };
    return {
      query,
      release: (error) => client.release(error),
      on: (event, listener) => client.on(event, listener),
      removeListener: (event, listener) => client.removeListener(event, listener),
      processID,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end();
  }

  #take(text: string): Stop | null {
    const next = this.#next;
    if (next === null || !next.text.test(text)) return null;
    this.#next = null;
    return next;
  }
}
