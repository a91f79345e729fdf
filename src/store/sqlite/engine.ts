import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock } from '../../clock.ts';
import type { MulliganError } from '../../errors.ts';
import type { ClaimRequest, Store } from '../store.ts';
import { claim, claimNothing } from './claim.ts';
import { enqueue } from './enqueue.ts';
import { isBusy, toStoreError } from './failure.ts';
import { heartbeat, remember } from './heartbeat.ts';
import { InPlace } from './in-place.ts';
import { cancel, discard, hold, prune, redrive, release } from './operate.ts';
import { expired, get, list, queues, recall, runs, stats } from './read.ts';
import { Session } from './session.ts';
import { settle } from './settle.ts';

export type ReadName = 'get' | 'list' | 'runs' | 'recall' | 'stats' | 'queues' | 'expired';
export type WriteName = Exclude<keyof Store, ReadName | 'kind' | 'onWork' | 'close' | 'transactions'>;
export type VerbName = ReadName | WriteName;

type Verb = (session: Session, ...args: never[]) => unknown;

/**
 * In the order in which one transaction serves them: leases are extended before anything else, and what a
 * settlement frees can be claimed by the claim beside it.
 */
const writes: Record<WriteName, Verb> = {
  heartbeat,
  settle,
  remember,
  enqueue,
  cancel,
  redrive,
  discard,
  hold,
  release,
  prune,
  claim,
};
const reads: Record<ReadName, Verb> = { get, list, runs, recall, stats, queues, expired };

function isRead(verb: VerbName): verb is ReadName {
  return verb in reads;
}

const rank = new Map<string, number>(Object.keys(writes).map((verb, index) => [verb, index]));

export interface Call {
  readonly verb: VerbName;
  readonly args: readonly unknown[];
}

export type Result = { readonly value: unknown } | { readonly error: MulliganError };

export interface Executed {
  readonly results: Result[];
  /** Something became claimable. */
  readonly madeWork: boolean;
  /** Another connection has committed since the last calls. */
  readonly shared: boolean;
}

interface Writing {
  readonly call: Call;
  /** Where its result goes. */
  readonly index: number;
}

/** Runs the calls of one moment: all writes in one transaction, so that they share one lock and one sync. */
export class Engine {
  readonly #session: Session;
  readonly #db: DatabaseSync;
  readonly #clock: Clock;
  readonly #path: string;
  readonly #inPlace: InPlace;
  readonly #dataVersion: StatementSync;
  #version: number;

  constructor(db: DatabaseSync, path: string, clock: Clock) {
    this.#db = db;
    this.#path = path;
    this.#clock = clock;
    this.#session = new Session(db);
    this.#inPlace = new InPlace(path);
    this.#dataVersion = db.prepare('PRAGMA data_version');
    this.#version = this.dataVersion();
  }

  /** Throws only when nothing happened: the file was busy (call again), or is gone. Every other trouble is a result. */
  execute(calls: readonly Call[]): Executed {
    this.#inPlace.check();
    const results: Result[] = new Array(calls.length);
    this.#session.now = Math.floor(this.#clock.now());
    this.#session.madeWork = false;
    const writing: Writing[] = [];
    const writesAnyway = calls.some(({ verb }) => !isRead(verb) && verb !== 'claim');
    for (const [index, call] of calls.entries()) {
      const answer = this.#answerByReading(call, writesAnyway);
      if (answer) results[index] = answer;
      else writing.push({ call, index });
    }
    writing.sort((a, b) => (rank.get(a.call.verb) as number) - (rank.get(b.call.verb) as number));
    if (writing.length > 0) this.#transact(writing, results);
    return { results, madeWork: this.#session.madeWork, shared: this.#isShared() };
  }

  /** Whether another connection has committed since the last time. When that cannot be told, what was done is done all the same. */
  #isShared(): boolean {
    const before = this.#version;
    try {
      this.#version = this.dataVersion();
    } catch {
      return true;
    }
    return this.#version !== before;
  }

  /** Changes whenever another connection has committed. */
  dataVersion(): number {
    return (this.#dataVersion.get() as { data_version: number }).data_version;
  }

  close(): void {
    this.#db.close();
  }

  /**
   * Reads, and the claims of an idle worker: those must not fight for the write lock. Null when it takes a write, or
   * when there is one anyway, which may bring what the claim is waiting for.
   */
  #answerByReading({ verb, args }: Call, writesAnyway: boolean): Result | null {
    try {
      if (isRead(verb)) return { value: reads[verb](this.#session, ...(args as never[])) };
      if (verb !== 'claim' || writesAnyway) return null;
      const nothing = claimNothing(this.#session, args[0] as ClaimRequest);
      return nothing && { value: nothing };
    } catch (error) {
      if (isBusy(error)) throw error;
      return { error: toStoreError(error, this.#path) };
    }
  }

  /** Savepoints cost a copy of every page that is written, and calls hardly ever fail: there are none until one did. */
  #transact(writing: readonly Writing[], results: Result[]): void {
    if (this.#attempt(writing, results, (call) => ({ value: this.#perform(call) })) || writing.length === 1) return;
    this.#attempt(writing, results, (call) => this.#savepoint(call));
  }

  /** False when it failed: then nothing happened, and each call has the error. */
  #attempt(writing: readonly Writing[], results: Result[], perform: (call: Call) => Result): boolean {
    this.#db.exec('BEGIN IMMEDIATE');
    // The lock may have taken a while: leases and due times count from when it was got.
    this.#session.now = Math.floor(this.#clock.now());
    try {
      for (const { call, index } of writing) results[index] = perform(call);
      this.#db.exec('COMMIT');
      return true;
    } catch (error) {
      this.#rollback();
      for (const { index } of writing) results[index] = { error: toStoreError(error, this.#path) };
      return false;
    }
  }

  #perform({ verb, args }: Call): unknown {
    const value = writes[verb as WriteName](this.#session, ...(args as never[]));
    this.#session.writeCounts();
    return value;
  }

  /** One call that fails takes back only its own writes, unless SQLite itself gave up the whole transaction. */
  #savepoint(call: Call): Result {
    this.#db.exec('SAVEPOINT call');
    try {
      const value = this.#perform(call);
      this.#db.exec('RELEASE call');
      return { value };
    } catch (error) {
      if (!this.#db.isTransaction) throw error;
      this.#db.exec('ROLLBACK TO call');
      this.#db.exec('RELEASE call');
      this.#session.rolledBack();
      return { error: toStoreError(error, this.#path) };
    }
  }

  #rollback(): void {
    this.#session.rolledBack();
    if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
  }
}
