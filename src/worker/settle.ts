import { type BatchCallbacks, Batcher } from '../batch.ts';
import { type Clock, nextTurn } from '../clock.ts';
import type { SettleAnswer, Settlement, Store } from '../store/store.ts';
import type { ActiveJob } from './active-job.ts';
import { untilRecorded } from './persist.ts';

const LARGEST_BATCH = 1_000;
const LARGEST_BATCH_BYTES = 4 * 1_048_576;
/** What a settlement without an error takes. */
const SETTLEMENT_BYTES = 300;

export interface Ending {
  readonly job: ActiveJob;
  readonly settlement: Settlement;
}

export interface SettlerCallbacks extends BatchCallbacks<Ending, SettleAnswer> {
  /** So many outcomes are sent together. */
  sent(endings: number): void;
  /** So many outcomes could not be recorded at the first try. */
  retried(endings: number, error: unknown): void;
}

/** What a store answers to a settlement that it wrote down. */
export type Applied = Exclude<SettleAnswer, 'stale'>;

/**
 * Records how runs ended, many at a time. Recording is retried apart from running: a success that could not be recorded is
 * not a failure. The answer is `stale` when another run owns the job; the settlement fails when the store refused it until
 * the lease was over, or could not be reached for an hour, or until the worker had to stop.
 */
export class Settler {
  readonly #batcher: Batcher<Ending, SettleAnswer>;

  constructor(store: Pick<Store, 'settle'>, clock: Clock, isStopping: () => boolean, callbacks: SettlerCallbacks) {
    this.#batcher = new Batcher(
      (endings) => {
        callbacks.sent(endings.length);
        return untilRecorded(
          endings.map(({ job }) => job.lease),
          clock,
          () => store.settle(endings.map(({ settlement }) => settlement)),
          { isStopping, onRetry: (error) => callbacks.retried(endings.length, error) },
        );
      },
      callbacks,
      {
        limit: LARGEST_BATCH,
        maxBytes: LARGEST_BATCH_BYTES,
        bytesOf: ({ settlement }) => bytesOf(settlement),
        gather: () => nextTurn(clock),
      },
    );
  }

  settle(ending: Ending): void {
    this.#batcher.add(ending);
  }

  flushed(): Promise<void> {
    return this.#batcher.settled();
  }
}

/** About; texts are counted by their length. */
function bytesOf({ error, decision, result, progress, log }: Settlement): number {
  const noteLength =
    (decision.note?.length ?? 0) + (result?.length ?? 0) + (progress?.length ?? 0) + (log?.length ?? 0);
  if (error === null) return SETTLEMENT_BYTES + noteLength;
  const issues = error.issues?.reduce((sum, { message, path }) => sum + message.length + path.length, 0) ?? 0;
  const { name, message, stack } = error;
  return SETTLEMENT_BYTES + noteLength + name.length + message.length + (stack?.length ?? 0) + issues;
}
