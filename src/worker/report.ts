import type { Clock } from '../clock.ts';
import type { AnyJobDefinition, DeadJob } from '../definition.ts';
import type { GateEvent } from '../gate/index.ts';
import { type DecisionLog, inShort } from '../observe/decision-log.ts';
import type { Events, RunEvent } from '../observe/events.ts';
import { FailureLog } from '../observe/failure-log.ts';
import type { GateMoment } from '../observe/gate-words.ts';
import { reportGate } from '../observe/gates.ts';
import { groupOf } from '../observe/group-of.ts';
import type { Logger, LogLevel } from '../observe/log.ts';
import type { ClaimKind, Metrics } from '../observe/metrics.ts';
import type { Tracing } from '../observe/tracing.ts';
import { asideAfter } from '../retry/decision.ts';
import type { ClaimedJob, Enqueued, GateRef, NewJob, Settlement } from '../store/store.ts';
import type { Applied } from './settle.ts';

const LIMITED_EVERY_MS = 1_000;

type NoHandlerJob = Pick<ClaimedJob, 'id' | 'name' | 'version' | 'queue' | 'worker'>;

export interface ReporterParts {
  readonly events: Events;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Null when failures are logged in groups. */
  readonly decisions: DecisionLog | null;
  readonly definitions: ReadonlyMap<string, AnyJobDefinition>;
  readonly clock: Clock;
  readonly tracing: Tracing | null;
}

/** Tells the world what happened to a run: events, metrics, the log, and the definition's `onDead`. */
export class Reporter {
  readonly #events: Events;
  readonly #metrics: Metrics;
  readonly #log: Logger;
  readonly #decisions: DecisionLog | null;
  readonly #definitions: ReadonlyMap<string, AnyJobDefinition>;
  readonly #failures: FailureLog;
  readonly #clock: Clock;
  readonly #tracing: Tracing | null;
  /** When each limit was last told of. There are as many as the worker's definitions name. */
  readonly #limitedAt: Map<string, number> = new Map();

  constructor({ events, metrics, log, decisions, definitions, clock, tracing }: ReporterParts) {
    this.#events = events;
    this.#metrics = metrics;
    this.#log = log;
    this.#decisions = decisions;
    this.#definitions = definitions;
    this.#failures = new FailureLog(log, clock);
    this.#clock = clock;
    this.#tracing = tracing;
  }

  /** Writes what the log still owes. */
  stop(): void {
    this.#failures.stop();
  }

  /** A tick of a schedule has stored a job. */
  enqueued({ name, queue }: NewJob, { id, existed }: Enqueued): void {
    this.#events.emit('enqueued', () => ({ id, name, queue, existed }));
  }

  claimed(claim: ClaimKind, durationMs: number): void {
    this.#metrics.claimed(claim, durationMs);
  }

  /** Outcomes are sent to the store with one call. */
  settling(outcomes: number): void {
    this.#metrics.settling(outcomes);
  }

  started(job: ClaimedJob, startedAt: number): void {
    const waitedMs = Math.max(0, startedAt - job.dueAt);
    this.#metrics.started(job, waitedMs);
    this.#events.emit('started', () => ({ ...runEvent(job), waitedMs }));
  }

  settled(job: ClaimedJob, settlement: Settlement, answer: Applied): void {
    const { decision, outcome, error, startedAt, endedAt } = settlement;
    const durationMs = endedAt - startedAt;
    this.#metrics.settled(job, settlement);
    this.#decisions?.write(job, settlement, answer);
    const finished = () => ({ ...runEvent(job), outcome, decision, error, durationMs });
    if (answer === 'cancelled') {
      this.#events.emit('cancelled', finished);
      return;
    }
    switch (decision.kind) {
      case 'complete':
        this.#events.emit('completed', finished);
        return;
      case 'cancel':
        this.#events.emit('cancelled', finished);
        return;
      case 'retry':
      case 'defer':
        if (this.#decisions === null)
          this.#logFailure(job, settlement, 'debug', 'a run failed; it will be tried again');
        this.#events.emit('retrying', () => ({ ...finished(), delayMs: decision.delayMs }));
        return;
      case 'dead':
        this.#events.emit('dead', () => ({ ...finished(), reason: decision.reason }));
        if (this.#decisions === null) this.#logFailure(job, settlement, 'warn', `a job is dead (${decision.reason})`);
        this.#callOnDead(job, settlement);
        return;
      default:
        this.#logAside(job, settlement);
        this.#events.emit('released', () => ({ ...finished(), delayMs: decision.delayMs }));
    }
  }

  /** A job that waits aside, because this worker has no handler for its name or version, or its schema rejects the payload. */
  #logAside(job: ClaimedJob, settlement: Settlement): void {
    const aside = asideAfter(settlement.decision);
    if (aside?.isRejected) {
      this.#logFailure(
        job,
        settlement,
        'warn',
        'a payload is rejected here; its job waits for a worker that can read it',
      );
    } else if (aside !== null) this.noHandler(job);
  }

  /** A job of a name, or of a version, that this worker has no handler for. */
  noHandler({ id, name, version, queue, worker }: NoHandlerJob): void {
    const what = version === null ? JSON.stringify(name) : `${JSON.stringify(name)}, version ${version},`;
    this.#failures.write({
      level: 'warn',
      message: `no handler for ${what} here; its jobs wait for a worker that has one`,
      group: `no-handler ${what}`,
      fields: { event: 'no-handler', id, name, queue, worker },
      common: { event: 'no-handler', name, queue, worker },
    });
  }

  #logFailure(job: ClaimedJob, { decision, outcome, error }: Settlement, level: LogLevel, message: string): void {
    const event = decision.kind === 'dead' ? 'dead' : 'retrying';
    const fingerprint = error?.fingerprint;
    const common = {
      event,
      name: job.name,
      outcome,
      error: error === null ? null : inShort(error),
      // What `mulligan errors show` takes.
      ...(fingerprint === undefined ? {} : { fingerprint }),
    };
    this.#failures.write({
      level,
      message,
      group: `${job.name} ${message} ${outcome} ${groupOf(error)}`,
      fields: { ...runEvent(job), ...common },
      common,
    });
  }

  gate(gate: GateRef, events: readonly GateEvent[], after?: GateMoment): void {
    const observers = { events: this.#events, metrics: this.#metrics, log: this.#log };
    for (const event of events) reportGate(observers, gate, event, after);
  }

  /** These limits keep jobs waiting. Each is told of at most once in a second: a busy worker asks far more often. */
  limited(limits: readonly string[]): void {
    const now = this.#clock.monotonic();
    for (const limit of limits) {
      if (now - (this.#limitedAt.get(limit) ?? Number.NEGATIVE_INFINITY) < LIMITED_EVERY_MS) continue;
      this.#limitedAt.set(limit, now);
      this.#metrics.limited(limit);
      this.#events.emit('limited', () => ({ limit, jobs: this.#jobsBehind(limit) }));
    }
  }

  #jobsBehind(limit: string): string[] {
    const all = [...this.#definitions.values()];
    return all.filter(({ limits }) => limits.some(({ name }) => name === limit)).map(({ name }) => name);
  }

  rescued(job: ClaimedJob, settlement: Settlement, answer: Applied): void {
    this.#tracing?.crashed(job, settlement);
    this.#events.emit('rescued', () => runEvent(job));
    this.settled(job, settlement, answer);
  }

  leaseLost(job: ClaimedJob): void {
    this.#metrics.leaseLost(job);
    this.#log.warn('the lease was lost; another worker has the job, and this result is dropped', runEvent(job));
    this.#events.emit('lease-lost', () => runEvent(job));
  }

  settleFailed(job: ClaimedJob, error: unknown): void {
    this.#metrics.settleFailed(job);
    this.#log.error('the outcome could not be recorded while the lease lasted; the job will run again', {
      ...runEvent(job),
      error,
    });
    this.#events.emit('settle-failed', () => ({ ...runEvent(job), error }));
  }

  #callOnDead(job: ClaimedJob, { decision, error }: Settlement): void {
    const onDead = this.#definitions.get(job.name)?.onDead;
    if (onDead === undefined) return;
    const { id, name, queue, run, attempts } = job;
    const complain = (thrown: unknown): void => {
      this.#log.error('onDead threw; the job stays dead', { ...runEvent(job), error: thrown });
    };
    const dead: DeadJob = {
      id,
      name,
      queue,
      payload: JSON.parse(job.payload),
      run,
      attempts,
      error: error ?? job.lastError,
      decision,
    };
    try {
      Promise.resolve(onDead(dead)).catch(complain);
    } catch (thrown) {
      complain(thrown);
    }
  }
}

function runEvent({ id, name, queue, run, attempts, worker }: ClaimedJob): RunEvent & Record<string, unknown> {
  return { id, name, queue, run, attempt: attempts, worker };
}
