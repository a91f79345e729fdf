import { resolve } from 'node:path';
import type { Clock } from '../../clock.ts';
import { ClosedError } from '../../errors.ts';
import { partsOf } from '../../parts.ts';
import { type Forwarding, forwarding } from '../forwarding.ts';
import { JobsListeners } from '../jobs-listeners.ts';
import { checkPayloads } from '../json.ts';
import type {
  CancelAnswer,
  ChangeAnswer,
  ChangeRequest,
  Claim,
  ClaimedJob,
  ClaimRequest,
  Enqueued,
  GatedClaim,
  GatedClaimRequest,
  Heartbeat,
  HeartbeatAnswer,
  JobsListener,
  LimitedClaim,
  LimitedClaimRequest,
  NewJob,
  Order,
  ScheduleWrite,
  ScheduleWritten,
  SettleAnswer,
  Settlement,
  Store,
  Unsubscribe,
} from '../store.ts';
import { isRead, type VerbName, verbNames } from '../verbs.ts';
import { type Channel, DirectChannel, ThreadChannel } from './channel.ts';
import type { PackedClaim } from './claim.ts';
import type { PackedGatedClaim } from './claim-gated.ts';
import type { PackedLimitedClaim } from './claim-limited.ts';
import { DatabaseThread, type ThreadEntry } from './database-thread.ts';
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

/** Verbs whose arguments or answers travel to the thread in another form, or in parts, or that tell listeners of jobs. */
const ownVerbs = [
  'enqueue',
  'claim',
  'claimGated',
  'claimLimited',
  'heartbeat',
  'settle',
  'cancel',
  'change',
  'writeSchedule',
  'expired',
] as const;
type OwnVerb = (typeof ownVerbs)[number];
type ForwardedVerb = Exclude<VerbName, OwnVerb>;
const Forwarded: Forwarding<ForwardedVerb> = forwarding(
  verbNames.filter((name): name is ForwardedVerb => !(ownVerbs as readonly VerbName[]).includes(name)),
);

/**
 * A queue in a SQLite file. Writes go through one connection, and reads, which may take long, through another, so that
 * a heartbeat never waits for a read.
 */
export class SqliteStore extends Forwarded implements Store {
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
    super((verb, args) => this.#call(verb, ...args));
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
  async cancel(ids: readonly string[], order?: Order): Promise<CancelAnswer[]> {
    const answers = (await this.#call('cancel', ids, order)) as CancelAnswer[];
    this.#jobs.cancelled(answers);
    return answers;
  }
  async change(request: ChangeRequest): Promise<ChangeAnswer> {
    const answer = (await this.#call('change', request)) as ChangeAnswer;
    this.#jobs.changed(request, answer);
    return answer;
  }
  async writeSchedule({ jobs, ...write }: ScheduleWrite, order?: Order): Promise<ScheduleWritten> {
    checkPayloads(jobs);
    const answer = (await this.#call('writeSchedule', write, packNewJobs(jobs), order)) as PackedScheduleWritten;
    return answer === null ? { written: false, jobs: [] } : { written: true, jobs: unpackEnqueued(answer, jobs) };
  }
  async expired(limit: number): Promise<ClaimedJob[]> {
    return unpackJobs((await this.#call('expired', limit)) as PackedJobs);
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

  async #call(verb: VerbName, ...args: unknown[]): Promise<unknown> {
    if (this.#closed) throw closed();
    return (isRead(verb) ? this.#reader : this.#writer).call(verb, args);
  }
}

function closed(): ClosedError {
  return new ClosedError('expected an open store, but it was closed; open it again to go on');
}
