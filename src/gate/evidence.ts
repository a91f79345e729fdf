import type { Outcome } from '../retry/outcome.ts';
import { type JobBits, jobBit, join, noJobs, workerKey } from './sets.ts';

/**
 * What a run proves about its dependency. alive: it was reached and answered, even if the job failed by its own fault.
 * environment: it could not serve. throttled: it answered that it wants fewer calls: no outage, but a hold. none: a crash,
 * release, cancel or snooze says nothing.
 */
export type Evidence = 'alive' | 'environment' | 'throttled' | 'none';

const TOO_MANY_REQUESTS = 429;

export function evidenceOf(outcome: Outcome): Evidence {
  if (outcome.kind === 'completed') return 'alive';
  if (outcome.kind !== 'failed') return 'none';
  const { class: failureClass, rule, error } = outcome.failure;
  if (failureClass !== 'environment') return 'alive';
  return error.status === TOO_MANY_REQUESTS || rule === 'thrown:RetryAfter' ? 'throttled' : 'environment';
}

/** One ended run, as a worker knows it. */
export interface EndedRun {
  readonly jobId: string;
  readonly outcome: Outcome;
  /** What the claim said of the gate: see `Admission.epoch`. */
  readonly epoch: number;
  /** Store time of its claim. */
  readonly claimedAt: number;
  readonly durationMs: number;
  readonly isFirstAttempt: boolean;
  /** It was claimed as a retry, after a failure by the environment. */
  readonly isRetry: boolean;
}

/** What one worker saw of one gate, folded from the runs of one epoch. It travels with their settlements. */
export interface GateReport {
  readonly epoch: number;
  /** The earliest claim among these runs. */
  readonly claimedFrom: number;
  /** See `workerKey`. */
  readonly worker: number;
  /** For how long the worker gathered this: signs of life are spread over it. */
  readonly spanMs: number;
  readonly alive: number;
  /** They break a streak, as signs of life do, but are no calls that were served. */
  readonly throttled: number;
  readonly environment: number;
  /** Runs that prove nothing; a probe among them frees its slot. */
  readonly none: number;
  /** Those of them whose handler was not called: the worker could not run the job, or it was cancelled, or past its deadline. */
  readonly unstarted: number;
  /** Environment failures since the last run that was answered. */
  readonly tail: number;
  /** The jobs that failed by the environment. */
  readonly jobs: JobBits;
  /** The jobs that were asked to wait. */
  readonly askers: JobBits;
  /** How many runs asked to wait. */
  readonly asks: number;
  /** The longest wait that was asked for; 0 when none was. */
  readonly retryAfterMs: number;
  /** Completed first attempts: what the retry budget lives on. */
  readonly firstSuccesses: number;
  /** Retries that no admission has charged to the retry budget. */
  readonly retries: number;
  readonly slowestMs: number;
  /** In a report on a parent: how many of its children gave a sign of life. */
  readonly livingChildren: number;
}

/** One report on a parent from those on its children: what was seen of all of them, and how many live. */
export function foldChildren(reports: readonly GateReport[]): GateReport | null {
  const [first] = reports;
  if (first === undefined) return null;
  const sum = (count: (report: GateReport) => number): number => reports.reduce((all, one) => all + count(one), 0);
  return {
    ...emptyReport(first.worker, 0, Math.min(...reports.map(({ claimedFrom }) => claimedFrom)), first.spanMs),
    alive: sum(({ alive }) => alive),
    throttled: sum(({ throttled }) => throttled),
    environment: sum(({ environment }) => environment),
    none: sum(({ none }) => none),
    tail: reports.reduce((tail, one) => (one.alive + one.throttled > 0 ? one.tail : tail + one.tail), 0),
    jobs: reports.reduce((jobs, one) => join(jobs, one.jobs), noJobs),
    livingChildren: sum(({ alive }) => (alive > 0 ? 1 : 0)),
  };
}

/** One report per epoch, in the order in which the runs ended. */
export function foldRuns(worker: string, runs: readonly EndedRun[], spanMs: number): GateReport[] {
  const reports = new Map<number, GatheredReport>();
  for (const run of runs) {
    let report = reports.get(run.epoch);
    if (report === undefined) {
      report = emptyReport(workerKey(worker), run.epoch, run.claimedAt, spanMs);
      reports.set(run.epoch, report);
    }
    addRun(report, run);
  }
  return [...reports.values()];
}

/** A report to which runs are still added. */
export type GatheredReport = { -readonly [Key in keyof GateReport]: GateReport[Key] };

export function emptyReport(worker: number, epoch: number, claimedFrom: number, spanMs: number): GatheredReport {
  const counts = { alive: 0, throttled: 0, environment: 0, none: 0, unstarted: 0 };
  const budget = { tail: 0, firstSuccesses: 0, retries: 0 };
  return {
    epoch,
    claimedFrom,
    worker,
    spanMs,
    ...counts,
    ...budget,
    jobs: noJobs,
    askers: noJobs,
    asks: 0,
    retryAfterMs: 0,
    slowestMs: 0,
    livingChildren: 0,
  };
}

/** In place: it is called for every run. */
export function addRun(report: GatheredReport, run: EndedRun): Evidence {
  const evidence = evidenceOf(run.outcome);
  if (run.claimedAt < report.claimedFrom) report.claimedFrom = run.claimedAt;
  if (run.isRetry && run.epoch === 0) report.retries++;
  if (evidence === 'none') {
    report.none++;
    if (run.outcome.kind === 'released') report.unstarted++;
    return evidence;
  }
  if (run.durationMs > report.slowestMs) report.slowestMs = run.durationMs;
  if (evidence === 'environment') {
    report.environment++;
    report.tail++;
    report.jobs = join(report.jobs, jobBit(run.jobId));
  } else {
    report.tail = 0;
    if (evidence === 'throttled') report.throttled++;
    else report.alive++;
    if (run.isFirstAttempt && run.outcome.kind === 'completed') report.firstSuccesses++;
  }
  const askedFor = askedMs(run.outcome);
  if (evidence === 'throttled' || askedFor > 0) {
    report.asks++;
    report.askers = join(report.askers, jobBit(run.jobId));
  }
  report.retryAfterMs = Math.max(report.retryAfterMs, askedFor);
  return evidence;
}

/** A wait that comes with the job's own failure concerns that job alone. */
function askedMs(outcome: Outcome): number {
  if (outcome.kind !== 'failed' || outcome.failure.class !== 'environment') return 0;
  return outcome.failure.retryAfterMs ?? 0;
}
