import { resolve } from 'node:path';
import type { Clock } from '../../clock.ts';
import { ClosedError } from '../../errors.ts';
import type { GateEvent } from '../../gate/index.ts';
import type { RunRecord } from '../../job.ts';
import { partsOf } from '../../parts.ts';
import type { RunLog } from '../../run-log.ts';
import { JobsListeners } from '../jobs-listeners.ts';
import { checkPayloads } from '../json.ts';
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
  PermitAnswer,
  PermitRequest,
  PruneAnswer,
  QueueInfo,
  RegisteredWorker,
  Retention,
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
import { type Channel, DirectChannel, ThreadChannel } from './channel.ts';
import type { PackedClaim } from './claim.ts';
import type { PackedGatedClaim } from './claim-gated.ts';
import type { PackedLimitedClaim } from './claim-limited.ts';
import { DatabaseThread, type ThreadEntry } from './database-thread.ts';
import type { ReadName, VerbName, WriteName } from './engine.ts';
import { InPlace } from './in-place.ts';
import { type PackedJobs, packRequest, unpackJobs } from './packed-claim.ts';
import { type PackedEnqueued, packNewJobs, unpackEnqueued } from './packed-jobs.ts';
import { bytesOfSettlement, type PackedAnswers, packSettlement, unpackAnswers } from './packed-settlements.ts';
import { PART_BYTES } from './parts.ts';
import type { PackedScheduleWritten } from './schedules.ts';

export interface SqliteOptions {
  /** The file. Its folder must exist. */
  readonly path: string;
  /** Run in the calling thread on this clock instead of on a thread of its own: for simulation and tests. */
  readonly inline?: Clock;
  /** Another module for the thread: for tests. */
  readonly entry?: ThreadEntry;
}

type Args<V extends VerbName & keyof Store> = Parameters<Store[V]>;
type Answer<V extends VerbName & keyof Store> = ReturnType<Store[V]>;

/**
 * A queue in a SQLite file. Writes go through one connection, and reads, which may take long, through another, so that
 * a heartbeat never waits for a read.
 */
export class SqliteStore implements Store {
  readonly kind = 'sqlite';
  /** Of other processes only their commits are seen, which `onWork` tells. */
  readonly pushes = false;
  readonly #writer: Channel;
  readonly #reader: Channel;
  readonly #listeners: Set<() => void> = new Set();
  readonly #jobs: JobsListeners = new JobsListeners();
  /** Those that are sent in several parts. */
  readonly #batches: Set<Promise<unknown>> = new Set();
  #closed: Promise<void> | null = null;

  static async open(options: SqliteOptions): Promise<SqliteStore> {
    const { inline, entry } = options;
    // The reader is opened later; the process may have changed its folder by then.
    const path = resolve(options.path);
    const listeners = new Set<() => void>();
    const onWork = (): void => {
      for (const listener of listeners) listener();
    };
    if (inline) {
      const channel = await DirectChannel.open(path, inline, onWork);
      return new SqliteStore(channel, channel, listeners);
    }
    let inPlace: InPlace | null = null;
    const startWriter = async (): Promise<DatabaseThread> => {
      // The path may name another file by now, which is not the one that the thread which died had open.
      inPlace?.checkDatabase();
      const thread = await DatabaseThread.start({ path, missing: inPlace ? 'refuse' : 'create' }, onWork, entry);
      inPlace = new InPlace(path);
      return thread;
    };
    const writer = new ThreadChannel(startWriter, onWork);
    await writer.started();
    const startReader = async (): Promise<DatabaseThread> => {
      // Without these two, it might read another file than the writer writes.
      await writer.started();
      inPlace?.check();
      return DatabaseThread.start({ path, missing: 'refuse' }, () => {}, entry);
    };
    return new SqliteStore(writer, new ThreadChannel(startReader, () => {}), listeners);
  }

  private constructor(writer: Channel, reader: Channel, listeners: Set<() => void>) {
    this.#writer = writer;
    this.#reader = reader;
    this.#listeners = listeners;
  }

  async enqueue(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    checkPayloads(jobs);
    return this.#inParts(
      jobs,
      ({ payload }) => payload.length,
      async (part) => {
        const answer = this.#writer.call('enqueue', packNewJobs(part));
        // Before it is committed: the claim of a worker that has nothing to do shares the transaction.
        this.#notify();
        return unpackEnqueued((await answer) as PackedEnqueued, part);
      },
    );
  }
  async claim(request: ClaimRequest): Promise<Claim> {
    const { jobs, ...answer } = (await this.#call('claim', packRequest(request))) as PackedClaim;
    return { ...answer, jobs: unpackJobs(jobs) };
  }
  async claimGated(request: GatedClaimRequest): Promise<GatedClaim> {
    const { jobs, epoch, ...answer } = (await this.#call('claimGated', packRequest(request))) as PackedGatedClaim;
    return { ...answer, jobs: unpackJobs(jobs, epoch) };
  }
  async claimLimited(request: LimitedClaimRequest): Promise<LimitedClaim> {
    const { jobs, ...answer } = (await this.#call('claimLimited', packRequest(request))) as PackedLimitedClaim;
    return { ...answer, jobs: unpackJobs(jobs) };
  }
  permit(request: PermitRequest): Promise<PermitAnswer> {
    return this.#write('permit', request);
  }
  report(reports: readonly WorkerReport[]): Promise<GateAnswer[]> {
    return this.#write('report', reports);
  }
  heartbeat(beats: readonly Heartbeat[]): Promise<HeartbeatAnswer[]> {
    const send = (part: readonly Heartbeat[]) => this.#writer.call('heartbeat', [part]) as Promise<HeartbeatAnswer[]>;
    return this.#inParts(beats, ({ progress }) => progress?.length ?? 0, send);
  }
  settle(settlements: readonly Settlement[]): Promise<SettleAnswer[]> {
    return this.#inParts(settlements, bytesOfSettlement, async (part) => {
      const answers = (await this.#writer.call('settle', [part.map(packSettlement)])) as PackedAnswers;
      const unpacked = unpackAnswers(answers, part.length);
      this.#jobs.settled(part, unpacked);
      return unpacked;
    });
  }
  remember(fence: Fence, key: string, value: string): Promise<boolean> {
    return this.#write('remember', fence, key, value);
  }
  async cancel(ids: readonly string[]): Promise<CancelAnswer[]> {
    const answers = await this.#write('cancel', ids);
    this.#jobs.cancelled(answers);
    return answers;
  }
  async change(request: ChangeRequest): Promise<ChangeAnswer> {
    const answer = await this.#write('change', request);
    this.#jobs.changed(request, answer);
    return answer;
  }
  hold(target: HoldTarget, until: number | null): Promise<void> {
    return this.#write('hold', target, until);
  }
  release(target: HoldTarget): Promise<void> {
    return this.#write('release', target);
  }
  changeGate(gate: GateRef, order: GateOrder, operator: string): Promise<GateAnswer> {
    return this.#write('changeGate', gate, order, operator);
  }
  writeLimits(writes: readonly LimitWrite[]): Promise<void> {
    return this.#write('writeLimits', writes);
  }
  prune(retention: Retention, limit: number): Promise<PruneAnswer> {
    return this.#write('prune', retention, limit);
  }
  async writeSchedule({ jobs, ...write }: ScheduleWrite): Promise<ScheduleWritten> {
    checkPayloads(jobs);
    const answer = (await this.#call('writeSchedule', write, packNewJobs(jobs))) as PackedScheduleWritten;
    return answer === null ? { written: false, jobs: [] } : { written: true, jobs: unpackEnqueued(answer, jobs) };
  }
  register(id: string, worker: WorkerDescription | null): Promise<void> {
    return this.#write('register', id, worker);
  }
  async expired(limit: number): Promise<ClaimedJob[]> {
    return unpackJobs((await this.#call('expired', limit)) as PackedJobs);
  }

  recall(jobId: string): Promise<ReadonlyMap<string, string>> {
    return this.#read('recall', jobId);
  }
  get(ids: readonly string[]): Promise<JobList> {
    return this.#read('get', ids);
  }
  ended(ids: readonly string[], watchMs: number | null): Promise<EndedJob[]> {
    return this.#read('ended', ids, watchMs);
  }
  cancelRequested(ids: readonly string[]): Promise<string[]> {
    return this.#read('cancelRequested', ids);
  }
  list(filter: JobFilter): Promise<JobList> {
    return this.#read('list', filter);
  }
  count(selection: JobSelection): Promise<JobCount> {
    return this.#read('count', selection);
  }
  operations(limit: number): Promise<Operation[]> {
    return this.#read('operations', limit);
  }
  runs(jobId: string): Promise<RunRecord[]> {
    return this.#read('runs', jobId);
  }
  logs(jobId: string, limit: number): Promise<RunLog[]> {
    return this.#read('logs', jobId, limit);
  }
  stats(): Promise<StoreStats> {
    return this.#read('stats');
  }
  forecast(request: ForecastRequest): Promise<StoreForecast> {
    return this.#read('forecast', request);
  }
  history(request: HistoryRequest): Promise<StoreHistory> {
    return this.#read('history', request);
  }
  rollUp(): Promise<RolledUp> {
    return this.#write('rollUp');
  }
  queues(): Promise<QueueInfo[]> {
    return this.#read('queues');
  }
  ledger(request: LedgerRequest): Promise<LedgerPage> {
    return this.#read('ledger', request);
  }
  errorGroups(filter: ErrorGroupFilter): Promise<ErrorGroup[]> {
    return this.#read('errorGroups', filter);
  }

  errorHistory(request: ErrorHistoryRequest): Promise<StoreErrorHistory> {
    return this.#read('errorHistory', request);
  }
  schedules(filter: ScheduleFilter): Promise<Schedules> {
    return this.#read('schedules', filter);
  }
  gates(filter: GateFilter): Promise<StoredGate[]> {
    return this.#read('gates', filter);
  }
  gateHistory(gate: GateRef, limit: number): Promise<GateEvent[]> {
    return this.#read('gateHistory', gate, limit);
  }

  limits(filter: LimitFilter): Promise<LimitInfo[]> {
    return this.#read('limits', filter);
  }
  limitKeys(limit: string, filter: LimitKeyFilter): Promise<LimitKeyInfo[]> {
    return this.#read('limitKeys', limit, filter);
  }
  workers(): Promise<RegisteredWorker[]> {
    return this.#read('workers');
  }

  onWork(listener: () => void): Unsubscribe {
    if (this.#listeners.size === 0) this.#writer.watch();
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onJobs(listener: JobsListener): Unsubscribe {
    return this.#jobs.add(listener);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await Promise.allSettled([...this.#batches]);
    // In this order: a reader that is just starting needs the writer.
    await this.#reader.close();
    await this.#writer.close();
  }

  /** Sends a batch part after part. A batch that is under way when the store is closed is sent to its end. */
  async #inParts<Item, Answer>(
    items: readonly Item[],
    bytesOf: (item: Item) => number,
    send: (part: readonly Item[]) => Promise<Answer[]>,
  ): Promise<Answer[]> {
    if (this.#closed) throw closed();
    const parts = partsOf(items, { maxBytes: PART_BYTES, bytesOf });
    if (parts.length <= 1) return send(items);
    const batch = (async () => {
      const answers: Answer[] = [];
      for (const part of parts) answers.push(...(await send(part)));
      return answers;
    })();
    this.#batches.add(batch);
    return batch.finally(() => this.#batches.delete(batch));
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  #write<V extends WriteName>(verb: V, ...args: Args<V>): Answer<V> {
    return this.#call(verb, ...args) as Answer<V>;
  }

  async #call(verb: WriteName, ...args: unknown[]): Promise<unknown> {
    if (this.#closed) throw closed();
    return this.#writer.call(verb, args);
  }

  #read<V extends ReadName & keyof Store>(verb: V, ...args: Args<V>): Answer<V> {
    return this.#callReader(verb, ...args) as Answer<V>;
  }

  async #callReader(verb: ReadName, ...args: unknown[]): Promise<unknown> {
    if (this.#closed) throw closed();
    return this.#reader.call(verb, args);
  }
}

function closed(): ClosedError {
  return new ClosedError('expected an open store, but it was closed; open it again to go on');
}
