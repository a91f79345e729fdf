import { Random } from '../../sim/random.ts';
import {
  type Access,
  accessOf,
  admitClaim,
  applyReport,
  type ClaimAdmission,
  closedGate,
  type EndedRun,
  evidenceOf,
  type FailureVerdict,
  foldRuns,
  formatGate,
  freeAccess,
  type GateAccess,
  type GateEvent,
  type GateState,
  judgeFailure,
  parseGate,
  passTime,
  pickProbe,
  refund,
  type Spent,
  spend,
  verdictAt,
  workerKey,
} from '../../src/gate/index.ts';
import { delayBefore } from '../../src/retry/jitter.ts';
import type { Outcome } from '../../src/retry/outcome.ts';
import type { Answer, Dependency } from './dependency.ts';

/*
 * A closed loop in virtual time: arrivals, workers that claim and report in batches, a toy dependency, and one gate (or
 * none) that is stored as JSON between all calls. Deterministic: the same seed gives the same curve.
 */

const TICK_MS = 50;
const FLUSH_MS = 5_000;
const LEASE_MS = 30_000;
const MAX_ATTEMPTS = 4;
const RETRY_SHARE = 0.2;
const standard = {
  backoff: { kind: 'exponential', baseMs: 500, factor: 2, maxMs: 30_000 },
  jitter: 'full',
} as const;

export interface SimJob {
  readonly id: string;
  attempts: number;
  runs: number;
  spent: Spent | null;
  awaitsVerdict: boolean;
  enqueuedAt: number;
}

interface Run {
  readonly job: SimJob;
  readonly answer: Answer;
  readonly epoch: number;
  readonly claimedAt: number;
  readonly endsAt: number;
  readonly isRetry: boolean;
}

export interface SimWorker {
  readonly name: string;
  readonly key: number;
  running: Run[];
  ended: EndedRun[];
  flushedAt: number;
  /** A killed worker neither claims nor reports. */
  isDead: boolean;
}

export interface WorldOptions {
  readonly dependency: Dependency;
  readonly seed?: number;
  readonly gate: boolean;
  readonly workers?: number;
  readonly concurrency?: number;
  /** New jobs per second at this time. */
  readonly arrivals: (now: number) => number;
}

export class World {
  now = 1_000_000;
  readonly start: number = this.now;
  readonly random: Random;
  readonly workers: SimWorker[];
  readonly events: GateEvent[] = [];
  /** Per second of virtual time: calls, failed calls, jobs that completed, starts of retries. */
  readonly calls: number[] = [];
  readonly failed: number[] = [];
  readonly done: number[] = [];
  readonly retried: number[] = [];
  readonly limits: (number | null)[] = [];
  readonly backlog: number[] = [];
  dead = 0;
  completed = 0;
  enqueued = 0;
  /** The most attempts that a completed job had spent, the successful one included, and the most calls for one job. */
  largestSpent = 0;
  mostRuns = 0;
  longestWaitMs = 0;
  largestState = 0;
  refunds = 0;
  #gate: GateState;
  /** What the partitions of the resource know of the gate, since it was last written. */
  #access: GateAccess = freeAccess;
  /** Jobs that wait, due or not. */
  waiting = 0;
  #fresh: SimJob[] = [];
  #freshFrom = 0;
  #retries: SimJob[] = [];
  #later = new Map<number, SimJob[]>();
  #owed = 0;
  readonly options: WorldOptions;

  constructor(options: WorldOptions) {
    this.options = options;
    this.random = new Random(options.seed ?? 1);
    this.#gate = closedGate(this.now);
    this.workers = Array.from({ length: options.workers ?? 3 }, (_, index) => ({
      name: `worker-${index}`,
      key: workerKey(`worker-${index}`),
      running: [],
      ended: [],
      flushedAt: this.now - FLUSH_MS,
      isDead: false,
    }));
  }

  get gate(): GateState {
    return this.#gate;
  }

  /** What is kept is what a store would give back. */
  set gate(state: GateState) {
    const stored = formatGate(state);
    this.largestState = Math.max(this.largestState, stored.length);
    this.#gate = parseGate(stored, this.now);
    this.#access = accessOf(this.#gate, this.now);
  }

  count(change: GateEvent['change']): number {
    return this.events.filter((event) => event.change === change).length;
  }

  get second(): number {
    return Math.floor((this.now - this.start) / 1_000);
  }

  enqueue(count: number): void {
    this.waiting += count;
    for (let i = 0; i < count; i++) {
      const id = `job-${this.enqueued++}`;
      this.#fresh.push({ id, attempts: 0, runs: 0, spent: null, awaitsVerdict: false, enqueuedAt: this.now });
    }
  }

  runUntil(isOver: (world: World) => boolean, longestSeconds: number): void {
    const end = this.now + longestSeconds * 1_000;
    while (this.now < end && !isOver(this)) this.#tick();
  }

  runFor(seconds: number): void {
    this.runUntil(() => false, seconds);
  }

  /** SIGKILL: the worker's jobs come back when their leases end. */
  kill(worker: SimWorker): void {
    worker.isDead = true;
    for (const { job } of worker.running) this.#wait(job, LEASE_MS);
    worker.running = [];
  }

  #tick(): void {
    this.now += TICK_MS;
    this.#owed += (this.options.arrivals(this.now) * TICK_MS) / 1_000;
    this.enqueue(Math.floor(this.#owed));
    this.#owed -= Math.floor(this.#owed);
    const tick = this.now / TICK_MS;
    for (const job of this.#later.get(tick) ?? []) this.#retries.push(job);
    this.#later.delete(tick);
    const first = tick % this.workers.length;
    for (const worker of [...this.workers.slice(first), ...this.workers.slice(0, first)]) {
      if (worker.isDead) continue;
      this.#settle(worker);
      this.#claim(worker);
    }
    if (this.now % 1_000 === 0) {
      this.limits[this.second] = this.gate.ramp?.limit ?? null;
      this.backlog[this.second] = this.waiting;
    }
  }

  #settle(worker: SimWorker): void {
    const over = worker.running.filter(({ endsAt }) => endsAt <= this.now);
    if (over.length > 0) worker.running = worker.running.filter(({ endsAt }) => endsAt > this.now);
    const ended = over.map((run): EndedRun & { run: Run } => ({
      run,
      jobId: run.job.id,
      outcome: outcomeOf(run.answer),
      epoch: run.epoch,
      claimedAt: run.claimedAt,
      durationMs: run.answer.durationMs,
      isFirstAttempt: run.job.attempts === 1,
      isRetry: run.isRetry,
    }));
    worker.ended.push(...ended);
    const isTrouble = ended.some(({ outcome, epoch }) => evidenceOf(outcome) !== 'alive' || epoch !== 0);
    if (this.options.gate && worker.ended.length > 0 && (isTrouble || this.now - worker.flushedAt >= FLUSH_MS)) {
      for (const report of foldRuns(worker.name, worker.ended, this.now - worker.flushedAt)) {
        const { state, events } = applyReport(this.gate, report, this.now, this.random.next);
        this.gate = state;
        this.events.push(...events);
      }
      worker.ended = [];
      worker.flushedAt = this.now;
    }
    const gate = this.gate;
    for (const { run, outcome } of ended) this.#end(run, outcome, worker, gate);
  }

  #end(run: Run, outcome: Outcome, worker: SimWorker, gate: GateState): void {
    const { job } = run;
    if (outcome.kind === 'completed') {
      this.completed++;
      this.done[this.second] = (this.done[this.second] ?? 0) + 1;
      this.largestSpent = Math.max(this.largestSpent, job.attempts);
      this.mostRuns = Math.max(this.mostRuns, job.runs);
      this.longestWaitMs = Math.max(this.longestWaitMs, this.now - job.enqueuedAt);
      return;
    }
    this.failed[this.second] = (this.failed[this.second] ?? 0) + 1;
    const verdict = this.options.gate ? this.#spend(run, outcome, worker, gate) : null;
    if (job.attempts >= MAX_ATTEMPTS) {
      if (verdict?.isPending !== true) this.dead++;
      else {
        job.awaitsVerdict = true;
        this.#wait(job, verdictAt(this.now) - this.now);
      }
      return;
    }
    const asked = run.answer.retryAfterMs ?? 0;
    const longestMs = verdict?.longestWaitMs ?? Number.POSITIVE_INFINITY;
    this.#wait(job, Math.max(asked, Math.min(longestMs, delayBefore(standard, job.runs, null, this.random.next))));
  }

  #spend(run: Run, outcome: Outcome, worker: SimWorker, gate: GateState): FailureVerdict {
    const { job, epoch } = run;
    this.#refund(job, gate);
    const isThrottled = evidenceOf(outcome) === 'throttled';
    const verdict = judgeFailure(
      gate,
      {
        jobId: job.id,
        worker: worker.key,
        epoch,
        isThrottled,
        uncountedRuns: job.runs - job.attempts,
        isSuspect: false,
      },
      this.now,
    );
    if (verdict.counts) job.spent = spend(job.spent, this.now);
    else job.attempts--;
    return verdict;
  }

  /** A worker asks for the gate before it starts a job that may get attempts back; time alone may have opened it. */
  #ask(): GateState {
    const { state, events } = passTime(this.gate, this.now, this.random.next);
    if (state !== this.gate) this.gate = state;
    this.events.push(...events);
    return this.gate;
  }

  #refund(job: SimJob, gate: GateState): void {
    const { attempts, spent } = refund(gate, job.spent);
    this.refunds += attempts;
    job.attempts -= attempts;
    job.spent = spent;
  }

  #wait(job: SimJob, delayMs: number): void {
    const tick = Math.floor((this.now + Math.max(TICK_MS, delayMs)) / TICK_MS);
    const jobs = this.#later.get(tick);
    if (jobs === undefined) this.#later.set(tick, [job]);
    else jobs.push(job);
    this.waiting++;
  }

  /** As a worker does: it asks the gate for what is gated and may start, and then claims the rest without asking. */
  #claim(worker: SimWorker): void {
    const places = (this.options.concurrency ?? 20) - worker.running.length;
    if (places <= 0 || this.#freshDue + this.#retries.length === 0) return;
    const access = this.options.gate ? this.#access : freeAccess;
    const left = places - this.#claimGated(worker, places, access);
    const retries = access.retry.gated ? 0 : this.#retries.length;
    const fresh = access.fresh.gated ? 0 : this.#freshDue;
    const kept = fresh > 0 ? Math.ceil(left * RETRY_SHARE) : left;
    const first = Math.min(kept, retries);
    const second = Math.min(left - first, fresh);
    this.#take(worker, { retry: first + Math.min(left - first - second, retries - first), fresh: second, epoch: 0 });
  }

  #claimGated(worker: SimWorker, places: number, { fresh, retry }: GateAccess): number {
    const isNamed = ({ gated, at }: Access, due: number): boolean => gated && at !== null && at <= this.now && due > 0;
    if (!isNamed(fresh, this.#freshDue) && !isNamed(retry, this.#retries.length)) return 0;
    const demand = {
      worker: worker.key,
      places,
      keptForRetries: Math.ceil(places * RETRY_SHARE),
      canProbe: true,
      fresh: fresh.gated ? this.#freshDue : 0,
      retry: retry.gated ? this.#retries.length : 0,
    };
    const admission = admitClaim(this.gate, null, demand, this.now, this.random.next);
    this.gate = admission.state;
    this.events.push(...admission.events);
    if (!admission.isProbe) return this.#take(worker, admission);
    this.#probe(worker, admission);
    return 1;
  }

  #probe(worker: SimWorker, { state, epoch }: ClaimAdmission): void {
    const jobs = [...this.#retries.slice(0, 10), ...this.#fresh.slice(this.#freshFrom, this.#freshFrom + 10)];
    const picked = pickProbe(
      state.probes,
      jobs.map(({ id }) => id),
      this.random.next,
    );
    const job = jobs.find(({ id }) => id === picked) as SimJob;
    const place = this.#fresh.indexOf(job, this.#freshFrom);
    if (place >= 0) this.#fresh.splice(place, 1);
    else this.#retries.splice(this.#retries.indexOf(job), 1);
    this.#begin(worker, job, epoch, place < 0);
  }

  #take(worker: SimWorker, { retry, fresh, epoch }: Pick<ClaimAdmission, 'retry' | 'fresh' | 'epoch'>): number {
    for (const job of this.#retries.splice(0, retry)) this.#begin(worker, job, epoch, true);
    for (let i = 0; i < fresh; i++) this.#begin(worker, this.#fresh[this.#freshFrom++] as SimJob, epoch, false);
    if (this.#freshFrom > 10_000) {
      this.#fresh = this.#fresh.slice(this.#freshFrom);
      this.#freshFrom = 0;
    }
    return retry + fresh;
  }

  get #freshDue(): number {
    return this.#fresh.length - this.#freshFrom;
  }

  #begin(worker: SimWorker, job: SimJob, epoch: number, isRetry: boolean): void {
    this.waiting--;
    if (job.spent !== null) this.#refund(job, this.#ask());
    if (job.awaitsVerdict && job.attempts >= MAX_ATTEMPTS) {
      this.dead++;
      return;
    }
    job.awaitsVerdict = false;
    job.attempts++;
    job.runs++;
    this.calls[this.second] = (this.calls[this.second] ?? 0) + 1;
    if (isRetry) this.retried[this.second] = (this.retried[this.second] ?? 0) + 1;
    const answer = this.options.dependency.call(this.now, this.workers.indexOf(worker), job.id, 0);
    worker.running.push({ job, answer, epoch, claimedAt: this.now, endsAt: this.now + answer.durationMs, isRetry });
  }
}

function outcomeOf(answer: Answer): Outcome {
  if (answer.kind === 'ok') return { kind: 'completed' };
  const status = answer.kind === 'too-many' ? 429 : 503;
  const error = { name: 'Error', message: 'no', code: null, status, stack: null };
  const rest = { customDelayMs: null, note: null, retryAfterMs: answer.retryAfterMs ?? null };
  return { kind: 'failed', failure: { error, class: 'environment', rule: `http:${status}`, ...rest } };
}

export function sum(counts: readonly (number | undefined)[], from: number, until: number): number {
  let total = 0;
  for (let second = from; second < until; second++) total += counts[second] ?? 0;
  return total;
}

/** The most of any `span` seconds in a row, per second. */
export function busiest(counts: readonly (number | undefined)[], from: number, until: number, span: number): number {
  let most = 0;
  for (let second = from; second + span <= until; second++) most = Math.max(most, sum(counts, second, second + span));
  return most / span;
}
