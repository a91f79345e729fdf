import { type Clock, checkClock, systemClock } from '../../clock.ts';
import { checkBoolean, readOptions } from '../../config.ts';
import { ClosedError } from '../../errors.ts';
import { type Forwarding, forwarding } from '../forwarding.ts';
import { isNewsToWorkers } from '../gates.ts';
import { JobsListeners } from '../jobs-listeners.ts';
import type {
  CancelAnswer,
  ChangeAnswer,
  ChangeRequest,
  Enqueued,
  GateAnswer,
  GatedClaim,
  GatedClaimRequest,
  JobsListener,
  NewJob,
  Order,
  PruneAnswer,
  ScheduleWrite,
  ScheduleWritten,
  SettleAnswer,
  Settlement,
  Store,
  Unsubscribe,
  WorkerReport,
} from '../store.ts';
import { rowOf, type VerbName } from '../verbs.ts';
import { change, operations } from './change.ts';
import { claim } from './claim.ts';
import { claimGated } from './claim-gated.ts';
import { claimLimited } from './claim-limited.ts';
import { connect } from './connection/connect.ts';
import { Database } from './connection/database.ts';
import type { PoolLike } from './connection/driver.ts';
import { isReplaced } from './connection/failure.ts';
import { cancelRequested, ended } from './ended.ts';
import { enqueue } from './enqueue.ts';
import { errorGroups } from './error-groups.ts';
import { errorHistory } from './error-history.ts';
import { expired } from './expired.ts';
import { forecast } from './forecast.ts';
import { changeGate, gateHistory, gates, report } from './gates.ts';
import { heartbeat, remember } from './heartbeat.ts';
import { history, rollUp } from './history.ts';
import { ledger } from './ledger.ts';
import { limitKeys, limits, permit, writeLimits } from './limits.ts';
import { cancel, hold, release } from './operate.ts';
import { prune } from './prune.ts';
import { get, logs, queues, recall, runs, stats } from './read.ts';
import { retention, writeRetention } from './retention.ts';
import { schedules, writeSchedule } from './schedules.ts';
import { migrate, refuseOutdated } from './schema/migrate.ts';
import { count, list } from './select.ts';
import { Session } from './session.ts';
import { settle } from './settle.ts';
import { PostgresTransactions } from './transactions/transactions.ts';
import { Wake } from './wake.ts';
import { register, workers } from './worker-registry.ts';

export interface PostgresOptions {
  /** `postgres://user:password@host:port,host:port/database?schema=mulligan`. */
  readonly url?: string;
  /** A pool of your own instead, of the package `pg`. It stays open when the store is closed. */
  readonly pool?: PoolLike;
  /** Further settings for the pool that is made for `url`, as `pg` takes them: max, ssl, password, ... */
  readonly poolOptions?: Readonly<Record<string, unknown>>;
  /** Where the tables are. Default `mulligan`. */
  readonly schema?: string;
  /** False leaves it to `mulligan migrate` to make tables and functions: opening then refuses a schema without them. */
  readonly migrate?: boolean;
  /** False leaves other processes to find new work by polling. */
  readonly wakeUps?: boolean;
  /**
   * False leaves jobs that are enqueued in a transaction of yours (`tx`) to be found by polling. By default such a
   * transaction notifies workers when it is committed, which takes a lock of the whole database for that moment.
   */
  readonly wakeUpsInTransactions?: boolean;
  /** For pauses and the pace of wake-ups; times in the queue are the server's. */
  readonly clock?: Clock;
}

const optionNames = [
  'url',
  'pool',
  'poolOptions',
  'schema',
  'migrate',
  'wakeUps',
  'wakeUpsInTransactions',
  'clock',
] as const;

/** A job that fell due within this time lies where claims still read: `LAG_MS` in scan/in-flight.ts is longer. */
const PRESENT_MS = 100;

type ForwardedVerb = Exclude<
  VerbName,
  'enqueue' | 'claimGated' | 'report' | 'settle' | 'cancel' | 'change' | 'writeSchedule' | 'prune'
>;
/** The others wake workers by what they did, or tell listeners of jobs. */
const forwarded: {
  readonly [Name in ForwardedVerb]: (session: Session, ...args: Parameters<Store[Name]>) => ReturnType<Store[Name]>;
} = {
  claim,
  claimLimited,
  permit,
  heartbeat,
  expired,
  remember,
  recall,
  get,
  ended,
  cancelRequested,
  list,
  count,
  operations,
  runs,
  logs,
  stats,
  forecast,
  history,
  rollUp,
  gates,
  gateHistory,
  limits,
  limitKeys,
  queues,
  ledger,
  errorGroups,
  errorHistory,
  schedules,
  hold,
  release,
  changeGate,
  writeLimits,
  retention,
  writeRetention,
  register,
  workers,
};
const Forwarded: Forwarding<ForwardedVerb> = forwarding(Object.keys(forwarded) as ForwardedVerb[]);

/** A queue in a PostgreSQL schema, shared by any number of machines. */
export class PostgresStore extends Forwarded implements Store {
  readonly kind = 'postgres';
  readonly transactions: PostgresTransactions;
  readonly #jobs: JobsListeners = new JobsListeners();
  readonly #db: Database;
  /** Replaced when the server cannot be reached, or its tables are other ones. Calls under way keep theirs. */
  #session: Session;
  readonly #wake: Wake;
  readonly #underWay: Set<Promise<unknown>> = new Set();
  #closing: Promise<void> | null = null;

  static async open(options: PostgresOptions): Promise<PostgresStore> {
    const given = readOptions(options, optionNames, 'PostgresStore.open');
    const { clock = systemClock, wakeUps = true, wakeUpsInTransactions = true, migrate: migrates = true } = given;
    checkClock(clock, 'PostgresStore.open: clock');
    checkBoolean(wakeUps, 'PostgresStore.open: wakeUps');
    checkBoolean(wakeUpsInTransactions, 'PostgresStore.open: wakeUpsInTransactions');
    checkBoolean(migrates, 'PostgresStore.open: migrate');
    const { hosts, schema } = await connect(given);
    try {
      if (migrates) await migrate(hosts, schema);
      else await refuseOutdated(hosts, schema);
      const db = new Database(hosts, schema, clock);
      await db.readFacts();
      return new PostgresStore(db, new Wake(db, wakeUps && hosts.ownSessions), wakeUpsInTransactions);
    } catch (error) {
      await hosts.close();
      throw error;
    }
  }

  private constructor(db: Database, wake: Wake, wakesInTransactions: boolean) {
    super((verb, args) => this.#forward(verb, args));
    this.#db = db;
    this.#session = new Session(db);
    this.#wake = wake;
    this.transactions = new PostgresTransactions(
      () => this.#session,
      () => this.#readAgain(this.#session),
      {
        takeNotification: () => (wakesInTransactions ? wake.takeFromTransaction() : null),
        onSettled: (settlement) => this.#jobs.settled([settlement], ['settled']),
        onRoom: () => wake.notify(),
      },
    );
    wake.onJobs = this.#jobs;
    wake.onPast = () => this.#session.cursors.scanSoon();
    db.onLost = () => {
      this.#session = new Session(db);
    };
  }

  get pushes(): boolean {
    return this.#wake.reachesOthers;
  }

  async enqueue(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    const present = this.#db.clock.now() - PRESENT_MS;
    const hasPast = jobs.some(({ dueAt }) => dueAt !== null && dueAt < present);
    const notification = this.#wake.takeNotification(hasPast);
    const answers = await this.#do(enqueue, jobs, notification);
    if (notification === null) this.#wake.notify(hasPast);
    else this.#wake.notifyOwn();
    return answers;
  }
  async claimGated(request: GatedClaimRequest): Promise<GatedClaim> {
    const claimed = await this.#do(claimGated, request);
    if (claimed.events.length > 0) this.#wake.notify();
    return claimed;
  }
  async report(reports: readonly WorkerReport[]): Promise<GateAnswer[]> {
    const answers = await this.#do(report, reports);
    if (answers.some(isNewsToWorkers)) this.#wake.notify();
    return answers;
  }
  async settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]> {
    const { answers, madeRoom } = await this.#do((session) => settle(session, settlements));
    this.#jobs.settled(settlements, answers);
    const atOnce = settlements.filter(({ decision }) => 'delayMs' in decision && decision.delayMs === 0);
    // What was given back keeps its place.
    if (atOnce.length > 0 || madeRoom) this.#wake.notify(atOnce.some(({ decision }) => decision.kind !== 'retry'));
    return answers;
  }

  async cancel(ids: readonly string[], order?: Order): Promise<CancelAnswer[]> {
    const answers = await this.#do(cancel, ids, order);
    this.#jobs.cancelled(answers);
    this.#wake.notifyCancelling(answers.filter(({ result }) => result === 'cancelling').map(({ id }) => id));
    return answers;
  }
  async change(request: ChangeRequest): Promise<ChangeAnswer> {
    const answer = await this.#do(change, request);
    this.#jobs.changed(request, answer);
    if (request.action === 'cancel') this.#wake.notifyCancelling(answer.ids);
    if (answer.ids.length > 0 && request.action !== 'discard') this.#wake.notify();
    return answer;
  }
  async writeSchedule(write: ScheduleWrite, order?: Order): Promise<ScheduleWritten> {
    const answer = await this.#do(writeSchedule, write, order);
    // Without jobs, too: a worker sleeps until the next tick it knows of. Jobs are due at their ticks, which have passed.
    if (answer.written) this.#wake.notify(answer.jobs.length > 0);
    return answer;
  }
  async prune(limit: number, asideMs: number | null = null): Promise<PruneAnswer> {
    const { answer, moved } = await this.#do(prune, limit, asideMs);
    if (moved > 0) this.#wake.notify(true);
    return answer;
  }

  onWork(listener: () => void): Unsubscribe {
    return this.#wake.add(listener);
  }

  onJobs(listener: JobsListener): Unsubscribe {
    this.#wake.listen();
    return this.#jobs.add(listener);
  }

  /** Calls under way are carried out and answered; later ones are refused. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#underWay);
    await this.#wake.close();
    await this.#db.close();
  }

  async #forward(name: ForwardedVerb, args: readonly unknown[]): Promise<unknown> {
    const verb = forwarded[name] as (session: Session, ...all: readonly unknown[]) => Promise<unknown>;
    const answer = await this.#do((session) => verb(session, ...args));
    if (rowOf(name).wakes === 'workers') this.#wake.notify();
    return answer;
  }

  async #do<Args extends unknown[], Answer>(
    verb: (session: Session, ...args: Args) => Promise<Answer>,
    ...args: Args
  ): Promise<Answer> {
    if (this.#closing) throw new ClosedError('expected an open store, but it was closed; open it again to go on');
    const answer = this.#withFreshNames(verb, args);
    this.#underWay.add(answer);
    try {
      return await answer;
    } finally {
      this.#underWay.delete(answer);
    }
  }

  /** Tables that were restored, or dropped and made again, have other numbers for the same names. */
  async #withFreshNames<Args extends unknown[], Answer>(
    verb: (session: Session, ...args: Args) => Promise<Answer>,
    args: Args,
  ): Promise<Answer> {
    const session = this.#session;
    try {
      return await verb(session, ...args);
    } catch (error) {
      if (!isReplaced(error)) throw error;
      await this.#readAgain(session);
      return verb(this.#session, ...args);
    }
  }

  async #readAgain(session: Session): Promise<void> {
    await this.#db.readFacts();
    if (session === this.#session) this.#session = new Session(this.#db);
  }
}
