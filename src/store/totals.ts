import { type DeadReason, deadReasons } from '../retry/decision.ts';
import { type OutcomeKind, outcomeKinds } from '../retry/outcome.ts';

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
    runs: zeros(outcomeKinds),
    retries: 0,
    successfulRetries: 0,
    dead: zeros(deadReasons),
  };
}

function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}
