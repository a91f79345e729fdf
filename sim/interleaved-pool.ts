import type pg from 'pg';
import { systemClock } from '../src/clock.ts';
import type { PoolClientLike, PoolLike } from '../src/store/postgres/connection/driver.ts';
import type { Statement } from '../src/store/postgres/connection/statement.ts';
import type { SimProcess } from './scheduler.ts';

/** How often to ask the server what a statement waits for. */
const LOOK_MS = 2;
const WAITS = `SELECT pid, pg_blocking_pids(pid) AS blockers FROM pg_stat_activity
  WHERE pid = ANY($1::int[]) AND wait_event_type = 'Lock'`;

/** When a statement starts and when its transaction commits; chance decides, and the seed brings it back. */
export interface Delays {
  statementMs(): number;
  commitMs(): number;
}

type Answer = { rows: unknown[] };

/** A connection, and what it is doing. */
interface Connection {
  readonly client: pg.PoolClient;
  readonly pid: number;
  /** The caller has begun a transaction of its own. */
  explicit: boolean;
  /** The statement that was sent last, until its answer has been passed on. */
  sent: { readonly number: number; answered: boolean; passOn(): void } | null;
}

type Sender = Connection & { readonly sent: NonNullable<Connection['sent']> };

/**
 * A `pg` pool whose statements overlap in an order that the simulation's scheduler decides. A statement becomes a
 * transaction: BEGIN and the statement now, COMMIT some virtual time later. Meanwhile other statements run, cannot see
 * what it wrote and wait for the locks that it holds; time passes, so what it wrote is committed late.
 *
 * The simulation goes on as soon as every statement that was sent has been answered or waits for a lock that an idle
 * transaction holds. So one statement at a time is at work on the server, except when a commit frees several at once.
 */
export class InterleavedPool implements PoolLike {
  /** Read by the store: how many connections there are. */
  readonly options: { readonly max: number };
  readonly #pool: pg.Pool;
  readonly #machine: SimProcess;
  readonly #delays: Delays;
  readonly #tellTime: () => Promise<unknown>;
  readonly #open: Set<Connection> = new Set();
  readonly #planned: Set<() => void> = new Set();
  readonly #stopped: PromiseWithResolvers<void> = Promise.withResolvers();
  #interleaves = false;
  #statements = 0;
  /** How many statements started while a transaction was open, and how often one waited for a lock. */
  overlaps = 0;
  lockWaits = 0;

  /** `tellTime` makes the simulation's time that of the server. */
  constructor(pool: pg.Pool, machine: SimProcess, delays: Delays, tellTime: () => Promise<unknown>) {
    this.#pool = pool;
    this.#machine = machine;
    this.#delays = delays;
    this.#tellTime = tellTime;
    this.options = { max: pool.options.max };
  }

  /** From here on; before, statements are carried out at once, since no scheduler runs. */
  start(): void {
    this.#interleaves = true;
  }

  /** Lets everything end that is under way, without the scheduler. */
  stop(): void {
    this.#interleaves = false;
    this.#stopped.resolve();
    for (const step of this.#planned) step();
    for (const { sent } of this.#sent()) if (sent.answered) sent.passOn();
  }

  async query(statement: Statement): Promise<Answer> {
    const client = await this.connect();
    try {
      return await client.query(statement);
    } finally {
      client.release();
    }
  }

  async connect(): Promise<PoolClientLike> {
    const client = await this.#pool.connect();
    const pid = (client as unknown as { processID: number }).processID;
    const connection: Connection = { client, pid, explicit: false, sent: null };
    let last: Promise<unknown> = Promise.resolve();
    return {
      query: (statement: Statement | string, values?: unknown[]) => {
        const answer = last.then(() => this.#query(connection, statement, values));
        last = answer.catch(() => {});
        return answer;
      },
      release: (error) => client.release(error),
      on: (event, listener) => client.on(event, listener),
      removeListener: (event, listener) => client.removeListener(event, listener),
      processID: pid,
    };
  }

  async #query(connection: Connection, statement: Statement | string, values?: unknown[]): Promise<Answer> {
    const { client } = connection;
    const text = typeof statement === 'string' ? statement : statement.text;
    const send = (): Promise<Answer> => client.query(statement as string, values) as unknown as Promise<Answer>;
    const [, verb] = /^\s*(\w+)/.exec(text.toUpperCase()) ?? [];
    if (verb === 'BEGIN') {
      connection.explicit = true;
      return send();
    }
    if (verb === 'COMMIT' || verb === 'ROLLBACK') {
      connection.explicit = false;
      return this.#end(connection, send);
    }
    if (connection.explicit) return this.#start(connection, send);
    if (!this.#interleaves) return send();
    // Both are sent at once; the server carries them out one after the other.
    const answer = await this.#start(connection, () => {
      client.query('BEGIN').catch(() => {});
      return send();
    }).catch(async (error: unknown) => {
      await this.#end(connection, () => client.query('ROLLBACK') as never);
      throw error;
    });
    await this.#end(connection, () => client.query('COMMIT') as never);
    return answer;
  }

  /** Sends a statement when its time has come; answers when the server has. */
  async #start(connection: Connection, send: () => Promise<Answer>): Promise<Answer> {
    if (!this.#interleaves) return send();
    await this.#step(this.#delays.statementMs());
    await this.#outside(this.#tellTime());
    if (this.#open.size > 0) this.overlaps++;
    this.#open.add(connection);
    const passedOn = Promise.withResolvers<void>();
    const sent = { number: ++this.#statements, answered: false, passOn: passedOn.resolve };
    connection.sent = sent;
    const answer = send().finally(() => {
      sent.answered = true;
      if (!this.#interleaves) sent.passOn();
    });
    answer.catch(() => {});
    await this.#outside(Promise.race([this.#rest(), this.#stopped.promise]));
    await passedOn.promise;
    connection.sent = null;
    return answer;
  }

  async #end(connection: Connection, send: () => Promise<Answer>): Promise<Answer> {
    await this.#step(this.#delays.commitMs());
    const ended = send();
    this.#open.delete(connection);
    await this.#outside(ended);
    await this.#outside(Promise.race([this.#rest(), this.#stopped.promise]));
    return ended;
  }

  /** Some virtual time later; at once when the scheduler does not run any more. */
  #step(delayMs: number): Promise<void> {
    if (!this.#interleaves) return Promise.resolve();
    return new Promise((resolve) => {
      const step = (): void => {
        this.#planned.delete(step);
        resolve();
      };
      this.#planned.add(step);
      this.#machine.scheduler.plan(this.#machine, delayMs, step);
    });
  }

  #outside<Result>(work: Promise<Result>): Promise<Result> {
    return this.#interleaves ? this.#machine.scheduler.waitFor(work) : work;
  }

  /**
   * Until nothing is at work on the server any more: what was sent is answered, or waits for an idle transaction. The
   * answers go to their callers then, in the order of the statements: who was quicker must not decide what comes next.
   */
  async #rest(): Promise<void> {
    for (let looks = 0; this.#interleaves; looks++) {
      const busy = this.#sent().filter(({ sent }) => !sent.answered);
      if (busy.length === 0 || (looks > 0 && (await this.#allWait(busy)))) break;
      await new Promise<void>((resolve) => systemClock.after(looks === 0 ? 0 : LOOK_MS, resolve));
    }
    const answered = this.#sent().filter(({ sent }) => sent.answered);
    for (const { sent } of answered.sort((a, b) => a.sent.number - b.sent.number)) sent.passOn();
  }

  #sent(): Sender[] {
    return [...this.#open].filter((one): one is Sender => one.sent !== null);
  }

  async #allWait(busy: readonly Sender[]): Promise<boolean> {
    const pids = busy.map(({ pid }) => pid);
    const { rows } = await this.#pool.query<{ pid: number; blockers: number[] }>(WAITS, [pids]);
    const blockers = new Map(rows.map((row) => [row.pid, row.blockers]));
    if (!busy.every(({ pid, sent }) => sent.answered || waitsForIdle(pid, blockers))) return false;
    this.lockWaits++;
    return true;
  }
}

/** Not so in a deadlock: the server ends that by itself. */
function waitsForIdle(pid: number, blockers: ReadonlyMap<number, readonly number[]>): boolean {
  const seen = new Set<number>();
  const next = [pid];
  for (let one = next.pop(); one !== undefined; one = next.pop()) {
    if (seen.has(one)) continue;
    seen.add(one);
    const by = blockers.get(one);
    if (by === undefined && one !== pid) return true;
    next.push(...(by ?? []));
  }
  return false;
}
