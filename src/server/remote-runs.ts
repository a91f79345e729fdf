import type { Clock } from '../clock.ts';
import type { AnyJobDefinition } from '../definition.ts';
import type { Logger, LogLevel } from '../observe/log.ts';
import { encodeResult } from '../result.ts';
import { classify, type FailedRun, withCustomDelay } from '../retry/classify.ts';
import type { Unrecoverable } from '../retry/control-errors.ts';
import { isPastDeadline } from '../retry/decide.ts';
import type { Decision } from '../retry/decision.ts';
import type { Outcome } from '../retry/outcome.ts';
import type { ClaimedJob, SettleAnswer, Settlement, Store } from '../store/store.ts';
import type { ActiveJob, ActiveRun } from '../worker/active-job.ts';
import { ActiveJobs } from '../worker/active-jobs.ts';
import { Finisher } from '../worker/finish.ts';
import { Gates } from '../worker/gates.ts';
import { Lease } from '../worker/lease.ts';
import { LogLines } from '../worker/log-lines.ts';
import type { Reporter } from '../worker/report.ts';
import { Trouble } from '../worker/trouble.ts';
import { ProblemError } from './problem.ts';
import type { Receipt } from './receipt.ts';

/*
 * Runs of workers that speak HTTP. They say what happened; what follows is decided here, by the parts that every worker
 * has: gate -> decide -> settle (worker/finish.ts). Settlements of all remote workers share batches.
 */

export interface RemoteRunsParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly definitions: ReadonlyMap<string, AnyJobDefinition>;
  readonly report: Reporter;
  readonly log: Logger;
  readonly maxResultBytes: number;
}

/** What a remote worker says of an error. Never what follows. */
export interface ReportedError {
  readonly class?: 'permanent' | 'environment' | 'job';
  readonly name?: string;
  readonly message?: string;
  readonly code?: string;
  readonly status?: number;
  readonly stack?: string;
  /** As the header has it: seconds, or a date. */
  readonly retryAfter?: number | string;
}

/** A line of the log of a remote run. */
export interface ReportedLine {
  readonly level: LogLevel;
  readonly message: string;
  /** Default: when it arrives. */
  readonly at?: number;
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** What a remote worker may say beside the outcome. */
export interface ReportedMore {
  readonly result?: unknown;
  readonly log?: readonly ReportedLine[];
}

export interface SettledRun {
  readonly settlement: Settlement;
  readonly answer: SettleAnswer;
}

/** Gates of this many workers are remembered; what a forgotten one had not reported yet was only signs of life. */
const MOST_WORKERS = 10_000;

export class RemoteRuns {
  readonly #parts: RemoteRunsParts;
  readonly #finisher: Finisher;
  readonly #jobs: ActiveJobs = new ActiveJobs();
  readonly #gates: Map<string, Gates> = new Map();
  readonly #waiting: Map<ActiveJob, (settlement: Settlement | null, answer: SettleAnswer | null) => void> = new Map();
  readonly #trouble: Trouble;
  #isClosing = false;
  /** How far the store's clock is ahead of ours, by the last claim. */
  #aheadMs = 0;

  constructor(parts: RemoteRunsParts) {
    this.#parts = parts;
    this.#trouble = new Trouble(parts.log);
    this.#finisher = new Finisher({
      store: parts.store,
      clock: parts.clock,
      jobs: this.#jobs,
      gates: { ended: (job, outcome) => this.#gatesOf(job.lease.job.worker).ended(job, outcome) },
      report: parts.report,
      log: parts.log,
      trouble: this.#trouble,
      isStopping: () => this.#isClosing,
      onDecided: () => {},
      onGone: (job, settlement, answer) => {
        const answered = this.#waiting.get(job);
        this.#waiting.delete(job);
        answered?.(settlement, answer);
      },
    });
  }

  /** Store time of an answer that has just come in. */
  heard(storeNow: number): void {
    this.#aheadMs = storeNow - this.#parts.clock.now();
  }

  get storeNow(): number {
    return this.#parts.clock.now() + this.#aheadMs;
  }

  /**
   * The receipt of a job that a remote worker may start. Null for one that must not: it is past its deadline, cancelled, or
   * its attempts are spent, and has been settled as that.
   */
  async start(job: ClaimedJob, leaseMs: number): Promise<Receipt | null> {
    const refund = job.spent === null ? undefined : await this.#gatesOf(job.worker).refundOf(this.#lease(job, leaseMs));
    const started =
      refund === undefined ? job : { ...job, attempts: job.attempts - refund.attempts, spent: refund.spent };
    const receipt = { job: started, leaseMs, ...(refund && { refund }) };
    const refusal = refusalOf(started, this.storeNow);
    if (refusal === null) {
      this.#parts.report.started(started, this.storeNow);
      return receipt;
    }
    await this.settle(receipt, { kind: 'released', because: { kind: refusal } });
    return null;
  }

  /** Hands a job back that the worker does not know. */
  async returnUnknown(job: ClaimedJob, leaseMs: number, giveUpAfterMs: number): Promise<void> {
    await this.settle(
      { job, leaseMs },
      { kind: 'released', because: { kind: 'no-handler', known: null, giveUpAfterMs } },
    );
  }

  /** The outcome of a run that never began: no worker can read the payload. */
  unreadable({ job }: Receipt, error: Unrecoverable): Outcome {
    return classify(error, { now: this.storeNow, run: factsOf(job) });
  }

  /** Classified as a worker would, by the rules of the definition where it is known, then by the default ones. */
  failed({ job }: Receipt, error: ReportedError): Outcome {
    const { class: given, retryAfter, ...rest } = error;
    const definition = this.#parts.definitions.get(job.name);
    const headers = retryAfter === undefined ? {} : { headers: { 'retry-after': String(retryAfter) } };
    const thrown = { name: 'Error', message: '', stack: '', ...rest, ...headers };
    const run = factsOf(job);
    const outcome = classify(thrown, {
      now: this.storeNow,
      run,
      classify: given === undefined ? definition?.classify : () => given,
      rules: definition?.rules,
    });
    if (outcome.kind !== 'failed') return outcome;
    // The ledger says who chose the class: the worker, not a function of a definition.
    const failure = given === undefined ? outcome.failure : { ...outcome.failure, rule: `reported:${given}` };
    if (definition?.backoff === undefined) return { kind: 'failed', failure };
    return { kind: 'failed', failure: withCustomDelay(failure, definition.backoff, { ...run, error: thrown }) };
  }

  /** Ends a run: once it resolves, its outcome is durable. */
  async settle(receipt: Receipt, outcome: Outcome, { result, log }: ReportedMore = {}): Promise<SettledRun> {
    const { job: claimed, leaseMs, refund } = receipt;
    if (this.#isClosing) throw new ProblemError(503, 'CLOSED', 'The server is shutting down. Send it to another one.');
    const job = this.#jobs.add(this.#lease({ ...claimed, payload: await this.#payloadOf(claimed) }, leaseMs));
    job.startedAt = claimed.claimedAt;
    job.endedAt = Math.max(claimed.claimedAt, Math.round(this.storeNow));
    job.refund = refund;
    job.run = new RemoteRun(result === undefined ? undefined : this.#encode(result), log && this.#logText(log));
    if (outcome.kind === 'failed') await this.#noticeCancel(job);
    return new Promise((resolve, reject) => {
      this.#waiting.set(job, (settlement, answer) => {
        if (settlement !== null && answer !== null) resolve({ settlement, answer });
        else reject(new ProblemError(503, 'STORE_UNAVAILABLE', 'The outcome could not be recorded. Send it again.'));
      });
      this.#finisher.finish(job, outcome);
    });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    for (const gates of this.#gates.values()) gates.stop();
    await this.#finisher.flushed();
    this.#parts.report.stop();
  }

  /** Only the definition's `onDead` looks at it, and a receipt does not carry it. */
  async #payloadOf({ id, name }: Receipt['job']): Promise<string> {
    if (this.#parts.definitions.get(name)?.onDead === undefined) return 'null';
    const [stored] = await this.#parts.store.get([id]);
    return JSON.stringify(stored?.payload ?? null);
  }

  /** A job that was cancelled meanwhile must not be retried, nor die. */
  async #noticeCancel(job: ActiveJob): Promise<void> {
    const { id } = job.lease.job;
    const cancelled = await this.#parts.store.cancelRequested([id]).catch((): string[] => []);
    if (cancelled.includes(id)) job.cancelRequested = true;
  }

  #encode(value: unknown): string | undefined {
    return encodeResult(value, this.#parts.maxResultBytes)?.text;
  }

  #logText(log: readonly ReportedLine[]): string | undefined {
    const lines = new LogLines();
    for (const { level, at, message, fields } of log)
      lines.add(level, at ?? Math.round(this.storeNow), message, fields);
    return lines.text;
  }

  /** Begins now: the worker may have renewed it since the claim, and the fence in the store has the last word. */
  #lease(job: ClaimedJob, leaseMs: number): Lease {
    return new Lease(job, leaseMs, this.#parts.clock.monotonic(), this.#parts.clock);
  }

  #gatesOf(worker: string): Gates {
    const known = this.#gates.get(worker) ?? this.#makeGates(worker);
    // Back to the end, so that the one that was not used for longest is the first.
    this.#gates.delete(worker);
    this.#gates.set(worker, known);
    if (this.#gates.size > MOST_WORKERS) this.#forgetOldest();
    return known;
  }

  #makeGates(worker: string): Gates {
    const { store, clock, definitions, report } = this.#parts;
    return new Gates({
      store,
      clock,
      worker,
      definitions,
      onChange: (answer) => report.gate(answer.gate, answer.events, answer),
      onShut: () => {},
      onAdmitted: () => {},
      onAnswered: () => {},
      onError: (error) => this.#trouble.failed(error),
    });
  }

  #forgetOldest(): void {
    const [oldest] = this.#gates;
    if (oldest === undefined) return;
    oldest[1].stop();
    this.#gates.delete(oldest[0]);
  }
}

function factsOf({ name, run, attempts, policy, previousDelayMs }: Receipt['job']): FailedRun {
  return { name, run, attempt: attempts, maxAttempts: policy.maxAttempts, previousDelayMs };
}

/** What is known here of a run elsewhere. */
class RemoteRun implements ActiveRun {
  unsentProgress: string | null = null;
  readonly result: string | undefined;
  readonly logText: string | undefined;
  readonly recorded = null;
  readonly timedOut = false;
  /** Its span is where it runs. */
  readonly span = null;

  constructor(result: string | undefined, logText: string | undefined) {
    this.result = result;
    this.logText = logText;
  }

  /** Its worker is told with the answer to the next heartbeat. */
  stop(): void {}
}

function refusalOf(job: ClaimedJob, now: number): 'cancelled' | 'exhausted' | 'deadline' | null {
  if (job.cancelRequested) return 'cancelled';
  if (job.attempts > job.policy.maxAttempts) return 'exhausted';
  return isPastDeadline(job, now) ? 'deadline' : null;
}

/** What was decided, for the answer to the worker. */
export function describeDecision(decision: Decision): { readonly decision: string; readonly delayMs: number | null } {
  return { decision: decision.kind, delayMs: 'delayMs' in decision ? decision.delayMs : null };
}
