import type { DeadReason } from '../retry/decision.ts';
import type { OutcomeKind } from '../retry/outcome.ts';

/** Totals while they are being added up. */
export interface MutableTotals {
  enqueued: number;
  runs: Record<OutcomeKind, number>;
  retries: number;
  successfulRetries: number;
  dead: Record<DeadReason, number>;
}

export function emptyTotals(): MutableTotals {
  return {
    enqueued: 0,
    runs: { completed: 0, failed: 0, crashed: 0, snoozed: 0, released: 0, deferred: 0, cancelled: 0 },
    retries: 0,
    successfulRetries: 0,
    dead: { exhausted: 0, unrecoverable: 0, deadline: 0, poison: 0, 'no-handler': 0 },
  };
}
