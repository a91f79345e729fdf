import { type Clock, nextTurn, type Timer } from '../clock.ts';
import type { AnyJobDefinition } from '../definition.ts';
import {
  addRun,
  emptyReport,
  endsByTime,
  type GatheredReport,
  gateKey,
  gateOfJob,
  refund,
  workerKey,
} from '../gate/index.ts';
import { isRetry } from '../job.ts';
import type { Outcome } from '../retry/outcome.ts';
import type { ClaimedJob, GateAnswer, GateRef, Refund, Store, WorkerReport } from '../store/store.ts';
import type { ActiveJob } from './active-job.ts';
import type { Lease } from './lease.ts';
import { whileLeased } from './persist.ts';
import { UnansweredFailures } from './unanswered-failures.ts';
import { type Judged, judge } from './verdict.ts';

/*
 * What a worker tells the gates, and asks them.
 *
 *   signs of life   are gathered and sent at most every 5 s, all gates in one call; the first after a quiet time at once,
 *                   so that a failing worker is never the only one that is heard
 *   trouble         (a failure by the environment, or a 429) is sent at once, and the answer tells whether it counts. After
 *                   several in a row, jobs of the resource do not start before the answer: it may be that the gate is shut
 *   a probe, or a run that a ramp let start, is sent at once as well; nothing waits for the answer
 *   a ramp, or an outage of a soft gate that ends by time, is asked about every 10 s, so that it is seen to close when no more
 *                   jobs come
 *
 * One call is under way at a time; what ends meanwhile gathers for the next.
 */

const FLUSH_MS = 5_000;
/** How often gates that time closes are asked about, and how many at once. */
const LOOK_MS = 10_000;
const MOST_LOOKED_AT = 100;

export interface GatesParts {
  readonly store: Pick<Store, 'report'>;
  readonly clock: Clock;
  readonly worker: string;
  readonly definitions: ReadonlyMap<string, AnyJobDefinition>;
  readonly onChange: (answer: GateAnswer) => void;
  /** No job of this resource may start now. */
  readonly onShut: (resource: string) => void;
  /** The report on a job that a gate had admitted may let the next one start. */
  readonly onAdmitted: () => void;
  /** Jobs that did not start because of `awaitsAnswer` may start. */
  readonly onAnswered: () => void;
  readonly onError: (error: unknown) => void;
}

/** What was seen of one gate since the last call. */
interface Gathered {
  readonly gate: GateRef;
  readonly reports: GatheredReport[];
  readonly since: number;
}

interface Waiting {
  readonly gate: GateRef;
  /** For as long as it lasts, the question is asked again; null for once. */
  readonly lease: Lease | null;
  readonly answer: (answer: GateAnswer | null) => void;
}

export class Gates {
  readonly #parts: GatesParts;
  readonly #workerKey: number;
  #gathered: Map<string, Gathered> = new Map();
  /** Gates whose reports must not wait for the next flush. */
  readonly #urgent: Set<string> = new Set();
  #waiting: Waiting[] = [];
  readonly #unanswered: UnansweredFailures;
  #flushedAt = Number.NEGATIVE_INFINITY;
  #flushTimer: Timer | null = null;
  /** Gates in their ramp, and soft gates whose outage was answered: time closes them, so a worker must look when no job does. */
  readonly #watched: Map<string, GateRef> = new Map();
  #watchTimer: Timer | null = null;
  #isSending = false;
  #isStopped = false;

  constructor(parts: GatesParts) {
    this.#parts = parts;
    this.#workerKey = workerKey(parts.worker);
    this.#unanswered = new UnansweredFailures(parts.clock, parts.onAnswered);
  }

  /** Counts a run that has ended. Null when its end needs no verdict; else what the gate makes of it, or null without an answer. */
  ended(job: ActiveJob, outcome: Outcome): Promise<Judged | null> | null {
    const claimed = job.lease.job;
    const gate = this.#gateOf(claimed);
    if (gate === null) return null;
    const { id: jobId, gateEpoch: epoch, claimedAt, lane, attempts } = claimed;
    // A run that never started says nothing, unless the gate counts on its report.
    if (outcome.kind === 'released' && epoch === 0) return null;
    // Without a resource it may as well be the handler that hangs, and it must not be run for a day for that.
    if (gate.kind === 'job' && job.run?.timedOut === true) return null;
    const evidence = addRun(this.#reportOn(gate, epoch, claimedAt), {
      jobId,
      outcome,
      epoch,
      claimedAt,
      durationMs: job.endedAt - job.startedAt,
      isFirstAttempt: attempts === 1,
      // A job that failed by its own fault was answered: to run it again is no sign that the dependency is in trouble.
      isRetry: isRetry(lane) && claimed.spent !== null,
    });
    const isTrouble = evidence === 'environment' || evidence === 'throttled';
    if (gate.kind === 'resource') {
      if (isTrouble) this.#unanswered.failed(gate.name);
      else if (evidence === 'alive') this.#unanswered.alive(gate.name);
    }
    if (isTrouble || epoch !== 0) this.#sendSoon(gate);
    else this.#flushLater();
    // A job with one attempt must not be run again, not even after an outage.
    if (!isTrouble || claimed.policy.maxAttempts === 1) return null;
    const maxOutageMs = this.#parts.definitions.get(claimed.name)?.maxOutageMs;
    return this.#answerOn(gate, job.lease).then((answer) => answer && judge(claimed, evidence, answer, maxOutageMs));
  }

  /** The attempts of earlier runs that an outage has cost; undefined when the job has no such note, or without an answer. */
  async refundOf(lease: Lease): Promise<Refund | undefined> {
    const { job } = lease;
    const gate = job.spent === null ? null : this.#gateOf(job);
    if (gate === null) return undefined;
    const answer = await this.#answerOn(gate, lease);
    return answer === null ? undefined : refund(answer.state, job.spent);
  }

  /** Whether buffered jobs of the resource should start only after the next answer: several in a row have failed. */
  awaitsAnswer(resource: string | null): boolean {
    return this.#unanswered.areMany(resource);
  }

  /** Signs of life that were not sent yet are dropped: the next worker will see its own. */
  stop(): void {
    this.#isStopped = true;
    this.#flushTimer?.cancel();
    this.#watchTimer?.cancel();
    this.#unanswered.stop();
  }

  #gateOf({ resource, name }: Pick<ClaimedJob, 'resource' | 'name'>): GateRef | null {
    const definition = this.#parts.definitions.get(name);
    const hasNone = resource === null && (definition === undefined || definition.resource === false);
    return hasNone ? null : gateOfJob({ resource, name });
  }

  #reportOn(gate: GateRef, epoch: number, claimedAt: number): GatheredReport {
    const key = gateKey(gate);
    let gathered = this.#gathered.get(key);
    if (gathered === undefined) {
      gathered = { gate, reports: [], since: this.#parts.clock.monotonic() };
      this.#gathered.set(key, gathered);
    }
    let report = gathered.reports.find((one) => one.epoch === epoch);
    if (report === undefined) {
      report = emptyReport(this.#workerKey, epoch, claimedAt, 0);
      gathered.reports.push(report);
    }
    return report;
  }

  #answerOn(gate: GateRef, lease: Lease): Promise<GateAnswer | null> {
    return new Promise((resolve) => {
      this.#waiting.push({ gate, lease, answer: resolve });
      this.#sendSoon(gate);
    });
  }

  #flushLater(): void {
    if (this.#flushTimer !== null || this.#isStopped) return;
    const { clock } = this.#parts;
    const waitMs = Math.max(0, this.#flushedAt + FLUSH_MS - clock.monotonic());
    this.#flushTimer = clock.after(waitMs, () => {
      this.#flushTimer = null;
      this.#flushedAt = clock.monotonic();
      for (const key of this.#gathered.keys()) this.#urgent.add(key);
      this.#start();
    });
  }

  #sendSoon(gate: GateRef): void {
    this.#urgent.add(gateKey(gate));
    this.#start();
  }

  #start(): void {
    if (this.#urgent.size === 0 || this.#isSending) return;
    this.#isSending = true;
    void this.#send();
  }

  /** Nothing is awaited between the last look at what is urgent and the end, so that nothing urgent is left behind. */
  async #send(): Promise<void> {
    while (this.#urgent.size > 0) {
      // Runs that end in the same turn travel together.
      await nextTurn(this.#parts.clock);
      const reports = this.#takeUrgent();
      const waiting = this.#waiting.splice(0);
      this.#unanswered.reportSent();
      const answers = await this.#call(reports, waiting).catch((error) => {
        this.#parts.onError(error);
        return null;
      });
      this.#unanswered.reportAnswered();
      for (const { gate, answer } of waiting) answer(answers?.get(gateKey(gate)) ?? null);
    }
    this.#isSending = false;
  }

  #takeUrgent(): WorkerReport[] {
    const { clock, worker } = this.#parts;
    const now = clock.monotonic();
    const reports: WorkerReport[] = [];
    for (const key of this.#urgent) {
      const gathered = this.#gathered.get(key);
      if (gathered === undefined) continue;
      this.#gathered.delete(key);
      const spanMs = Math.max(1, now - gathered.since);
      for (const report of gathered.reports) {
        reports.push({ gate: gathered.gate, worker, report: { ...report, spanMs } });
      }
    }
    const reported = new Set(reports.map(({ gate }) => gateKey(gate)));
    for (const { gate } of this.#waiting) {
      const key = gateKey(gate);
      if (reported.has(key)) continue;
      reported.add(key);
      reports.push({ gate, worker, report: null });
    }
    this.#urgent.clear();
    return reports;
  }

  /** The last answer on each gate; null when there is none: then failures count as if there was no gate. */
  async #call(
    reports: readonly WorkerReport[],
    waiting: readonly Waiting[],
  ): Promise<ReadonlyMap<string, GateAnswer> | null> {
    const { store, clock, onChange, onShut, onAdmitted, onError } = this.#parts;
    if (reports.length === 0) return null;
    const leases = waiting.flatMap(({ lease }) => lease ?? []);
    let answers: GateAnswer[];
    try {
      answers = await whileLeased(leases, clock, () => store.report(reports));
    } catch (error) {
      onError(error);
      return null;
    }
    const last = new Map<string, GateAnswer>();
    for (const answer of answers) {
      last.set(gateKey(answer.gate), answer);
      if (answer.events.length > 0) onChange(answer);
    }
    for (const { gate, state, now } of last.values()) {
      this.#watch(gate, gate.kind === 'job' ? endsByTime(state) : gate.kind === 'resource' && state.phase === 'ramp');
      const isShut = state.pin === 'open' || (state.pin === null && (state.phase === 'open' || state.heldUntil > now));
      if (gate.kind === 'resource' && isShut) onShut(gate.name);
    }
    if (reports.some(({ report }) => report !== null && report.epoch !== 0)) onAdmitted();
    return last;
  }

  #watch(gate: GateRef, closesByTime: boolean): void {
    const key = gateKey(gate);
    this.#watched.delete(key);
    if (closesByTime) this.#watched.set(key, gate);
    if (this.#watched.size === 0 || this.#watchTimer !== null || this.#isStopped) return;
    this.#watchTimer = this.#parts.clock.after(LOOK_MS, () => {
      this.#watchTimer = null;
      // Those that were not looked at for longest come first.
      for (const watched of [...this.#watched.values()].slice(0, MOST_LOOKED_AT)) {
        this.#waiting.push({ gate: watched, lease: null, answer: () => {} });
        this.#sendSoon(watched);
      }
    });
  }
}
