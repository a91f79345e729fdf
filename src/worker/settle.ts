import { Batch } from '../batch.ts';
import { type Clock, nextTurn } from '../clock.ts';
import type { Decision } from '../retry/decide.ts';
import type { Outcome, OutcomeKind, StoredError } from '../retry/outcome.ts';
import type { SettleAnswer, Settlement, Store } from '../store/store.ts';
import type { Lease } from './lease.ts';
import { whileLeased } from './persist.ts';

const LARGEST_BATCH = 1_000;

export interface Ending {
  readonly lease: Lease;
  readonly settlement: Settlement;
}

/** What a store answers to a settlement that it wrote down. */
export type Landed = Exclude<SettleAnswer, 'stale'>;

/** Records how runs ended, many at a time. Retried on its own: a success that could not be recorded is not a failure. */
export class Settler {
  readonly #batch: Batch<Ending, SettleAnswer>;

  constructor(store: Pick<Store, 'settle'>, clock: Clock) {
    this.#batch = new Batch(
      (endings) =>
        whileLeased(
          endings.map(({ lease }) => lease),
          clock,
          () => store.settle(endings.map(({ settlement }) => settlement)),
        ),
      LARGEST_BATCH,
      () => nextTurn(clock),
    );
  }

  /** `stale` when another run owns the job; rejects when the store could not be reached while the lease lasted. */
  settle(ending: Ending): Promise<SettleAnswer> {
    return this.#batch.add(ending);
  }

  flushed(): Promise<void> {
    return this.#batch.settled();
  }
}

export function settlementOf(lease: Lease, startedAt: number, outcome: Outcome, decision: Decision): Settlement {
  const { id, run, worker } = lease.job;
  return {
    id,
    run,
    worker,
    outcome: ledgerWord(outcome, decision),
    decision,
    error: errorOf(outcome),
    startedAt,
    endedAt: lease.storeNow,
  };
}

function ledgerWord(outcome: Outcome, decision: Decision): OutcomeKind {
  return decision.kind === 'defer' ? 'deferred' : outcome.kind;
}

export function errorOf(outcome: Outcome): StoredError | null {
  if (outcome.kind === 'failed') return outcome.failure.error;
  return outcome.kind === 'cancelled' ? outcome.error : null;
}
