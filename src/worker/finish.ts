import type { Clock } from '../clock.ts';
import type { Logger } from '../observe/log.ts';
import { decide } from '../retry/decide.ts';
import type { Decision } from '../retry/decision.ts';
import type { Outcome } from '../retry/outcome.ts';
import type { Refund, SettleAnswer, Settlement, Store } from '../store/store.ts';
import type { ActiveJob } from './active-job.ts';
import type { ActiveJobs } from './active-jobs.ts';
import type { Gates } from './gates.ts';
import type { Reporter } from './report.ts';
import { type Ending, Settler } from './settle.ts';
import { errorOf, settlementOf } from './settlement.ts';
import type { Trouble } from './trouble.ts';
import type { Judged } from './verdict.ts';

export interface FinisherParts {
  readonly store: Pick<Store, 'settle'>;
  readonly clock: Clock;
  readonly jobs: ActiveJobs;
  readonly gates: Pick<Gates, 'ended'>;
  readonly report: Reporter;
  readonly log: Logger;
  readonly trouble: Trouble;
  readonly isStopping: () => boolean;
  /** Called before the settlement is sent: from then on, any claim may find the job. */
  readonly onDecided: (job: ActiveJob, outcome: Outcome, decision: Decision) => void;
  /**
   * `settlement` is how the run ended, or null when its lease was lost. `answer` is the store's, or null when the
   * settlement could not be recorded.
   */
  readonly onGone: (job: ActiveJob, settlement: Settlement | null, answer: SettleAnswer | null) => void;
}

/** The last steps of each job that leaves a worker: gate -> decide -> settle -> report -> gone. */
export class Finisher {
  readonly #parts: FinisherParts;
  readonly #settler: Settler;

  constructor(parts: FinisherParts) {
    this.#parts = parts;
    this.#settler = new Settler(parts.store, parts.clock, parts.isStopping, {
      answered: (ending, answer) => this.#settled(ending, answer),
      failed: (ending, error) => this.#settleFailed(ending, error),
      sent: (endings) => parts.report.settling(endings),
      retried: (endings, error) => parts.trouble.unrecorded(endings, error),
    });
  }

  finish(job: ActiveJob, outcome: Outcome): void {
    if (job.run?.recorded) this.#finishRecorded(job, job.run.recorded, outcome);
    else if (job.lease.lost) this.drop(job);
    else this.#settle(job, outcome);
  }

  /** Another worker has it. */
  drop(job: ActiveJob): void {
    job.run?.span?.lost('lease-lost');
    this.#parts.report.leaseLost(job.lease.job);
    this.#gone(job, null, 'stale');
  }

  flushed(): Promise<void> {
    return this.#settler.flushed();
  }

  #settle(job: ActiveJob, outcome: Outcome): void {
    const { clock, jobs, gates, trouble } = this.#parts;
    jobs.settles(job, clock.monotonic());
    const judging = gates.ended(job, outcome);
    if (judging === null) this.#decide(job, outcome, null);
    else judging.then((judged) => this.#decide(job, outcome, judged)).catch((error) => trouble.failed(error));
  }

  #decide(job: ActiveJob, outcome: Outcome, judged: Judged | null): void {
    const { clock } = this.#parts;
    const given = job.lease.job;
    const refunded = judged?.refund.attempts ?? 0;
    // A copy only where something differs: this is done for every job.
    const claimed =
      refunded > 0 || job.cancelRequested
        ? { ...given, attempts: given.attempts - refunded, cancelRequested: job.cancelRequested }
        : given;
    const decision = decide(claimed, outcome, job.endedAt, () => clock.random(), judged?.verdict);
    const { startedAt, endedAt } = job;
    const refund = joinRefunds(job.refund, judged?.refund);
    // Progress that no heartbeat has sent goes with the outcome.
    const left = { result: job.run?.result, progress: job.unsentProgress ?? undefined, log: job.run?.logText };
    const settlement = settlementOf(claimed, { startedAt, endedAt, refund, ...left }, outcome, decision);
    this.#parts.onDecided(job, outcome, decision);
    this.#settler.settle({ job, settlement });
  }

  #settled({ job, settlement }: Ending, answer: SettleAnswer): void {
    const { report, trouble } = this.#parts;
    if (answer === 'stale') job.run?.span?.lost('lease-lost');
    else job.run?.span?.settled(settlement);
    try {
      if (answer === 'stale') report.leaseLost(job.lease.job);
      else report.settled(job.lease.job, settlement, answer);
    } catch (error) {
      trouble.failed(error);
    }
    this.#gone(job, settlement, answer);
  }

  /** The job will run again. */
  #settleFailed({ job, settlement }: Ending, error: unknown): void {
    job.run?.span?.lost('settle-failed');
    this.#parts.report.settleFailed(job.lease.job, error);
    this.#gone(job, settlement, null);
  }

  /** The handler's own transaction has completed the job; what the handler did after it changes nothing. */
  #finishRecorded(job: ActiveJob, settlement: Settlement, outcome: Outcome): void {
    const { log, report } = this.#parts;
    const claimed = job.lease.job;
    if (outcome.kind !== 'completed') {
      const error = errorOf(outcome);
      log.warn('the handler failed after its transaction had completed the job', { job: claimed.id, error });
    }
    job.run?.span?.settled(settlement);
    report.settled(claimed, settlement, 'settled');
    this.#gone(job, settlement, 'settled');
  }

  #gone(job: ActiveJob, settlement: Settlement | null, answer: SettleAnswer | null): void {
    this.#parts.jobs.isGone(job);
    this.#parts.onGone(job, settlement, answer);
  }
}

/** What was given back before the start, and what is given back now. */
function joinRefunds(before: Refund | undefined, now: Refund | undefined): Refund | undefined {
  if (before === undefined || now === undefined) return now ?? before;
  return { attempts: before.attempts + now.attempts, spent: now.spent };
}
