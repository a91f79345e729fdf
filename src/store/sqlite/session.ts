import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Random } from '../../retry/jitter.ts';
import type { KnownJobs } from '../aside.ts';
import { PruneCursors } from '../retention.ts';
import type { NewJob } from '../store.ts';
import { formatPolicy, parsePolicy, type StoredPolicy } from '../stored-policy.ts';
import { Turns } from '../turns.ts';
import { ErrorCounts } from './error-counts.ts';
import { Errors } from './errors.ts';
import { InternedStrings } from './interned.ts';
import { LastText } from './last-text.ts';
import { LimitTexts } from './limit-keys.ts';
import type { Outage } from './outage.ts';
import { Partitions } from './partitions.ts';
import { type FinishedPlace, OLDEST_FINISHED } from './retention-tables.ts';
import { RunningRows } from './running.ts';
import { ADD_TALLY, Tally } from './tally.ts';

const IDENTITY = 'SELECT id FROM identity';

/** One connection and what it remembers between statements. The verbs' functions all take one. */
export class Session {
  readonly db: DatabaseSync;
  readonly strings: InternedStrings;
  readonly partitions: Partitions;
  readonly errors: Errors;
  readonly errorCounts: ErrorCounts;
  readonly outage: Outage;
  readonly random: Random;
  /** Of tiers. */
  readonly turns: Turns = new Turns();
  /** Store time of the transaction under way. */
  now = 0;
  /** The number of the last gate that was looked at for forgetting; 0 to begin with the first. */
  lastGateLookedAt = 0;
  /** The same of names. */
  lastNameLookedAt = 0;
  /** The last rate, and the last slot, that were looked at for forgetting. */
  lastRateLookedAt: readonly [name: string, key: string] = ['', ''];
  lastListLookedAt: readonly [name: string, key: string, limits: string] = ['', '', ''];
  lastSlotLookedAt: readonly [name: string, key: string, seq: number] = ['', '', 0];
  readonly pruneCursors: PruneCursors<FinishedPlace> = new PruneCursors<FinishedPlace>(OLDEST_FINISHED);
  /** Set by a verb that made work claimable at once. */
  madeWork = false;
  readonly running: RunningRows = new RunningRows();
  readonly limitTexts: LimitTexts = new LimitTexts();
  readonly policyText: LastText = new LastText();
  readonly decisionText: LastText = new LastText();
  readonly #tally: Tally = new Tally();
  readonly #statements: Map<string, StatementSync> = new Map();
  readonly #policies: Map<number, StoredPolicy> = new Map();
  #knows: { readonly text: string; readonly jobs: KnownJobs } = { text: '', jobs: new Map() };
  #identity: string | null = null;

  constructor(db: DatabaseSync, outage: Outage, random: Random) {
    this.db = db;
    this.random = random;
    this.outage = outage;
    this.strings = new InternedStrings(db);
    this.partitions = new Partitions(this);
    this.errors = new Errors(db);
    this.errorCounts = new ErrorCounts(this);
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
  policy(id: number): StoredPolicy {
    let policy = this.#policies.get(id);
    if (!policy) {
      policy = parsePolicy(this.strings.text(id));
      this.#policies.set(id, policy);
    }
    return policy;
  }

  /** Write transactions only. */
  internPolicy({ policy, version }: Pick<NewJob, 'policy' | 'version'>): number {
    return this.strings.intern(version === undefined ? this.policyText.of(policy) : formatPolicy(policy, version));
  }

  /** What a worker knows comes as the same text with each of its claims. */
  knows(text: string): KnownJobs {
    if (text !== this.#knows.text) this.#knows = { text, jobs: new Map(JSON.parse(text) as [string, number][]) };
    return this.#knows.jobs;
  }

  count(queue: number, name: number, what: string, amount = 1): void {
    this.#tally.add(queue, name, what, amount);
  }

  /** At the start of every transaction: when the tables were replaced, what is remembered here is void. */
  checkIdentity(): void {
    const { id } = this.sql(IDENTITY).get() as { id: string };
    if (id === this.#identity) return;
    if (this.#identity !== null) this.forget();
    this.#identity = id;
  }

  /** At the end of every call: writes what it has added up. */
  endCall(): void {
    this.#tally.write(this.sql(ADD_TALLY));
    this.errors.write();
    this.errorCounts.write();
    this.partitions.forget();
  }

  /** After a rollback: numbers that are remembered here may have been taken back. */
  forget(): void {
    this.#tally.clear();
    this.errors.forget();
    this.errorCounts.forget();
    this.partitions.forget();
    this.running.clear();
    this.strings.forget();
    this.pruneCursors.keep([]);
    this.#policies.clear();
  }
}
