import { hostname } from 'node:os';
import type { Clock, Timer } from '../clock.ts';
import type { AnyJobDefinition } from '../definition.ts';
import type { Duration } from '../duration.ts';
import { isRetry } from '../job.ts';
import type { LogSink } from '../observe/log.ts';
import { type Logger, makeLogger } from '../observe/log.ts';
import { decide } from '../retry/decide.ts';
import type { Random } from '../retry/jitter.ts';
import type { Outcome, ReleaseCause } from '../retry/outcome.ts';
import type { Claim, Retention, SettleAnswer, Settlement, Store } from '../store/store.ts';
import { Averages } from './averages.ts';
import { Buffer } from './buffer.ts';
import { Chore } from './chores.ts';
import { Fetcher } from './fetch.ts';
import { Hand } from './hand.ts';
import { Hands } from './hands.ts';
import { Heart } from './heartbeat.ts';
import { Lease } from './lease.ts';
import { readGrace, type WorkPlan } from './options.ts';
import { patientStore, type WorkerStore } from './patient.ts';
import type { Reporter } from './report.ts';
import { rescue } from './rescue.ts';
import { Run, type RunServices } from './run.ts';
import { type Ending, errorOf, Settler, settlementOf } from './settle.ts';

const PRUNE_EVERY_MS = 30_000;
const PRUNE_BATCH = 500;
const RESCUES_PER_LEASE = 3;
/** A call to the store that is not answered in this part of a lease has failed. */
const CALLS_PER_LEASE = 2;
/** A loaded machine may take this long, whatever the lease. */
const SHORTEST_CALL_TIMEOUT_MS = 3_000;

export interface WorkerParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly definitions: ReadonlyMap<string, AnyJobDefinition>;
  readonly plan: WorkPlan;
  readonly report: Reporter;
  readonly logSink: LogSink;
  readonly retention: Retention;
  readonly maxPayloadBytes: number;
  readonly onStopped: () => void;
}

/**
 * The way of a job through a worker:
 *
 *   fetch (lanes, capacity) -> run (signal, timeout, heartbeat) -> outcome -> decide -> settle
 *
 * Beside it: the heart extends leases, the rescuer settles what silent workers left, the pruner deletes what
 * outlived its retention.
 */
export class Worker {
  readonly id: string;
  readonly #parts: WorkerParts;
  readonly #store: WorkerStore;
  readonly #fetcher: Fetcher;
  readonly #settler: Settler;
  readonly #heart: Heart;
  readonly #chores: readonly Chore[];
  readonly #runServices: RunServices;
  readonly #log: Logger;
  readonly #random: Random;
  readonly #hands: Hands = new Hands();
  readonly #buffer: Buffer = new Buffer();
  readonly #averages: Averages = new Averages();
  #running = 0;
  #startTimer: Timer | null = null;
  #settling = 0;
  #inTrouble = false;
  #unsubscribe: () => void = () => {};
  #stopping: Promise<void> | null = null;
  #stopped = false;
  readonly #idleWaiters: Set<() => void> = new Set();
  #onEmpty: () => void = () => {};

  constructor(parts: WorkerParts) {
    const { clock, plan, logSink } = parts;
    const callTimeoutMs = Math.max(SHORTEST_CALL_TIMEOUT_MS, plan.leaseMs / CALLS_PER_LEASE);
    const store = patientStore(parts.store, clock, callTimeoutMs);
    this.#parts = parts;
    this.#store = store;
    this.id = `${plan.name ?? `${hostname()}-${process.pid}`}-${clock.newId().slice(-8)}`;
    this.#log = makeLogger(logSink, () => ({ worker: this.id }));
    this.#random = () => clock.random();
    this.#settler = new Settler(store, clock, {
      answered: (ending, answer) => this.#settled(ending, answer),
      failed: (ending, error) => this.#settleFailed(ending, error),
      retried: (endings, error) => this.#unrecorded(endings, error),
    });
    const onTrouble = (error: unknown): void => this.#trouble(error);
    this.#heart = new Heart(store, clock, plan.leaseMs, () => this.#alive(), onTrouble);
    this.#fetcher = new Fetcher({
      store,
      clock,
      plan,
      worker: this.id,
      callTimeoutMs,
      capacity: () => ({
        running: this.#running,
        buffered: this.#buffer.size,
        settling: this.#settling,
        meanRunMs: this.#averages.runMs,
        inVain: this.#averages.inVain,
      }),
      accept: (claim, askedAt) => this.#accept(claim, askedAt),
      onDrained: () => this.#checkIdle(),
      onTrouble,
      onAnswer: () => this.#troubleOver(),
    });
    this.#chores = [
      new Chore(clock, plan.leaseMs / RESCUES_PER_LEASE, () => this.#rescue(), onTrouble),
      new Chore(clock, PRUNE_EVERY_MS, () => this.#prune(), onTrouble),
    ];
    this.#runServices = {
      clock,
      logSink,
      store,
      beat: (run) => this.#beat(run),
      beatSoon: () => this.#heart.soon(),
      maxPayloadBytes: parts.maxPayloadBytes,
    };
  }

  /** How many jobs run right now. */
  get running(): number {
    return this.#running;
  }

  start(): void {
    this.#unsubscribe = this.#store.onWork(() => this.#fetcher.newWork());
    this.#fetcher.start();
    this.#heart.start();
    for (const chore of this.#chores) chore.start();
  }

  /** Resolves once this worker holds no job and found none that is due, or has stopped. Jobs may still wait for later. */
  whenIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idleWaiters.add(resolve);
      this.#checkIdle();
    });
  }

  /**
   * Stops claiming, lets runs finish within `grace` (default 10 s), aborts the rest and hands back what did not
   * finish, uncounted. Resolves when everything is settled. Called again, the shortest grace holds.
   */
  async stop(options: { readonly grace?: Duration } = {}): Promise<void> {
    const graceMs = readGrace(options, 'stop');
    this.#stopping ??= this.#stop();
    const abort = this.#parts.clock.after(graceMs, () => {
      for (const hand of this.#hands.list()) hand.run?.stop('shutdown');
    });
    void this.#stopping.finally(() => abort.cancel());
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #stop(): Promise<void> {
    this.#unsubscribe();
    this.#startTimer?.cancel();
    const fetching = this.#fetcher.stop();
    this.#releaseBuffer();
    await fetching;
    this.#releaseBuffer();
    while (this.#hands.size > 0) await new Promise<void>((resolve) => (this.#onEmpty = resolve));
    this.#heart.stop();
    await Promise.all(this.#chores.map((chore) => chore.stop()));
    await this.#settler.flushed();
    this.#stopped = true;
    this.#checkIdle();
    this.#parts.onStopped();
  }

  #releaseBuffer(): void {
    for (const hand of this.#buffer.take(this.#buffer.size)) this.#release(hand, { kind: 'shutdown' });
  }

  #release(hand: Hand, because: ReleaseCause): void {
    hand.startedAt = hand.lease.storeNow;
    hand.endedAt = hand.startedAt;
    this.#finish(hand, { kind: 'released', because });
  }

  #accept(claim: Claim, askedAt: number): void {
    const { plan, clock } = this.#parts;
    for (const job of claim.jobs) {
      const hand = new Hand(new Lease(job, plan.leaseMs, askedAt, clock));
      this.#hands.add(hand);
      this.#buffer.add(hand);
    }
    if (this.#stopping) this.#releaseBuffer();
    else this.#startNext();
  }

  /**
   * In the next turn: jobs that end at once would otherwise start each other without end, and nothing else in the
   * process would run. It also lets one wave of jobs run here while the store still works on the one before.
   */
  #startSoon(): void {
    if (this.#startTimer !== null || this.#buffer.size === 0) return;
    this.#startTimer = this.#parts.clock.after(0, () => {
      this.#startTimer = null;
      this.#startNext();
    });
  }

  #startNext(): void {
    const { concurrency } = this.#parts.plan;
    while (this.#buffer.size > 0 && this.#running < concurrency) {
      for (const hand of this.#buffer.take(concurrency - this.#running)) {
        if (hand.lease.lost) this.#drop(hand);
        // Another worker may have it by now, so it must not start. If nobody has, it goes back uncounted: it never ran.
        else if (hand.lease.ended) this.#release(hand, { kind: 'late' });
        else if (hand.cancelRequested) this.#release(hand, { kind: 'cancelled' });
        else this.#start(hand);
      }
    }
  }

  #start(hand: Hand): void {
    const { definitions, report, plan } = this.#parts;
    const { lease } = hand;
    this.#running++;
    hand.startedAt = lease.storeNow;
    const definition = definitions.get(lease.job.name);
    if (definition === undefined) {
      const because: ReleaseCause = { kind: 'no-handler', giveUpAfterMs: plan.giveUpUnknownMs };
      this.#end(hand, { kind: 'released', because });
      return;
    }
    report.started(lease.job, hand.startedAt);
    hand.run = new Run(lease, hand.startedAt, definition, this.#runServices);
    hand.run.start((outcome) => this.#end(hand, outcome));
  }

  #end(hand: Hand, outcome: Outcome): void {
    this.#running--;
    hand.endedAt = hand.lease.storeNow;
    this.#averages.observe(hand.lease.job.lane, outcome, hand.endedAt - hand.startedAt);
    this.#finish(hand, outcome);
    this.#startSoon();
    this.#fetcher.room();
  }

  /** decide, then settle. */
  #finish(hand: Hand, outcome: Outcome): void {
    if (hand.run?.recorded) this.#finishRecorded(hand, hand.run.recorded, outcome);
    else if (hand.lease.lost) this.#drop(hand);
    else this.#settle(hand, outcome);
  }

  #settle(hand: Hand, outcome: Outcome): void {
    const { lease } = hand;
    hand.settlingSince = this.#parts.clock.monotonic();
    this.#settling++;
    const job = hand.cancelRequested ? { ...lease.job, cancelRequested: true } : lease.job;
    const decision = decide(job, outcome, hand.endedAt, this.#random);
    this.#settler.settle({ hand, settlement: settlementOf(job, hand, outcome, decision) });
  }

  #settled(ending: Ending, answer: SettleAnswer): void {
    const { hand, settlement } = ending;
    const { report } = this.#parts;
    try {
      if (answer === 'stale') report.leaseLost(hand.lease.job);
      else report.settled(hand.lease.job, settlement, answer);
    } catch (error) {
      report.settleFailed(hand.lease.job, error);
    }
    this.#finished(ending);
  }

  /** The job will run again. */
  #settleFailed(ending: Ending, error: unknown): void {
    this.#parts.report.settleFailed(ending.hand.lease.job, error);
    this.#finished(ending);
  }

  #finished({ hand, settlement }: Ending): void {
    this.#settling--;
    this.#letGo(hand);
    // The job may fall due sooner than anything the fetcher knows of.
    if ('delayMs' in settlement.decision) this.#fetcher.wake();
  }

  /** The handler's own transaction has completed the job; whatever the handler did after it changes nothing. */
  #finishRecorded(hand: Hand, settlement: Settlement, outcome: Outcome): void {
    const { job } = hand.lease;
    if (outcome.kind !== 'completed') {
      const error = errorOf(outcome);
      this.#log.warn('the handler failed after its transaction had completed the job', { job: job.id, error });
    }
    this.#parts.report.settled(job, settlement, 'settled');
    this.#letGo(hand);
  }

  #drop(hand: Hand): void {
    this.#parts.report.leaseLost(hand.lease.job);
    this.#letGo(hand);
  }

  #letGo(hand: Hand): void {
    const { lane } = hand.lease.job;
    this.#hands.delete(hand);
    if (this.#hands.size === 0) this.#onEmpty();
    this.#fetcher.room();
    // A retry that ended may leave room under maxRetriesInFlight.
    if (isRetry(lane)) this.#fetcher.wake();
    this.#checkIdle();
  }

  /** An outcome that could not be recorded for a whole lease is given up with the next: its lease is not renewed again. */
  #alive(): Hand[] {
    const since = this.#parts.clock.monotonic() - this.#parts.plan.leaseMs;
    return this.#hands.list().filter(({ settlingSince }) => settlingSince === null || settlingSince >= since);
  }

  /** False when the run has lost its lease, or its place: a zombie holds nothing any more. */
  async #beat(run: Run): Promise<boolean> {
    const hands = this.#hands.list().filter((hand) => hand.run === run);
    return hands.length > 0 && (await this.#heart.beat(hands));
  }

  async #rescue(): Promise<void> {
    const { clock, report } = this.#parts;
    await rescue(this.#store, clock, ({ job, settlement, answer }) => report.rescued(job, settlement, answer));
  }

  async #prune(): Promise<void> {
    const { retention } = this.#parts;
    while (!this.#stopping && (await this.#store.prune(retention, PRUNE_BATCH)) === PRUNE_BATCH);
  }

  #checkIdle(): void {
    const isIdle = this.#stopped || (this.#hands.size === 0 && this.#fetcher.drained);
    if (this.#idleWaiters.size === 0 || !isIdle) return;
    for (const resolve of this.#idleWaiters) resolve();
    this.#idleWaiters.clear();
  }

  /** Said once when it begins and once when it is over: an outage must not fill the log. */
  #trouble(error: unknown): void {
    if (this.#inTrouble) return;
    this.#inTrouble = true;
    this.#log.error('the store does not answer; trying again until it does', { error });
  }

  /** When nothing is answered at all, that has been said. */
  #unrecorded(runs: number, error: unknown): void {
    if (this.#inTrouble) return;
    this.#log.warn('outcomes could not be recorded; trying again while their leases last', { runs, error });
  }

  #troubleOver(): void {
    if (!this.#inTrouble) return;
    this.#inTrouble = false;
    this.#log.info('the store answers again');
  }
}
