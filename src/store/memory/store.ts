import { type Clock, checkClock, systemClock } from '../../clock.ts';
import { readOptions } from '../../config.ts';
import { ClosedError } from '../../errors.ts';
import type { GateEvent } from '../../gate/index.ts';
import type { RunRecord } from '../../job.ts';
import type { RunLog } from '../../run-log.ts';
import { isNewsToWorkers } from '../gates.ts';
import { JobsListeners } from '../jobs-listeners.ts';
import { checkPayloads } from '../json.ts';
import { orderRow } from '../orders.ts';
import { rulesAfter } from '../retention.ts';
import type {
  CancelAnswer,
  ChangeAnswer,
  ChangeRequest,
  Claim,
  ClaimedJob,
  ClaimRequest,
  EndedJob,
  Enqueued,
  ErrorGroup,
  ErrorGroupFilter,
  ErrorHistoryRequest,
  Fence,
  ForecastRequest,
  GateAnswer,
  GatedClaim,
  GatedClaimRequest,
  GateFilter,
  GateOrder,
  GateRef,
  Heartbeat,
  HeartbeatAnswer,
  HistoryRequest,
  HoldTarget,
  JobCount,
  JobFilter,
  JobList,
  JobSelection,
  JobsListener,
  LedgerPage,
  LedgerRequest,
  LimitedClaim,
  LimitedClaimRequest,
  LimitFilter,
  LimitInfo,
  LimitKeyFilter,
  LimitKeyInfo,
  LimitWrite,
  NewJob,
  Operation,
  Order,
  PermitAnswer,
  PermitRequest,
  PruneAnswer,
  QueueInfo,
  RegisteredWorker,
  RetentionRule,
  RetentionWrite,
  RolledUp,
  ScheduleFilter,
  Schedules,
  ScheduleWrite,
  ScheduleWritten,
  SettleAnswer,
  Settlement,
  Store,
  StoredGate,
  StoreErrorHistory,
  StoreForecast,
  StoreHistory,
  StoreStats,
  Unsubscribe,
  WorkerDescription,
  WorkerReport,
} from '../store.ts';
import { change } from './change.ts';
import { claim, claimGated, claimLimited } from './claim.ts';
import { enqueue } from './enqueue.ts';
import { expired } from './expired.ts';
import { forecast } from './forecast.ts';
import { heartbeat } from './heartbeat.ts';
import { ledger } from './ledger.ts';
import { logs } from './log.ts';
import { recall, remember } from './memo.ts';
import { cancel, hold, prune, release } from './operate.ts';
import { operations, record } from './operations.ts';
import { count, ended, get, list, queues, runs, stats } from './read.ts';
import { kept } from './row.ts';
import { schedules, writeSchedule } from './schedules.ts';
import { settle } from './settle.ts';
import { MemoryState } from './state.ts';

export interface MemoryStoreOptions {
  /** Default: the system's. */
  readonly clock?: Clock;
}

/**
 * The readable model of the contract, for tests and for work that may be lost with the process.
 *
 * Each verb does all its work before it first yields, so verbs never interleave: that is all the
 * locking there is.
 *
 * @example
 * const store = new MemoryStore();
 */
export class MemoryStore implements Store {
  readonly kind = 'memory';
  /** No other process can see it. */
  readonly pushes = true;
  readonly #clock: Clock;
  readonly #state: MemoryState = new MemoryState();
  readonly #jobs: JobsListeners = new JobsListeners();
  #closed = false;

  constructor(options: MemoryStoreOptions = {}) {
    const { clock = systemClock } = readOptions(options, ['clock'], 'MemoryStore');
    this.#clock = checkClock(clock, 'MemoryStore: clock');
  }

  async enqueue(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    checkPayloads(jobs);
    return enqueue(this.#open(), jobs, this.#clock.now());
  }

  async claim(request: ClaimRequest): Promise<Claim> {
    return claim(this.#open(), request, this.#clock.now());
  }

  async claimGated(request: GatedClaimRequest): Promise<GatedClaim> {
    return claimGated(this.#open(), request, this.#clock.now(), () => this.#clock.random());
  }

  async claimLimited(request: LimitedClaimRequest): Promise<LimitedClaim> {
    return claimLimited(this.#open(), request, this.#clock.now());
  }

  async permit(request: PermitRequest): Promise<PermitAnswer> {
    return this.#open().limits.permit(request, this.#clock.now());
  }

  async report(reports: readonly WorkerReport[]): Promise<GateAnswer[]> {
    const state = this.#open();
    const answers = state.gates.report(reports, this.#clock.now(), () => this.#clock.random());
    if (answers.some(isNewsToWorkers)) state.wake.hint();
    return answers;
  }

  async heartbeat(beats: readonly Heartbeat[]): Promise<HeartbeatAnswer[]> {
    return heartbeat(this.#open(), beats, this.#clock.now());
  }

  async settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]> {
    const answers = settle(this.#open(), settlements, this.#clock.now());
    this.#jobs.settled(settlements, answers);
    return answers;
  }

  async expired(limit: number): Promise<ClaimedJob[]> {
    return expired(this.#open(), limit, this.#clock.now());
  }

  async remember(fence: Fence, key: string, value: string): Promise<boolean> {
    return remember(this.#open(), fence, key, value);
  }

  async recall(jobId: string): Promise<ReadonlyMap<string, string>> {
    return recall(this.#open(), jobId);
  }

  async cancelRequested(ids: readonly string[]): Promise<string[]> {
    const { rows } = this.#open();
    return ids.filter((id) => rows.get(id)?.cancelRequested);
  }

  async get(ids: readonly string[]): Promise<JobList> {
    return get(this.#open(), ids, this.#clock.now());
  }

  /** All that end are told, so there is nothing to watch. */
  async ended(ids: readonly string[], _watchMs: number | null): Promise<EndedJob[]> {
    return ended(this.#open(), ids);
  }

  async list(filter: JobFilter): Promise<JobList> {
    return list(this.#open(), filter, this.#clock.now());
  }

  async count(selection: JobSelection): Promise<JobCount> {
    return count(this.#open(), selection, this.#clock.now());
  }

  async operations(limit: number): Promise<Operation[]> {
    return operations(this.#open(), limit);
  }

  async runs(jobId: string): Promise<RunRecord[]> {
    return runs(this.#open(), jobId);
  }

  async logs(jobId: string, limit: number): Promise<RunLog[]> {
    return logs(this.#open(), jobId, limit);
  }

  async stats(): Promise<StoreStats> {
    return stats(this.#open(), this.#clock.now());
  }

  async forecast(request: ForecastRequest): Promise<StoreForecast> {
    return forecast(this.#open(), request, this.#clock.now());
  }

  async history(request: HistoryRequest): Promise<StoreHistory> {
    return this.#open().history.read(request, this.#clock.now());
  }

  /** Runs are counted when they end. */
  async rollUp(): Promise<RolledUp> {
    this.#open().history.prune(this.#clock.now());
    this.#open().errorHistory.prune(this.#clock.now());
    return { isDone: true };
  }

  async gates(filter: GateFilter): Promise<StoredGate[]> {
    return this.#open().gates.list(filter, this.#clock.now());
  }

  async gateHistory(gate: GateRef, limit: number): Promise<GateEvent[]> {
    return this.#open().gates.history(gate, limit);
  }

  async queues(): Promise<QueueInfo[]> {
    return queues(this.#open());
  }

  async limits(filter: LimitFilter): Promise<LimitInfo[]> {
    return this.#open().limits.list(filter);
  }

  async limitKeys(limit: string, filter: LimitKeyFilter): Promise<LimitKeyInfo[]> {
    return this.#open().limits.keys(limit, filter, this.#clock.now());
  }

  async ledger(request: LedgerRequest): Promise<LedgerPage> {
    return ledger(this.#open(), request, this.#clock.now());
  }

  async errorGroups(filter: ErrorGroupFilter): Promise<ErrorGroup[]> {
    return this.#open().errorGroups.list(filter);
  }

  async errorHistory(request: ErrorHistoryRequest): Promise<StoreErrorHistory> {
    return this.#open().errorHistory.read(request, this.#clock.now());
  }

  async schedules(filter: ScheduleFilter): Promise<Schedules> {
    return schedules(this.#open(), filter, this.#clock.now());
  }

  async writeSchedule(write: ScheduleWrite, order?: Order): Promise<ScheduleWritten> {
    checkPayloads(write.jobs);
    return writeSchedule(this.#open(), write, this.#clock.now(), order);
  }

  async cancel(ids: readonly string[], order?: Order): Promise<CancelAnswer[]> {
    const answers = cancel(this.#open(), ids, this.#clock.now(), order);
    this.#jobs.cancelled(answers);
    return answers;
  }

  async change(request: ChangeRequest): Promise<ChangeAnswer> {
    const answer = change(this.#open(), request, this.#clock.now());
    this.#jobs.changed(request, answer);
    return answer;
  }

  async hold(target: HoldTarget, until: number | null, order?: Order): Promise<void> {
    hold(this.#open(), target, until, this.#clock.now(), order);
  }

  async release(target: HoldTarget, order?: Order): Promise<void> {
    release(this.#open(), target, this.#clock.now(), order);
  }

  async writeLimits(writes: readonly LimitWrite[], order?: Order): Promise<void> {
    const state = this.#open();
    state.limits.write(kept(writes), this.#clock.now());
    if (order) record(state, orderRow(order, 'limit'), this.#clock.now());
    state.wake.hint();
  }

  async changeGate(gate: GateRef, change: GateOrder, operator: string, order?: Order): Promise<GateAnswer> {
    const state = this.#open();
    const answer = state.gates.change(gate, change, operator, this.#clock.now(), () => this.#clock.random());
    if (order) record(state, orderRow(order, 'gate'), this.#clock.now());
    state.wake.hint();
    return answer;
  }

  async retention(): Promise<RetentionRule[]> {
    return [...this.#open().retention];
  }

  async writeRetention(writes: readonly RetentionWrite[], order?: Order): Promise<void> {
    const state = this.#open();
    for (const write of kept(writes)) state.retention = rulesAfter(state.retention, write);
    if (order) record(state, orderRow(order, 'retention'), this.#clock.now());
  }

  async prune(limit: number, asideMs: number | null = null): Promise<PruneAnswer> {
    return prune(this.#open(), limit, asideMs, this.#clock.now());
  }

  async register(id: string, worker: WorkerDescription | null): Promise<void> {
    this.#open().workers.register(id, worker, this.#clock.now());
  }

  async workers(): Promise<RegisteredWorker[]> {
    return this.#open().workers.list(this.#clock.now());
  }

  onWork(listener: () => void): Unsubscribe {
    return this.#open().wake.listen(listener);
  }

  onJobs(listener: JobsListener): Unsubscribe {
    this.#open();
    return this.#jobs.add(listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#state.wake.stop();
    this.#jobs.clear();
  }

  #open(): MemoryState {
    if (this.#closed) throw new ClosedError('This memory store was closed, and its jobs went with it. Open a new one.');
    return this.#state;
  }
}
