import { ASKED_UNCOUNTED, PROBE_LONGEST_MS, RAMP_REFUNDS_MS, RAMP_STEP_MS, WINDOW_MS } from './constants.ts';
import { waitsAlone } from './hold.ts';
import { isOwnFault } from './probe.ts';
import { jobBit } from './sets.ts';
import type { GateState } from './state.ts';

/*
 * Attempts that an outage cost are given back, each exactly once.
 *
 * An environment failure that is settled while the gate is not closed does not count at all. One that is settled while the
 * gate is closed counts, and the job keeps a note of it (`Spent`). If the gate trips and the failure lies in the span that
 * the trip covers, the next write about the job (its claim, or its next settlement) gives the attempts back and erases
 * the note in that same write. The note is one fact about a few failures in a row, so a job that failed three times within
 * the window gets three attempts back.
 */

/** Counted environment failures of a job that a trip may still cover; kept in the job's row. */
export interface Spent {
  /** Store time of the last of them. */
  readonly at: number;
  readonly count: number;
}

/** The note after one more failure that counts. Failures further apart than a window are judged apart. */
export function spend(spent: Spent | null, now: number): Spent {
  return { at: now, count: spent !== null && now - spent.at <= WINDOW_MS ? spent.count + 1 : 1 };
}

/** What the next write about a job does with its note. */
export function refund(
  state: GateState,
  spent: Spent | null,
): { readonly attempts: number; readonly spent: Spent | null } {
  if (spent === null || !isCovered(state, spent.at)) return { attempts: 0, spent };
  return { attempts: spent.count, spent: null };
}

export function isCovered({ covered }: Pick<GateState, 'covered'>, at: number): boolean {
  return covered.some(([from, until]) => at >= from && at <= until);
}

/** What an environment failure costs, by the gate as it is after the report that came with it. */
export interface FailureVerdict {
  readonly counts: boolean;
  /** For the ledger. */
  readonly rule: string;
  /** True when it counts for now, and the gate may still find that it belongs to an outage. */
  readonly isPending?: boolean;
  /** Of a failure that does not count: the gate decides when the job runs again, so its own backoff may not be longer. */
  readonly longestWaitMs?: number;
}

export interface SettledFailure {
  readonly jobId: string;
  /** The key of the worker that ran it. */
  readonly worker: number;
  /** What its claim said: see `Admission.epoch`. */
  readonly epoch: number;
  readonly isThrottled: boolean;
  /** Runs of the job so far whose attempt was given back. */
  readonly uncountedRuns: number;
  /** Its next run is a trial, which asks no gate: see access.ts. */
  readonly isSuspect: boolean;
}

/*
 * How long the job waits when its failure does not count. An open gate starts it when it likes, so it is due at once: a job that
 * slept on in its own backoff would be no probe, and would be late by hours after a long outage. A ramp does not hold back a
 * job that fails by itself, so that one leaves it a step's time to judge. One that was asked to wait, and a suspect, which
 * takes no slot of a probe, are no more urgent than a probe.
 */
export function judgeFailure(state: GateState, failure: SettledFailure, now: number): FailureVerdict {
  const verdict = judge(state, failure, now);
  return failure.isSuspect && !verdict.counts ? { ...verdict, longestWaitMs: PROBE_LONGEST_MS } : verdict;
}

function judge(state: GateState, failure: SettledFailure, now: number): FailureVerdict {
  if (state.pin === 'closed') return { counts: true, rule: 'gate pinned closed' };
  if (failure.isThrottled) {
    const isOwn = failure.uncountedRuns >= ASKED_UNCOUNTED && waitsAlone(state, jobBit(failure.jobId), now);
    return isOwn
      ? { counts: true, rule: 'throttled while others were answered' }
      : { counts: false, rule: 'throttled', longestWaitMs: PROBE_LONGEST_MS };
  }
  if (state.pin === 'open') return { counts: false, rule: 'gate pinned open', longestWaitMs: 0 };
  if (state.phase === 'open') {
    const isOwn = failure.epoch === state.epoch && isOwnFault(state.probes, { jobs: jobBit(failure.jobId) });
    return isOwn
      ? { counts: true, rule: 'other probes are alive' }
      : { counts: false, rule: 'gate open', longestWaitMs: 0 };
  }
  if (state.ramp !== null) {
    const isLasting = now - state.ramp.healthySince >= RAMP_REFUNDS_MS;
    return isLasting
      ? { counts: true, rule: 'gate in a healthy ramp' }
      : { counts: false, rule: 'gate in ramp', longestWaitMs: RAMP_STEP_MS };
  }
  const isSuspect = state.workers.some(({ worker, until }) => worker === failure.worker && until > now);
  return isSuspect
    ? { counts: false, rule: 'worker suspect', longestWaitMs: RAMP_STEP_MS }
    : { counts: true, rule: 'gate closed', isPending: true };
}

/**
 * A last attempt that failed by the environment while the gate was closed waits for the verdict instead of dying. A window
 * is long enough for every rule, the lone rule included, which needs the streak to have lasted 10 s. When it is claimed after
 * that, `refund` has given its attempts back, or it dies without another run.
 */
export function verdictAt(failedAt: number): number {
  return failedAt + WINDOW_MS;
}
