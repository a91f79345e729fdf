import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { RetryPolicy } from '../../retry/policy.ts';
import { Errors } from './errors.ts';
import { LastText } from './last-text.ts';
import { AT, type ClaimedRow } from './packed-claim.ts';
import { ADD_TALLY, Tally } from './tally.ts';
import { Streams, Words } from './words.ts';

/** One connection and what it remembers between statements. The verbs' functions all take one. */
export class Session {
  readonly db: DatabaseSync;
  readonly words: Words;
  readonly streams: Streams;
  readonly errors: Errors;
  /** Store time of the transaction under way. */
  now = 0;
  /** Set by a verb that made work claimable at once. */
  madeWork = false;
  /** What this connection claimed and has not settled. */
  readonly inHand: InHand = new InHand();
  readonly policyText: LastText = new LastText();
  readonly decisionText: LastText = new LastText();
  readonly #tally: Tally = new Tally();
  readonly #statements: Map<string, StatementSync> = new Map();
  readonly #policies: Map<number, RetryPolicy> = new Map();

  constructor(db: DatabaseSync) {
    this.db = db;
    this.words = new Words(db);
    this.streams = new Streams(db);
    this.errors = new Errors(db);
  }

  /** A statement, prepared once per connection. */
  sql(text: string): StatementSync {
    return this.#statements.get(text) ?? this.#prepare(text);
  }

  /** One whose rows come as arrays, which are quicker to make than objects: for the statements of every run. */
  arrays(text: string): StatementSync {
    const known = this.#statements.get(text);
    if (known) return known;
    const statement = this.#prepare(text);
    statement.setReturnArrays(true);
    return statement;
  }

  #prepare(text: string): StatementSync {
    const statement = this.db.prepare(text);
    this.#statements.set(text, statement);
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

  /** What the call under way has added up. */
  writeCounts(): void {
    this.#tally.write(this.sql(ADD_TALLY));
    this.errors.write();
  }

  /** A rollback may take back numbers that are remembered here. */
  rolledBack(): void {
    this.#tally.clear();
    this.errors.forget();
    this.inHand.clear();
    this.words.forget();
    this.streams.forget();
    this.#policies.clear();
  }
}

/** What a settlement must know of a job; `attempt` counts the run that is being settled. */
export interface HeldRow {
  readonly seq: number;
  readonly attempt: number;
  readonly homeStream: number;
  readonly name: number;
}

/** More than any worker holds; beyond it, settling looks the job up. */
const MOST_IN_HAND = 50_000;

/** Saves settling a look at the row: it was here when it was claimed. Only a hint: the fence is in the write. */
export class InHand {
  readonly #rows: Map<string, ClaimedRow> = new Map();

  add(row: ClaimedRow): void {
    if (this.#rows.size >= MOST_IN_HAND) this.#rows.clear();
    this.#rows.set(row[AT.id], row);
  }

  take(id: string, run: number): HeldRow | null {
    const row = this.#rows.get(id);
    if (row === undefined || row[AT.runs] !== run) return null;
    this.#rows.delete(id);
    return { seq: row[AT.seq], attempt: row[AT.attempts], homeStream: row[AT.homeStream], name: row[AT.name] };
  }

  clear(): void {
    this.#rows.clear();
  }
}
