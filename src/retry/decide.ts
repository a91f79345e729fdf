import { formatDuration } from '../duration.ts';
import type { Lane } from '../lane.ts';
import { type DeadReason, type Decision, FIRST_VERSION, REJECTED_RULE, type RetryCause } from './decision.ts';
import { between, delayBefore, type Random } from './jitter.ts';
import type { Failure, Outcome, Rejection, ReleaseCause } from './outcome.ts';
import type { RetryPolicy } from './policy.ts';

/** What a decision looks at: `attempts` includes this run, `crashes` does not yet include this crash. */
export interface DecidableJob {
  readonly policy: RetryPolicy;
  readonly lane: Lane;
  readonly run: number;
  readonly attempts: number;
  readonly crashes: number;
  /** Runs before this one that did not count: deferred or released. */
  readonly givenBack: number;
  /** Runs right before this one that were snoozed. */
  readonly snoozes: number;
  /** Of the definition with which it was enqueued; null when that carried none. */
  readonly version: number | null;
  /** True when its worker has recorded that no other job ran beside it. */
  readonly alone: boolean;
  readonly firstStartedAt: number;
  readonly availableAt: number;
  readonly previousDelayMs: number | null;
  readonly cancelRequested: boolean;
}

/** So many workers may reject a payload one right after the other. Then the time since the first one did grows by this share. */
const REJECTED_AT_ONCE = 20;
const REJECTED_SHARE = 0.25;
const LONGEST_REJECTED_DELAY_MS = 5 * 60_000;

/** At most this share of a Retry-After is added to it, and never more than this. */
const RETRY_AFTER_STRETCH = 0.1;
const LONGEST_STRETCH_MS = 5 * 60_000;

/** What the gate of a job makes of a failure by the environment. */
export interface GateVerdict {
  readonly counts: boolean;
  /** For the ledger. */
  readonly rule: string;
  /** Until the gate knows for sure whether there is an outage; null when it does now. */
  readonly pendingMs: number | null;
  /**
   * Of a failure that does not count: no backoff is longer, because the gate decides when the job runs again. Null behind a
   * soft gate, which holds nothing back: there the job must wait by itself.
   */
  readonly longestWaitMs: number | null;
}

/** The one place that decides what becomes of a job after a run. Pure: same arguments, same decision. */
export function decide(
  job: DecidableJob,
  outcome: Outcome,
  now: number,
  random: Random,
  verdict: GateVerdict | null = null,
): Decision {
  const decision = afterRun(job, outcome, now, random, verdict);
  const isGivenBack = decision.kind === 'defer' || decision.kind === 'release';
  return isGivenBack && hasSpentRuns(job) ? outOfRuns(job) : decision;
}

function afterRun(
  job: DecidableJob,
  outcome: Outcome,
  now: number,
  random: Random,
  verdict: GateVerdict | null,
): Decision {
  switch (outcome.kind) {
    case 'completed':
      // Also when a cancel was requested: the work is done.
      return complete;
    case 'cancelled':
      return { kind: 'cancel', counted: true, rule: 'cancelled' };
    case 'failed':
      return withNote(afterFailure(job, outcome.failure, verdict, now, random), outcome.failure.note);
    case 'crashed':
      return afterCrash(job, now, random);
    case 'snoozed':
      return afterSnooze(job, outcome.delayMs, now);
    case 'released':
      return afterRelease(job, outcome.because, now);
  }
}

function afterFailure(
  job: DecidableJob,
  failure: Failure,
  verdict: GateVerdict | null,
  now: number,
  random: Random,
): Decision {
  if (job.cancelRequested) return cancelRequested;
  if (failure.class === 'permanent') return dead('unrecoverable', failure.rule);
  if (verdict !== null && !verdict.counts) return deferred(job, failure, verdict, now, random);
  if (isExhausted(job)) return afterLastAttempt(job, verdict, now);
  const { delayMs, why } = delayAfterFailure(job, failure, random);
  if (isPastDeadline(job, now + delayMs)) return pastDeadline(job, { counted: true });
  return { kind: 'retry', why, delayMs, lane: laneAfter(job.crashes, job), rule: failure.rule };
}

/**
 * A Retry-After bounds the wait from below and does not replace the backoff: a server that answers
 * `Retry-After: 1` for hours would otherwise undo the backoff of everyone who obeys it. Jitter only
 * lengthens it, by up to a tenth, so that all who were told the same second do not come back in it; a
 * policy without jitter gets exactly what was asked.
 */
function delayAfterFailure(job: DecidableJob, failure: Failure, random: Random): { delayMs: number; why: RetryCause } {
  const { policy, attempts, previousDelayMs } = job;
  const ownMs = failure.customDelayMs ?? delayBefore(policy, attempts, previousDelayMs, random);
  if (failure.retryAfterMs === null) return { delayMs: ownMs, why: 'backoff' };
  const stretchMs =
    policy.jitter === 'none' ? 0 : Math.min(LONGEST_STRETCH_MS, failure.retryAfterMs * RETRY_AFTER_STRETCH);
  const askedMs = failure.retryAfterMs + between(0, Math.floor(stretchMs), random);
  return askedMs >= ownMs ? { delayMs: askedMs, why: 'retry-after' } : { delayMs: ownMs, why: 'backoff' };
}

/** A gate holds its jobs for an hour at most; what one of them was told must not keep it away for longer. */
const LONGEST_DEFERRAL_MS = 3_600_000;

/**
 * Its attempt is given back, so the delay grows with its runs, unless a gate decides when it runs again. A Retry-After holds in
 * any case.
 */
function deferred(
  job: DecidableJob,
  failure: Failure,
  { rule, longestWaitMs }: GateVerdict,
  now: number,
  random: Random,
): Decision {
  const retryAfterMs = failure.retryAfterMs === null ? null : Math.min(LONGEST_DEFERRAL_MS, failure.retryAfterMs);
  const own = delayAfterFailure({ ...job, attempts: job.run }, { ...failure, retryAfterMs }, random);
  const delayMs =
    longestWaitMs === null
      ? Math.max(own.delayMs, leastSoftDelay(job, random))
      : boundedDelay(own, longestWaitMs, retryAfterMs ?? 0);
  if (isPastDeadline(job, now + delayMs)) return pastDeadline(job, { counted: false });
  return { kind: 'defer', delayMs, lane: laneAfter(job.crashes, job), rule };
}

function boundedDelay(
  { delayMs, why }: { delayMs: number; why: RetryCause },
  longestMs: number,
  askedMs: number,
): number {
  return why === 'backoff' ? Math.min(delayMs, Math.max(longestMs, askedMs)) : delayMs;
}

/** At a wait of a minute, one job makes at most some 70 calls in its first hour. */
const SOFT_FIRST_MS = 2_000;
const SOFT_LONGEST_MS = 60_000;

/**
 * Behind a soft gate an outage lifts the cap of attempts and nothing else slows the job down, so its waits double whatever its
 * backoff is. Jitter only adds to them.
 */
function leastSoftDelay({ givenBack }: DecidableJob, random: Random): number {
  const leastMs = Math.min(SOFT_LONGEST_MS, SOFT_FIRST_MS * 2 ** givenBack);
  return between(leastMs, leastMs * 1.5, random);
}

/** While its gate cannot tell yet whether there is an outage, the job waits: it must not die of an outage's first seconds. */
function afterLastAttempt(job: DecidableJob, verdict: GateVerdict | null, now: number): Decision {
  const delayMs = verdict?.pendingMs ?? null;
  if (verdict === null || delayMs === null || isPastDeadline(job, now + delayMs)) return exhausted(job);
  return { kind: 'retry', why: 'verdict', delayMs, lane: laneAfter(job.crashes, job), rule: verdict.rule };
}

function afterCrash(job: DecidableJob, now: number, random: Random): Decision {
  const { policy, attempts, previousDelayMs } = job;
  const crashes = job.crashes + 1;
  if (isPoison(job, crashes)) return dead('poison', poisonRule(job, crashes));
  if (attempts > policy.maxAttempts) return exhaustedBefore(job);
  if (isExhausted(job)) return exhausted(job);
  if (job.cancelRequested) return cancelRequested;
  const delayMs = delayBefore(policy, attempts, previousDelayMs, random);
  if (isPastDeadline(job, now + delayMs)) return pastDeadline(job, { counted: true });
  return { kind: 'retry', why: 'crash', delayMs, lane: laneAfter(crashes, job), rule: crashRule(job, crashes) };
}

/** A suspect that never crashes alone is buried at this many times `maxCrashes`. */
const MOST_CRASHES_BESIDE_OTHERS = 2;

/**
 * A suspect is buried when it crashed with no other job beside it. A crash beside others proves nothing, since any of them
 * may be the killer; the suspect is tried again, up to twice `maxCrashes` in all.
 */
function isPoison({ policy, lane, alone }: DecidableJob, crashes: number): boolean {
  if (crashes < policy.maxCrashes) return false;
  return lane !== 'suspect' || alone || crashes >= policy.maxCrashes * MOST_CRASHES_BESIDE_OTHERS;
}

function poisonRule({ policy, lane, alone }: DecidableJob, crashes: number): string {
  const rule = `maxCrashes ${policy.maxCrashes}`;
  return lane !== 'suspect' || alone ? rule : `${rule}: crash ${crashes}, never alone`;
}

function crashRule({ policy }: DecidableJob, crashes: number): string {
  if (crashes < policy.maxCrashes) return `crash ${crashes} of ${policy.maxCrashes}`;
  return `crash ${crashes} of ${policy.maxCrashes * MOST_CRASHES_BESIDE_OTHERS}, not alone`;
}

/** From this snooze in a row on, a job waits at least so long: `snooze(0)` for ever must not spin. */
const SNOOZES_IN_A_ROW = 10;
const LEAST_SNOOZE_MS = 1_000;

function afterSnooze(job: DecidableJob, askedMs: number, now: number): Decision {
  if (job.cancelRequested) return cancelUncounted;
  const delayMs = job.snoozes + 1 < SNOOZES_IN_A_ROW ? askedMs : Math.max(askedMs, LEAST_SNOOZE_MS);
  if (isPastDeadline(job, now + delayMs)) return pastDeadline(job, { counted: false });
  return { kind: 'snooze', delayMs, rule: 'snoozed' };
}

function afterRelease(job: DecidableJob, because: ReleaseCause, now: number): Decision {
  if (job.cancelRequested) return cancelUncounted;
  switch (because.kind) {
    case 'shutdown':
      return { kind: 'release', delayMs: 0, rule: 'shutdown' };
    case 'trial':
      return { kind: 'release', delayMs: 0, rule: 'trial of a suspect' };
    case 'gate':
      return { kind: 'release', delayMs: 0, rule: 'gate open' };
    case 'exhausted':
      return exhaustedBefore(job, 'no outage');
    case 'late':
      return { kind: 'release', delayMs: 0, rule: 'lease over before the start' };
    case 'cancelled':
      return cancelUncounted;
    case 'deadline':
      return pastDeadline(job, { counted: false });
    case 'no-handler': {
      const waitedLong = now - job.availableAt >= because.giveUpAfterMs;
      const version = job.version ?? FIRST_VERSION;
      const what = because.known === null ? 'no-handler' : `no-handler: version ${version}, known ${because.known}`;
      const rule = `${what} for ${formatDuration(because.giveUpAfterMs)}`;
      if (waitedLong) return { kind: 'dead', reason: 'no-handler', counted: false, rule };
      return { kind: 'release', delayMs: 0, rule: what, aside: { version, isRejected: false } };
    }
    case 'rejected':
      return afterRejection(job, because, now);
  }
}

/**
 * Another version of the definition may be able to read the payload, so the job goes to another worker, at once. A worker that
 * has rejected a payload leaves those to the others for a while (worker/rejections.ts), and where many workers reject it, the
 * job waits longer and longer.
 */
function afterRejection(job: DecidableJob, { error, before, giveUpAfterMs }: Rejection, now: number): Decision {
  const waitedMs = before === null ? 0 : Math.max(0, now - before.since);
  if (before !== null && waitedMs >= giveUpAfterMs) {
    return { ...dead('unrecoverable', `${REJECTED_RULE} for ${formatDuration(giveUpAfterMs)}`), counted: false };
  }
  const isAtOnce = before === null || before.times < REJECTED_AT_ONCE;
  const delayMs = isAtOnce ? 0 : Math.round(Math.min(LONGEST_REJECTED_DELAY_MS, waitedMs * REJECTED_SHARE));
  const aside = { version: job.version ?? FIRST_VERSION, isRejected: true, ...kindOf(error) };
  return { kind: 'release', delayMs, rule: REJECTED_RULE, aside };
}

/**
 * Payloads that a schema rejects for one reason have one fingerprint, in every process. Two digits of it bound how many kinds there are,
 * whatever producers send and schemas say; two reasons that share them wait together.
 */
function kindOf({ fingerprint }: Rejection['error']): { readonly kind?: string } {
  return fingerprint === undefined ? {} : { kind: fingerprint.slice(-2) };
}

const complete: Decision = { kind: 'complete', rule: 'completed' };
const cancelRequested: Decision = { kind: 'cancel', counted: true, rule: 'cancel requested' };
const cancelUncounted: Decision = { kind: 'cancel', counted: false, rule: 'cancel requested' };

function dead(reason: DeadReason, rule: string): Decision & { readonly kind: 'dead' } {
  return { kind: 'dead', reason, counted: true, rule };
}

function isExhausted({ attempts, policy }: DecidableJob): boolean {
  return attempts >= policy.maxAttempts;
}

function exhausted(job: DecidableJob): Decision {
  return dead('exhausted', attemptsRule(job, job.attempts));
}

/** This run was only claimed to hear whether there is an outage, and is no attempt. */
function exhaustedBefore(job: DecidableJob, because = 'no verdict'): Decision {
  return { ...dead('exhausted', `${attemptsRule(job, job.attempts - 1)}, ${because}`), counted: false };
}

/** A snooze is the handler's own word, so it is no run here. */
function hasSpentRuns({ policy, attempts, givenBack }: DecidableJob): boolean {
  return attempts + givenBack >= policy.maxRuns;
}

function outOfRuns({ policy }: DecidableJob): Decision {
  return { ...dead('runs', `maxRuns ${policy.maxRuns}`), counted: false };
}

function attemptsRule({ policy }: DecidableJob, attempts: number): string {
  return `attempts ${attempts} of ${policy.maxAttempts}`;
}

/** True for a run that could only start after the deadline: it is neither waited for nor started. */
export function isPastDeadline(
  { policy, firstStartedAt }: Pick<DecidableJob, 'policy' | 'firstStartedAt'>,
  startsAt: number,
): boolean {
  return policy.deadlineMs !== null && startsAt - firstStartedAt > policy.deadlineMs;
}

function pastDeadline({ policy }: DecidableJob, { counted }: { counted: boolean }): Decision {
  const rule = policy.deadlineMs === null ? 'deadline' : `deadline ${formatDuration(policy.deadlineMs)}`;
  return { kind: 'dead', reason: 'deadline', counted, rule };
}

/** One crash away from being buried as poison, a job runs alone: see `Lane`. */
function laneAfter(crashes: number, { policy }: DecidableJob): Lane {
  return policy.maxCrashes > 1 && crashes >= policy.maxCrashes - 1 ? 'suspect' : 'retry';
}

function withNote(decision: Decision, note: string | null): Decision {
  return note === null ? decision : { ...decision, note };
}
