import { type BatchCallbacks, Batcher } from '../batch.ts';
import { type Clock, nextTurn } from '../clock.ts';
import type { Decision } from '../retry/decision.ts';
import type { Outcome, OutcomeKind, StoredError } from '../retry/outcome.ts';
import type { Fence, SettleAnswer, Settlement, Store } from '../store/store.ts';
import type { Hand } from './hand.ts';
import { whileLeased } from './persist.ts';

const LARGEST_BATCH = 1_000;

export interface Ending {
  readonly hand: Hand;
  readonly settlement: Settlement;
}

export interface Retried {
  /** So many outcomes could not be recorded at the first try. */
  retried(endings: number, error: unknown): void;
}

/** What a store answers to a settlement that it wrote down. */
export type Landed = Exclude<SettleAnswer, 'stale'>;

/**
 * Records how runs ended, many at a time. Retried on its own: a success that could not be recorded is not a failure.
 * The answer is `stale` when another run owns the job; it fails when the store could not be reached while the lease lasted.
 */
export class Settler {
  readonly #batcher: Batcher<Ending, SettleAnswer>;

  constructor(store: Pick<Store, 'settle'>, clock: Clock, told: BatchCallbacks<Ending, SettleAnswer> & Retried) {
    this.#batcher = new Batcher(
      (endings) =>
        whileLeased(
          endings.map(({ hand }) => hand.lease),
          clock,
          () => store.settle(endings.map(({ settlement }) => settlement)),
          (error) => told.retried(endings.length, error),
        ),
      told,
      { limit: LARGEST_BATCH, gather: () => nextTurn(clock) },
    );
  }

  settle(ending: Ending): void {
    this.#batcher.add(ending);
  }

  flushed(): Promise<void> {
    return this.#batcher.settled();
  }
}

/** The times are the store's. */
export function settlementOf(
  { id, run, worker }: Fence,
  { startedAt, endedAt }: Pick<Settlement, 'startedAt' | 'endedAt'>,
  outcome: Outcome,
  decision: Decision,
): Settlement {
  const error = errorOf(outcome);
  return { id, run, worker, outcome: ledgerWord(outcome, decision), decision, error, startedAt, endedAt };
}

function ledgerWord(outcome: Outcome, decision: Decision): OutcomeKind {
  return decision.kind === 'defer' ? 'deferred' : outcome.kind;
}

export function errorOf(outcome: Outcome): StoredError | null {
  if (outcome.kind === 'failed') return outcome.failure.error;
  return outcome.kind === 'cancelled' ? outcome.error : null;
}
