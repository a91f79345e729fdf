import type { Clock, Timer } from '../clock.ts';
import type { AnyJobDefinition } from '../definition.ts';
import type { Duration } from '../duration.ts';
import { isRetry } from '../job.ts';
import { type Logger, type LogSink, makeLogger } from '../observe/log.ts';
import type { Tracing } from '../observe/tracing.ts';
import { asideAfter } from '../retry/decision.ts';
import type { Outcome, ReleaseCause } from '../retry/outcome.ts';
import type { Claim, ClaimedJob, Settlement, Store, WorkerDescription } from '../store/store.ts';
import { RecentErrors } from '../untrusted/recent-errors.ts';
import type { ActiveJob } from './active-job.ts';
import { ActiveJobs } from './active-jobs.ts';
import { Cancels } from './cancels.ts';
import { Chore } from './chores.ts';
import { Fetcher } from './fetch.ts';
import { Finisher } from './finish.ts';
import { Gates } from './gates.ts';
import { LeaseRenewer } from './heartbeat.ts';
import { Lease } from './lease.ts';
import { LoopDelay } from './loop-delay.ts';
import { readGrace, type WorkPlan } from './options.ts';
import { whileLeased } from './persist.ts';
import { Prefetch } from './prefetch.ts';
import { Registration } from './registration.ts';
import { Rejections } from './rejections.ts';
import type { Reporter } from './report.ts';
import { rescue } from './rescue.ts';
import { Run, type RunServices } from './run.ts';
import { SPREAD_MS, Ticker } from './schedules.ts';
import { Trial } from './trial.ts';
import { Trouble } from './trouble.ts';
import { isNewer, versionOf } from './versions.ts';
import { type WorkerStore, withTimeouts } from './with-timeouts.ts';

const PRUNE_EVERY_MS = 30_000;
const PRUNE_BATCH = 500;
/** Where no process tells the others that it has cancelled a job; with jitter, that is at most 0.75 s. */
const CHECK_CANCELS_EVERY_MS = 500;
/** How long a cancel is remembered of a job that this worker does not have: its claim may still be on the way. */
const CANCEL_REMEMBERED_MS = 10_000;
const RESCUES_PER_LEASE = 3;
/** A call to the store that is not answered in this part of a lease has failed. */
const CALLS_PER_LEASE = 2;
/** A loaded machine may take this long, however short the lease. */
const SHORTEST_CALL_TIMEOUT_MS = 3_000;

/** Where a worker runs: given to it, because the simulator's run in no process of their own, and perhaps in a browser. */
export interface WorkerHost {
  readonly name: string;
  readonly pid: number;
  /** The version of this package. */
  readonly mulligan: string;
}

export interface WorkerParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly definitions: ReadonlyMap<string, AnyJobDefinition>;
  readonly plan: WorkPlan;
  readonly host: WorkerHost;
  readonly report: Reporter;
  readonly logSink: LogSink;
  readonly tracing: Tracing | null;
  readonly maxPayloadBytes: number;
  readonly maxResultBytes: number;
  readonly enqueue: RunServices['enqueue'];
  readonly enqueueMany: RunServices['enqueueMany'];
  /** Whether no other worker shares this process: only then can a job be the only one in it. */
  readonly isOnlyWorker: () => boolean;
  readonly onStopped: () => void;
}

/**
 * The way of a job through a worker:
 *
 *   fetch (lanes, gates, capacity) -> run (signal, timeout, heartbeat) -> outcome -> gate -> decide -> settle
 *
 * `ActiveJobs` keeps the state of each job on that way. Beside it: the renewer extends leases, trials give suspects a run
 * of their own, the rescuer settles what silent workers left, the pruner deletes what outlived its retention, the ticker
 * enqueues the jobs of schedules.
 */
export class Worker {
  readonly id: string;
  readonly #parts: WorkerParts;
  readonly #store: WorkerStore;
  readonly #fetcher: Fetcher;
  readonly #prefetch: Prefetch;
  readonly #trial: Trial;
  readonly #gates: Gates;
  readonly #finisher: Finisher;
  readonly #renewer: LeaseRenewer;
  readonly #chores: readonly Chore[];
  readonly #ticker: Ticker;
  readonly #registration: Registration;
  readonly #loopDelay: LoopDelay;
  readonly #runServices: RunServices;
  readonly #trouble: Trouble;
  readonly #rejections: Rejections;
  readonly #jobs: ActiveJobs;
  readonly #cancels: Cancels;
  readonly #warnedOfResults: Set<string> = new Set();
  #startTimer: Timer | null = null;
  #unsubscribe: () => void = () => {};
  #unsubscribeJobs: () => void = () => {};
  #stopping: Promise<void> | null = null;
  #stopped = false;
  readonly #idleWaiters: Set<() => void> = new Set();

  constructor(parts: WorkerParts) {
    const { clock, plan, logSink, host } = parts;
    const { leaseMs, concurrency } = plan;
    const callTimeoutMs = Math.max(SHORTEST_CALL_TIMEOUT_MS, leaseMs / CALLS_PER_LEASE);
    const store = withTimeouts(parts.store, clock, callTimeoutMs);
    this.#parts = parts;
    this.#store = store;
    this.#jobs = new ActiveJobs((job) => holdsOthersBack(job, plan));
    this.id = `${plan.name ?? `${host.name}-${host.pid}`}-${clock.newId().slice(-8)}`;
    const log = makeLogger(logSink, () => ({ worker: this.id }));
    this.#trouble = new Trouble(log);
    const onError = (error: unknown): void => this.#trouble.failed(error);
    this.#gates = new Gates({
      store,
      clock,
      worker: this.id,
      definitions: parts.definitions,
      onChange: (answer) => parts.report.gate(answer.gate, answer.events, answer),
      onAdmitted: () => this.#fetcher.wake('due'),
      onAnswered: () => this.#startSoon(),
      onShut: (resource) => this.#releaseBehind(resource),
      onError,
    });
    this.#finisher = new Finisher({
      store,
      gates: this.#gates,
      clock,
      jobs: this.#jobs,
      report: parts.report,
      log,
      trouble: this.#trouble,
      isStopping: () => this.#stopping !== null,
      onDecided: ({ lease }, outcome, decision) => {
        const aside = asideAfter(decision);
        const because = outcome.kind === 'released' ? outcome.because : null;
        if (aside !== null && because?.kind === 'rejected') {
          this.#rejections.add(lease.job.name, aside.kind, because.before);
        }
      },
      onGone: (job, settlement) => this.#gone(job, settlement),
    });
    this.#renewer = new LeaseRenewer(store, clock, leaseMs, () => this.#renewable(), onError);
    this.#prefetch = new Prefetch(clock, concurrency);
    this.#rejections = new Rejections(clock, plan.rejectedPayloadTimeoutMs);
    this.#cancels = new Cancels(clock, this.#jobs, CANCEL_REMEMBERED_MS);
    this.#trial = new Trial({
      clock,
      leaseMs,
      concurrency,
      jobs: this.#jobs,
      isOnlyWorker: parts.isOnlyWorker,
      releaseBuffer: () => this.#releaseBuffer({ kind: 'trial' }),
      start: (suspect) => this.#startOrRelease(suspect),
      release: (suspect) => this.#release(suspect, { kind: 'shutdown' }),
      record: (suspect, alone) => this.#recordAlone(suspect, alone),
    });
    this.#fetcher = new Fetcher({
      store,
      clock,
      plan,
      worker: this.id,
      rejections: this.#rejections,
      knows: new Map([...parts.definitions.values()].map((one) => [one.name, versionOf(one)])),
      callTimeoutMs,
      prefetch: this.#prefetch,
      load: () => this.#jobs,
      accept: (claim, askedAt) => this.#accept(claim, askedAt),
      canTry: () => !this.#jobs.listRunning().some(({ lease }) => lease.job.lane === 'suspect'),
      tryOut: (suspect, askedAt) => this.#trial.hold(this.#jobs.add(this.#leaseOf(suspect, askedAt))),
      onGate: (gate, events) => parts.report.gate(gate, events),
      onLimited: (limits) => parts.report.limited(limits),
      onDrained: () => this.#checkIdle(),
      onError,
      onAnswer: (kind, durationMs) => {
        parts.report.claimed(kind, durationMs);
        this.#trouble.over();
      },
    });
    this.#chores = [
      new Chore(clock, leaseMs / RESCUES_PER_LEASE, () => this.#rescue(), onError),
      new Chore(clock, PRUNE_EVERY_MS, () => this.#prune(), onError),
      ...(store.pushes ? [] : [new Chore(clock, CHECK_CANCELS_EVERY_MS, () => this.#checkCancels(), onError)]),
    ];
    this.#ticker = new Ticker({
      store,
      clock,
      pollMs: plan.pollMs,
      spreadMs: parts.store.kind === 'memory' ? 0 : SPREAD_MS,
      log,
      onEnqueued: (job, answer) => parts.report.enqueued(job, answer),
      onError,
    });
    this.#loopDelay = new LoopDelay(clock);
    this.#registration = new Registration(store, clock, this.id, () => this.#description(), onError);
    this.#runServices = {
      clock,
      logSink,
      tracing: parts.tracing,
      store,
      renew: (run) => this.#renew(run),
      renewSoon: () => this.#renewer.renewSoon(),
      maxPayloadBytes: parts.maxPayloadBytes,
      rejectedPayloadTimeoutMs: plan.rejectedPayloadTimeoutMs,
      maxResultBytes: parts.maxResultBytes,
      onLostResult: (job, problem) => this.#lostResult(job, problem, log),
      onLimited: (limit) => parts.report.limited([limit]),
      limits: [...parts.definitions.values()].flatMap(({ limits }) => limits),
      enqueue: parts.enqueue,
      enqueueMany: parts.enqueueMany,
      recentErrors: new RecentErrors(),
    };
  }

  /** How many jobs run right now. */
  get running(): number {
    return this.#jobs.running;
  }

  start(): void {
    this.#unsubscribe = this.#store.onWork(() => {
      this.#fetcher.wake('new-work');
      this.#ticker.wake();
    });
    this.#unsubscribeJobs = this.#store.onJobs({ cancelling: (ids) => this.#cancels.told(ids) });
    this.#fetcher.start();
    this.#renewer.start();
    for (const chore of this.#chores) chore.start();
    this.#ticker.start();
    this.#loopDelay.start();
    this.#registration.start();
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
      for (const job of this.#jobs.list()) job.run?.stop('shutdown');
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
    this.#trial.stop();
    const ticking = this.#ticker.stop();
    const fetching = this.#fetcher.stop();
    this.#releaseBuffer({ kind: 'shutdown' });
    await fetching;
    this.#releaseBuffer({ kind: 'shutdown' });
    await this.#jobs.whenEmpty();
    this.#unsubscribeJobs();
    this.#cancels.stop();
    this.#gates.stop();
    this.#renewer.stop();
    await Promise.all([ticking, ...this.#chores.map((chore) => chore.stop())]);
    await this.#finisher.flushed();
    await this.#registration.stop();
    this.#loopDelay.stop();
    this.#parts.report.stop();
    this.#stopped = true;
    this.#checkIdle();
    this.#parts.onStopped();
  }

  // Claimed -> buffered -> started, or handed back

  #leaseOf(job: ClaimedJob, askedAt: number): Lease {
    const { plan, clock } = this.#parts;
    return new Lease(job, plan.leaseMs, askedAt, clock);
  }

  #accept(claim: Pick<Claim, 'jobs'>, askedAt: number): void {
    for (const claimed of claim.jobs) {
      const job = this.#jobs.add(this.#leaseOf(claimed, askedAt));
      this.#cancels.claimed(job);
      // The answer to a claim for a suspect, so late that its trial was given up.
      if (claimed.lane === 'suspect') this.#release(job, { kind: 'trial' });
    }
    if (this.#stopping) this.#releaseBuffer({ kind: 'shutdown' });
    else if (this.#trial.underWay) this.#releaseBuffer({ kind: 'trial' });
    else this.#startNext();
  }

  #releaseBuffer(because: ReleaseCause): void {
    for (const job of this.#jobs.takeBuffered(this.#jobs.buffered)) this.#release(job, because);
  }

  /** They were claimed before the gate opened. */
  #releaseBehind(resource: string): void {
    for (const job of this.#jobs.takeBufferedOf(resource)) {
      if (job.lease.lost) this.#finisher.drop(job);
      else this.#release(job, { kind: 'gate' });
    }
  }

  #release(job: ActiveJob, because: ReleaseCause): void {
    job.startedAt = job.lease.storeNow;
    job.endedAt = job.startedAt;
    this.#finisher.finish(job, { kind: 'released', because });
  }

  /**
   * In the next turn: jobs that end at once would otherwise start each other without end, and nothing else in the
   * process would run. It also lets one wave of jobs run here while the store still works on the one before.
   */
  #startSoon(): void {
    if (this.#startTimer !== null || this.#jobs.buffered === 0) return;
    this.#startTimer = this.#parts.clock.after(0, () => {
      this.#startTimer = null;
      this.#startNext();
    });
  }

  #startNext(): void {
    const { concurrency } = this.#parts.plan;
    const solitudeEnds = this.#jobs.buffered > 0 ? this.#trial.endSolitude() : null;
    if (solitudeEnds !== null) {
      void solitudeEnds.then(() => this.#startSoon());
      return;
    }
    for (;;) {
      const places = concurrency - this.#jobs.running;
      const next = this.#jobs.takeBuffered(places, (job) => !this.#gates.awaitsAnswer(job.behind));
      if (next.length === 0) return;
      for (const job of next) this.#startOrRelease(job);
    }
  }

  #startOrRelease(job: ActiveJob): void {
    if (job.lease.lost) this.#finisher.drop(job);
    // Another worker may have it by now, so it must not start. If none has, it goes back uncounted: it never ran.
    else if (job.lease.ended) this.#release(job, { kind: 'late' });
    else if (job.cancelRequested) this.#release(job, { kind: 'cancelled' });
    else this.#start(job);
  }

  #start(job: ActiveJob): void {
    const { definitions, plan } = this.#parts;
    const { lease } = job;
    this.#jobs.runs(job);
    job.startedAt = lease.storeNow;
    const definition = definitions.get(lease.job.name);
    if (definition === undefined || isNewer(lease.job, definition)) {
      const known = definition === undefined ? null : versionOf(definition);
      const because: ReleaseCause = { kind: 'no-handler', known, giveUpAfterMs: plan.unknownJobTimeoutMs };
      this.#end(job, { kind: 'released', because });
      return;
    }
    if (lease.job.spent !== null) void this.#startRefunded(job, definition);
    else this.#handle(job, definition);
  }

  /** Attempts that an outage has cost are given back before the run, so that it starts with the right number. */
  async #startRefunded(job: ActiveJob, definition: AnyJobDefinition): Promise<void> {
    const { lease } = job;
    job.refund = await this.#gates.refundOf(lease);
    if (job.refund !== undefined) {
      const { attempts, spent } = job.refund;
      lease.job = { ...lease.job, attempts: lease.job.attempts - attempts, spent };
    }
    if (lease.ended) this.#end(job, { kind: 'released', because: { kind: 'late' } });
    else if (job.cancelRequested) this.#end(job, { kind: 'released', because: { kind: 'cancelled' } });
    else if (lease.job.attempts > lease.job.policy.maxAttempts) {
      this.#end(job, { kind: 'released', because: { kind: 'exhausted' } });
    } else this.#handle(job, definition);
  }

  #handle(job: ActiveJob, definition: AnyJobDefinition): void {
    const { lease } = job;
    this.#parts.report.started(lease.job, job.startedAt);
    const run = new Run(lease, job.startedAt, definition, this.#runServices);
    job.run = run;
    run.start((outcome) => this.#end(job, outcome));
  }

  // Ended -> gone

  #end(job: ActiveJob, outcome: Outcome): void {
    job.endedAt = job.lease.storeNow;
    const handlerRan = outcome.kind !== 'released' || outcome.because.kind === 'shutdown';
    if (handlerRan) this.#prefetch.ran(job.endedAt - job.startedAt);
    this.#finisher.finish(job, outcome);
    this.#startSoon();
    this.#fetcher.wake('room');
    this.#trial.jobChanged();
  }

  #gone(job: ActiveJob, settlement: Settlement | null): void {
    const { lane, limits } = job.lease.job;
    this.#fetcher.wake(limits.length > 0 ? 'limit-freed' : isRetry(lane) ? 'retry-ended' : 'room');
    this.#trial.jobChanged();
    this.#checkIdle();
    // The job may fall due sooner than anything the fetcher knows of.
    if (settlement !== null && 'delayMs' in settlement.decision) this.#fetcher.wake('due');
  }

  // Leases

  /** An outcome that could not be recorded for a whole lease is given up with the next: its lease is not renewed again. */
  #renewable(): ActiveJob[] {
    const since = this.#parts.clock.monotonic() - this.#parts.plan.leaseMs;
    return this.#jobs.list().filter(({ settlingSince }) => settlingSince === null || settlingSince >= since);
  }

  /** False when the run has lost its lease, or its place: a run that was given up holds nothing any more. */
  async #renew(run: Run): Promise<boolean> {
    const job = this.#jobs.list().find((one) => one.run === run);
    return job !== undefined && (await this.#renewer.renew(job));
  }

  async #recordAlone(suspect: ActiveJob, alone: boolean): Promise<void> {
    const renew = (): Promise<boolean> => this.#renewer.renew(suspect, alone);
    // When that fails, the lease is over: the suspect does not start, or its run is lost.
    await whileLeased([suspect.lease], this.#parts.clock, renew).catch((error) => this.#trouble.failed(error));
  }

  // Chores

  #description(): WorkerDescription {
    const { plan, definitions, host } = this.#parts;
    return {
      name: plan.name,
      version: plan.version,
      mulligan: host.mulligan,
      host: host.name,
      pid: host.pid,
      concurrency: plan.concurrency,
      queues: plan.queues.map(({ queue }) => queue),
      jobs: [...definitions.keys()].sort(),
      running: this.running,
      leaseMs: plan.leaseMs,
      loopDelayMs: this.#loopDelay.longestMs,
      http: null,
    };
  }

  async #rescue(): Promise<void> {
    const { clock, report } = this.#parts;
    await rescue(this.#store, clock, ({ job, settlement, answer }) => report.rescued(job, settlement, answer));
  }

  async #prune(): Promise<void> {
    const { unknownJobTimeoutMs } = this.#parts.plan;
    while (!this.#stopping && !(await this.#store.prune(PRUNE_BATCH, unknownJobTimeoutMs)).isDone);
  }

  async #checkCancels(): Promise<void> {
    const running = this.#jobs.listRunning().map(({ lease }) => lease.job.id);
    if (running.length > 0) this.#cancels.told(await this.#store.cancelRequested(running));
  }

  /** Once per job name: a handler that returns such a value does so every time. */
  #lostResult({ id, name, run }: ClaimedJob, problem: string, log: Logger): void {
    if (this.#warnedOfResults.has(name)) return;
    this.#warnedOfResults.add(name);
    const message =
      'what the handler returned cannot be stored as the result; the job completes without (logged once per name)';
    log.warn(message, { job: id, name, run, problem });
  }

  #checkIdle(): void {
    const isIdle = this.#stopped || (this.#jobs.size === 0 && this.#fetcher.drained);
    if (this.#idleWaiters.size === 0 || !isIdle) return;
    for (const resolve of this.#idleWaiters) resolve();
    this.#idleWaiters.clear();
  }
}

/** It counts against a limit or against `maxRetriesInFlight` from its claim on, whether it has started or not. */
function holdsOthersBack({ limits, lane, queue }: ClaimedJob, { queues }: WorkPlan): boolean {
  if (limits.length > 0) return true;
  return isRetry(lane) && queues.some((one) => one.queue === queue && one.maxRetriesInFlight !== null);
}
