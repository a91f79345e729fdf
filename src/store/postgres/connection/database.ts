import type { Clock } from '../../../clock.ts';
import { StoreUnavailableError } from '../../../errors.ts';
import { doubling, type RetryingOptions, withRetries } from '../../../retrying.ts';
import { functions } from '../schema/functions.ts';
import { IDENTITY } from '../schema/identity.ts';
import { Absence } from './absence.ts';
import type { PoolClientLike } from './driver.ts';
import { isAway, isConflict, toStoreError } from './failure.ts';
import type { Hosts } from './hosts.ts';
import { namedText, type Statement, type StatementText, statementOf, unnamed } from './statement.ts';

/** A transaction that conflicted with another is simply tried again. */
const afterConflicts: RetryingOptions = {
  policy: doubling(10, 1_000),
  isTransient: isConflict,
  giveUpAfterMs: 20_000,
};

/**
 * Begins a transaction with a mark that ends with it, so that a transaction which the handler has ended is noticed, also
 * when it has begun another. The mark is a setting, because a query would come before the handler's SET TRANSACTION, and
 * a transaction id would keep claims and vacuum waiting.
 */
export const BEGIN_MARKED = 'BEGIN; SET LOCAL mulligan.transaction = open';
const ONLY_WITHIN = " WHERE current_setting('mulligan.transaction', true) = 'open'";

/** A call of one of our functions. Nothing about its plan depends on the values. */
const CALL = /^\s*SELECT (\* FROM )?@\.\w+\(/;

/** What carries out statements: the pool, or one connection inside a transaction. */
export interface Runner {
  /** The end of a statement that does nothing outside of this runner's transaction. */
  readonly onlyWithin: string;
  query<Row extends readonly unknown[]>(sql: string, values?: unknown[]): Promise<Row[]>;
}

/** What a server tells about a schema when it is opened. */
export interface SchemaFacts {
  /** Which tables these are: see schema/identity.ts. */
  readonly identity: string;
  /** The server ends a statement that takes longer; Infinity when it ends none. */
  readonly statementTimeoutMs: number;
}

const FACTS = `
  SELECT (SELECT ${IDENTITY} FROM @.schema_identity),
    (SELECT setting FROM pg_catalog.pg_settings WHERE name = 'statement_timeout')`;

/** Statements on the schema of one queue. In them `@.` stands for the schema, and `@.name(` for our function. */
export class Database implements Runner {
  readonly onlyWithin = '';
  readonly schema: string;
  readonly clock: Clock;
  readonly #hosts: Hosts;
  readonly #texts: Map<string, StatementText> = new Map();
  readonly #absence: Absence;
  #facts: SchemaFacts = { identity: '', statementTimeoutMs: Number.POSITIVE_INFINITY };
  /** Called when the server cannot be reached: the next one that answers may not know all that this one knew. */
  onLost: () => void = () => {};

  constructor(hosts: Hosts, schema: string, clock: Clock) {
    this.#hosts = hosts;
    this.schema = schema;
    this.clock = clock;
    this.#absence = new Absence(() => clock.monotonic());
    hosts.onBroken(() => {
      this.#lost();
      this.#absence.failed();
    });
  }

  get hosts(): Hosts {
    return this.#hosts;
  }

  get identity(): string {
    return this.#facts.identity;
  }

  get statementTimeoutMs(): number {
    return this.#facts.statementTimeoutMs;
  }

  /** When the schema is opened, and again when its tables were replaced. */
  async readFacts(): Promise<void> {
    const [row] = await this.query<[identity: string, statementTimeout: string]>(FACTS);
    const [identity, statementTimeout] = row as [string, string];
    this.#facts = { identity, statementTimeoutMs: Number(statementTimeout) || Number.POSITIVE_INFINITY };
  }

  /** For how long this process could not reach the server, or waited for it, since the last call of this. */
  takeAwayMs(): number {
    return this.#absence.take();
  }

  giveBackAwayMs(awayMs: number): void {
    this.#absence.giveBack(awayMs);
  }

  statement(sql: string, values: unknown[]): Statement {
    return statementOf(this.#textOf(sql), values);
  }

  text(sql: string): string {
    return this.#textOf(sql).text;
  }

  #textOf(sql: string): StatementText {
    let known = this.#texts.get(sql);
    if (known === undefined) {
      const text = functions.resolve(sql, this.schema);
      known = CALL.test(sql) ? namedText(text) : { text };
      this.#texts.set(sql, known);
    }
    return known;
  }

  /** One statement in a transaction of its own. It may be carried out twice, so it must be safe to repeat. */
  query<Row extends readonly unknown[]>(sql: string, values: unknown[] = []): Promise<Row[]> {
    // What writes is a function of ours; the other statements look something up.
    return this.#watched<Row>(sql, values, CALL.test(sql) ? 'written' : 'read');
  }

  /** A function of ours that writes nothing, and that a claim or a rescue waits for. */
  lookUp<Row extends readonly unknown[]>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.#watched<Row>(sql, values, 'read');
  }

  async #watched<Row extends readonly unknown[]>(
    sql: string,
    values: unknown[],
    success: 'written' | 'read',
  ): Promise<Row[]> {
    const end = this.#absence.begin();
    try {
      const rows = await this.#run<Row>(sql, values, 'statement');
      end(success);
      return rows;
    } catch (error) {
      // A refusal was answered by a server that can be reached, also that a lock was not given in time.
      end(error instanceof StoreUnavailableError ? 'failed' : 'read');
      throw error;
    }
  }

  /**
   * A statement that only reads, and may be slow. Such statements get a part of the connections, so that they never keep
   * claims, heartbeats and settlements waiting.
   */
  read<Row extends readonly unknown[]>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.#run<Row>(sql, values, 'read');
  }

  async #run<Row extends readonly unknown[]>(
    sql: string,
    values: unknown[],
    use: 'statement' | 'read',
  ): Promise<Row[]> {
    const statement = this.statement(sql, values);
    try {
      const { rows } = await withRetries(this.clock, afterConflicts, () => this.#hosts.query(statement, use));
      return rows as Row[];
    } catch (error) {
      if (isAway(error)) this.#lost();
      throw toStoreError(error, this.#hosts.name);
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

  close(): Promise<void> {
    return this.#hosts.close();
  }

  #lost(): void {
    this.#hosts.recheck();
    if (!this.#absence.isOngoing) this.onLost();
  }
}
