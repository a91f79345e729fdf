import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { RetryPolicy } from '../../retry/policy.ts';
import { prepareTally, Tally } from './tally.ts';
import { Streams, Words } from './words.ts';

/** One connection and what it remembers between statements. The verbs' functions all take one. */
export class Session {
  readonly db: DatabaseSync;
  readonly words: Words;
  readonly streams: Streams;
  /** Store time of the transaction under way. */
  now = 0;
  /** Set by a verb that made work claimable at once. */
  madeWork = false;
  #tally: Tally = new Tally();
  readonly #statements: Map<string, StatementSync> = new Map();
  readonly #policies: Map<number, RetryPolicy> = new Map();
  readonly #writeTally: StatementSync;

  constructor(db: DatabaseSync) {
    this.db = db;
    this.words = new Words(db);
    this.streams = new Streams(db);
    this.#writeTally = prepareTally(db);
  }

  /** A statement, prepared once per connection. */
  sql(text: string): StatementSync {
    let statement = this.#statements.get(text);
    if (!statement) {
      statement = this.db.prepare(text);
      this.#statements.set(text, statement);
    }
    return statement;
  }

  /** Policies are interned, so jobs of one definition share one object. */
  policy(id: number): RetryPolicy {
    let policy = this.#policies.get(id);
    if (!policy) {
      policy = JSON.parse(this.words.text(id)) as RetryPolicy;
      this.#policies.set(id, policy);
    }
    return policy;
  }

  count(stream: number, name: number, what: string, amount = 1): void {
    this.#tally.add(stream, name, what, amount);
  }

  writeCounts(): void {
    this.#tally.write(this.#writeTally);
    this.#tally = new Tally();
  }

  /** A rollback may take back numbers that are remembered here. */
  rolledBack(): void {
    this.#tally = new Tally();
    this.words.forget();
    this.streams.forget();
    this.#policies.clear();
  }
}
