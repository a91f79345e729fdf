import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock } from '../../clock.ts';
import type { MulliganError } from '../../errors.ts';
import {
  isRead,
  type OftenIdleVerb,
  type ReadVerb,
  rowOf,
  type VerbName,
  type WriteVerb,
  writeVerbs,
} from '../verbs.ts';
import { change } from './change.ts';
import { claim, claimNothing } from './claim.ts';
import { claimGated, claimGatedNothing } from './claim-gated.ts';
import { claimLimited, claimLimitedNothing } from './claim-limited.ts';
import { cancelRequested, ended } from './ended.ts';
import { enqueue } from './enqueue.ts';
import { errorGroups } from './error-groups.ts';
import { errorHistory } from './error-history.ts';
import { expired, expiredNothing } from './expired.ts';
import { isBusy, toStoreError } from './failure.ts';
import { forecast } from './forecast.ts';
import { changeGate, report } from './gates.ts';
import { heartbeat } from './heartbeat.ts';
import { history, rollUp, rollUpNothing } from './history.ts';
import { InPlace } from './in-place.ts';
import { ledger } from './ledger.ts';
import { permit, permitNothing, writeLimits } from './limit-orders.ts';
import { logs } from './log.ts';
import { recall, remember } from './memo.ts';
import { cancel, hold, release } from './operate.ts';
import { operations } from './operations.ts';
import { Outage } from './outage.ts';
import { prune } from './prune.ts';
import { get, queues, runs, stats } from './read.ts';
import { gateHistory, gates } from './read-gates.ts';
import { limitKeys, limits } from './read-limits.ts';
import { retention, writeRetention } from './retention.ts';
import { schedules, writeSchedule } from './schedules.ts';
import { count, list } from './select.ts';
import { Session } from './session.ts';
import { settle } from './settle.ts';
import { register, workers } from './workers.ts';

type Verb = (session: Session, ...args: never[]) => unknown;

const writes: Record<WriteVerb, Verb> = {
  heartbeat,
  report,
  settle,
  remember,
  enqueue,
  writeSchedule,
  cancel,
  change,
  hold,
  release,
  changeGate,
  writeLimits,
  writeRetention,
  permit,
  prune,
  rollUp,
  register,
  expired,
  claimGated,
  claimLimited,
  claim,
};
const reads: Record<ReadVerb, Verb> = {
  get,
  list,
  count,
  runs,
  logs,
  recall,
  stats,
  forecast,
  history,
  queues,
  gates,
  gateHistory,
  limits,
  limitKeys,
  retention,
  operations,
  schedules,
  workers,
  errorGroups,
  errorHistory,
  ledger,
  ended,
  cancelRequested,
};
/** These answer null when it takes a write. */
const idle: Record<OftenIdleVerb, Verb> = {
  claim: claimNothing,
  claimGated: claimGatedNothing,
  claimLimited: claimLimitedNothing,
  permit: permitNothing,
  expired: expiredNothing,
  rollUp: rollUpNothing,
};

function isOftenIdle(verb: VerbName): verb is OftenIdleVerb {
  return verb in idle;
}

const rank = new Map<VerbName, number>(writeVerbs.map((verb, index) => [verb, index]));

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

interface IndexedCall {
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
  readonly #outage: Outage;
  readonly #dataVersion: StatementSync;
  #version: number;
  /** Another connection has committed since the last calls. */
  #hasOthers = false;

  constructor(db: DatabaseSync, path: string, clock: Clock) {
    this.#db = db;
    this.#path = path;
    this.#clock = clock;
    this.#outage = new Outage(clock);
    this.#session = new Session(db, this.#outage, () => clock.random());
    this.#inPlace = new InPlace(path);
    this.#dataVersion = db.prepare('PRAGMA data_version');
    this.#version = this.dataVersion();
  }

  /** Throws only when nothing happened: the file was busy (call again), or is gone. All other failures are results. */
  execute(calls: readonly Call[]): Executed {
    this.#inPlace.check();
    const results: Result[] = new Array(calls.length);
    this.#session.madeWork = false;
    try {
      // A write that is under way anyway may bring what an idle claim beside it waits for.
      const isWriting = calls.some(({ verb }) => !isRead(verb) && !isOftenIdle(verb));
      const indexed = calls.map((call, index) => ({ call, index }));
      const reading = indexed.filter(({ call: { verb } }) => isRead(verb) || !isWriting);
      const writing = indexed.filter(({ call: { verb } }) => !isRead(verb) && isWriting);
      if (reading.length > 0) writing.push(...this.#read(reading, results));
      writing.sort((a, b) => (rank.get(a.call.verb) as number) - (rank.get(b.call.verb) as number));
      if (writing.length > 0) this.#write(writing, results);
    } catch (error) {
      this.#noticeOthers();
      if (isBusy(error)) this.#outage.busy();
      throw error;
    }
    this.#noticeOthers();
    const shared = this.#hasOthers;
    this.#hasOthers = false;
    return { results, madeWork: this.#session.madeWork, shared };
  }

  /** Changes whenever another connection has committed. */
  dataVersion(): number {
    return (this.#dataVersion.get() as { data_version: number }).data_version;
  }

  close(): void {
    this.#db.close();
  }

  #noticeOthers(): void {
    const before = this.#version;
    try {
      this.#version = this.dataVersion();
    } catch {
      // It cannot be told; what was done is done all the same.
      this.#version = before - 1;
    }
    if (this.#version === before) return;
    this.#hasOthers = true;
    this.#outage.committed();
  }

  /** Answers the calls that take no write transaction; returns the others. */
  #read(calls: readonly IndexedCall[], results: Result[]): IndexedCall[] {
    this.#db.exec('BEGIN');
    try {
      this.#session.now = Math.floor(this.#clock.now());
      this.#session.checkIdentity();
      return calls.filter(({ call: { verb, args }, index }) => {
        const result = this.#readOne(isRead(verb) ? reads[verb] : idle[verb as OftenIdleVerb], args);
        if ('value' in result && result.value === null) return true;
        results[index] = result;
        return false;
      });
    } finally {
      if (this.#db.isTransaction) this.#db.exec('COMMIT');
    }
  }

  #readOne(verb: Verb, args: readonly unknown[]): Result {
    try {
      return { value: verb(this.#session, ...(args as never[])) };
    } catch (error) {
      if (isBusy(error)) throw error;
      return { error: toStoreError(error, this.#path) };
    }
  }

  /** Savepoints cost a copy of every page that is written, and calls hardly ever fail: there are none until one did. */
  #write(calls: readonly IndexedCall[], results: Result[]): void {
    if (this.#attempt(calls, results, (call) => ({ value: this.#perform(call) })) || calls.length === 1) return;
    this.#attempt(calls, results, (call) => this.#savepoint(call));
  }

  /** False when it failed: then nothing happened, and each call has the error. */
  #attempt(calls: readonly IndexedCall[], results: Result[], perform: (call: Call) => Result): boolean {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      // The lock may have taken a while: leases and due times count from when it was got.
      this.#session.now = Math.floor(this.#clock.now());
      this.#session.checkIdentity();
      for (const { call, index } of calls) results[index] = perform(call);
      this.#db.exec('COMMIT');
      this.#outage.committed();
      return true;
    } catch (error) {
      this.#session.forget();
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      for (const { index } of calls) results[index] = { error: toStoreError(error, this.#path) };
      return false;
    }
  }

  #perform({ verb, args }: Call): unknown {
    const value = writes[verb as WriteVerb](this.#session, ...(args as never[]));
    this.#session.endCall();
    if (rowOf(verb).wakes === 'workers') this.#session.madeWork = true;
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
      this.#session.forget();
      return { error: toStoreError(error, this.#path) };
    }
  }
}
