import type { Decision } from '../retry/decision.ts';
import type { Outcome, OutcomeKind, StoredError } from '../retry/outcome.ts';
import type { ClaimedJob, Refund, Settlement } from '../store/store.ts';
import { errorOfDeath } from './own-errors.ts';

/** What a settlement has beside the outcome and the decision. */
interface SettlementParts extends Pick<Settlement, 'startedAt' | 'endedAt'> {
  readonly refund?: Refund | undefined;
  readonly result?: string | undefined;
  readonly progress?: string | undefined;
  readonly log?: string | undefined;
}

/** What is recorded of a run that ended. The times are the store's. */
export function settlementOf(
  job: Pick<ClaimedJob, 'id' | 'run' | 'worker' | 'name' | 'lastError'>,
  { startedAt, endedAt, refund, result, progress, log }: SettlementParts,
  outcome: Outcome,
  decision: Decision,
): Settlement {
  const { id, run, worker } = job;
  const error = errorOf(outcome) ?? errorOfDeath(decision, job);
  const settlement = { id, run, worker, outcome: ledgerWord(outcome, decision), decision, error, startedAt, endedAt };
  if (refund === undefined && result === undefined && progress === undefined && log === undefined) return settlement;
  return {
    ...settlement,
    ...(refund && { refund }),
    ...(result !== undefined && { result }),
    ...(progress !== undefined && { progress }),
    ...(log !== undefined && { log }),
  };
}

function ledgerWord(outcome: Outcome, decision: Decision): OutcomeKind {
  return decision.kind === 'defer' ? 'deferred' : outcome.kind;
}

export function errorOf(outcome: Outcome): StoredError | null {
  if (outcome.kind === 'failed') return outcome.failure.error;
  if (outcome.kind === 'released') return outcome.because.kind === 'rejected' ? outcome.because.error : null;
  return outcome.kind === 'cancelled' ? outcome.error : null;
}
