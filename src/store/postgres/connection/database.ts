import { createHash } from 'node:crypto';
import type { Clock } from '../../../clock.ts';
import { quoted } from './address.ts';
import type { PoolClientLike } from './driver.ts';
import { isAway, isConflict, isReadOnly, readOnly, toStoreError } from './failure.ts';
import type { Hosts } from './hosts.ts';

/** For how long a transaction that stood in another's way is tried again, and how far to step back in between. */
const CONFLICT_PATIENCE_MS = 20_000;
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 1_000;

/** A shorter absence cannot have cost anybody a lease. */
const SHORTEST_ABSENCE_MS = 1_000;

/**
 * Begins a transaction with a mark that ends with it, so that one which somebody else has ended is noticed, also when
 * another was begun. A setting: a query would come before the caller's SET TRANSACTION, and a number of the transaction
 * would keep claims and vacuum waiting.
 */
export const BEGIN_MARKED = 'BEGIN; SET LOCAL mulligan.transaction = open';
const ONLY_WITHIN = " WHERE current_setting('mulligan.transaction', true) = 'open'";

const READS_ONLY = "SELECT current_setting('transaction_read_only')::bool";

const asText = (value: string): string => value;
const asBoolean = (value: string): boolean => value === 't';
/** By type: bool, int8, int2, int4, numeric. All our numbers fit into one of JavaScript's. */
const parsers: ReadonlyMap<number, (value: string) => unknown> = new Map<number, (value: string) => unknown>([
  [16, asBoolean],
  [20, Number],
  [21, Number],
  [23, Number],
  [1700, Number],
]);
const types = { getTypeParser: (oid: number): ((value: string) => unknown) => parsers.get(oid) ?? asText };

/** A call of one of our functions. Nothing about its plan depends on the values. */
const CALL = /^\s*SELECT (\* FROM )?@\.\w+\(/;

/** One statement as the driver takes it: rows as arrays, which are quicker to make than objects. */
export interface Statement extends Text {
  readonly values: unknown[];
  readonly rowMode: 'array';
  readonly types: typeof types;
}

interface Text {
  readonly text: string;
  /** By which a session may keep it prepared. Its text and nothing else is behind it, whoever shares the session. */
  readonly name?: string;
}

/** Whatever carries out statements: the pool, or one connection inside a transaction. */
export interface Runner {
  /** The end of a statement that must be part of this runner's transaction: without it, it does nothing. */
  readonly onlyWithin: string;
  query<Row extends readonly unknown[]>(sql: string, values?: unknown[]): Promise<Row[]>;
}

/** For a session that is not known to be ours alone. */
export function unnamed({ text, values, rowMode, types }: Statement): Statement {
  return { text, values, rowMode, types };
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** Statements on the schema of one queue. In them `@.` stands for the schema. */
export class Database implements Runner {
  readonly onlyWithin = '';
  readonly schema: string;
  readonly clock: Clock;
  readonly #hosts: Hosts;
  readonly #texts: Map<string, Text> = new Map();
  /** Called when the server has been away: what answers now may not know all that the one before knew. */
  onReturn: () => void = () => {};
  #awaySince: number | null = null;
  #returning: Promise<void> | null = null;
  #awayMs = 0;

  constructor(hosts: Hosts, schema: string, clock: Clock) {
    this.#hosts = hosts;
    this.schema = schema;
    this.clock = clock;
    hosts.onBroken(() => this.#lost());
  }

  get hosts(): Hosts {
    return this.#hosts;
  }

  statement(sql: string, values: unknown[]): Statement {
    return { ...this.#textOf(sql), values, rowMode: 'array', types };
  }

  text(sql: string): string {
    return this.#textOf(sql).text;
  }

  #textOf(sql: string): Text {
    let known = this.#texts.get(sql);
    if (known === undefined) {
      const text = sql.replaceAll('@.', `${quoted(this.schema)}.`);
      known = CALL.test(sql) ? { text, name: `mulligan_${digest(text)}` } : { text };
      this.#texts.set(sql, known);
    }
    return known;
  }

  /** One statement in a transaction of its own. It may be carried out twice, so it must be safe to repeat. */
  async query<Row extends readonly unknown[]>(sql: string, values: unknown[] = []): Promise<Row[]> {
    const statement = this.statement(sql, values);
    const patientUntil = this.clock.monotonic() + CONFLICT_PATIENCE_MS;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
      try {
        const { rows } = await this.#send(statement);
        return rows as Row[];
      } catch (error) {
        if (isAway(error)) this.#lost();
        if (!isConflict(error) || this.clock.monotonic() >= patientUntil) throw toStoreError(error, this.#hosts.name);
        await this.pause(pauseMs);
      }
    }
  }

  /** On one connection, as part of its marked transaction: nothing is tried again. */
  through(client: PoolClientLike): Runner {
    return {
      onlyWithin: ONLY_WITHIN,
      query: async <Row extends readonly unknown[]>(sql: string, values: unknown[] = []): Promise<Row[]> =>
        (await client.query(unnamed(this.statement(sql, values)))).rows as Row[],
    };
  }

  /** For how long this process could not reach the server, since this was last asked for; 0 when it always could. */
  takeAwayMs(): number {
    const awayMs = this.#awayMs;
    this.#awayMs = 0;
    return awayMs;
  }

  close(): Promise<void> {
    return this.#hosts.close();
  }

  #lost(): void {
    this.#awaySince ??= this.clock.monotonic();
    this.#hosts.doubt();
  }

  async #send(statement: Statement): Promise<{ rows: unknown[] }> {
    if (this.#awaySince === null) return this.#hosts.query(statement);
    try {
      await this.#comeBack();
    } catch (error) {
      if (!isReadOnly(error)) throw error;
      return this.#onlyRead(statement);
    }
    return this.#hosts.query(statement);
  }

  /** Before anything else, or the first look for expired leases would find all of them. */
  #comeBack(): Promise<void> {
    this.#returning ??= this.#pardon().finally(() => {
      this.#returning = null;
    });
    return this.#returning;
  }

  async #pardon(): Promise<void> {
    // How long it was away is known only once it has answered. A server that only reads is still away for leases.
    const { rows } = await this.#hosts.query(this.statement(READS_ONLY, []));
    if ((rows as [boolean][])[0]?.[0]) throw readOnly();
    const awayMs = Math.ceil(this.clock.monotonic() - (this.#awaySince as number));
    if (awayMs >= SHORTEST_ABSENCE_MS) this.#awayMs = Math.max(this.#awayMs, awayMs);
    this.#awaySince = null;
    this.onReturn();
  }

  /** What only reads can go on; what writes must not, not even if the server takes it again at this very moment. */
  async #onlyRead(statement: Statement): Promise<{ rows: unknown[] }> {
    const client = await this.#hosts.connect();
    let broken = true;
    try {
      await client.query('BEGIN READ ONLY');
      const answer = await client.query(unnamed(statement));
      await client.query('COMMIT');
      broken = false;
      return answer;
    } finally {
      client.release(broken);
    }
  }

  /** About this long, so that those who wait for the same do not all come at once. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.after(ms * (0.5 + this.clock.random()), resolve));
  }
}
