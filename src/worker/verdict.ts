import { judgeFailure, judgeSoftFailure, refund, spend, verdictAt, workerKey } from '../gate/index.ts';
import type { GateVerdict } from '../retry/decide.ts';
import type { ClaimedJob, GateAnswer, Refund } from '../store/store.ts';

/** What a gate makes of a failure. */
export interface Judged {
  readonly verdict: GateVerdict;
  readonly refund: Refund;
}

/** Judges a failure by its gate, as the gate is after the report on it. */
export function judge(
  job: ClaimedJob,
  evidence: 'environment' | 'throttled',
  answer: GateAnswer,
  maxOutageMs: number | undefined,
): Judged {
  const { gate, state, now } = answer;
  const back = refund(state, job.spent);
  const attempts = job.attempts - back.attempts;
  const {
    counts,
    rule,
    isPending = false,
    longestWaitMs = null,
  } = gate.kind === 'resource'
    ? judgeFailure(state, failureOf(job, evidence), now)
    : judgeSoftFailure(state, { ...softFailureOf(job, attempts), ...(maxOutageMs && { maxOutageMs }) }, now);
  const pendingMs = isPending && evidence === 'environment' ? verdictAt(now) - now : null;
  return {
    verdict: { counts, rule: `${gate.name}: ${rule}`, pendingMs, longestWaitMs },
    refund: { attempts: back.attempts, spent: counts ? spend(back.spent, now) : back.spent },
  };
}

function failureOf(
  { id, worker, givenBack, lane, gateEpoch }: ClaimedJob,
  evidence: 'environment' | 'throttled',
): Parameters<typeof judgeFailure>[1] {
  const isThrottled = evidence === 'throttled';
  const isSuspect = lane === 'suspect';
  const epoch = gateEpoch;
  return { jobId: id, worker: workerKey(worker), epoch, isThrottled, uncountedRuns: givenBack, isSuspect };
}

function softFailureOf(
  { policy, deferredSince }: ClaimedJob,
  attempts: number,
): Pick<Parameters<typeof judgeSoftFailure>[1], 'isLastAttempt' | 'deferredSince'> {
  return { isLastAttempt: attempts >= policy.maxAttempts, deferredSince };
}
