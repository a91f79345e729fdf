import type { Lane } from '../lane.ts';
import { admissibleAt } from './admit.ts';
import { withinBounds } from './bounds.ts';
import { budgetCap, tokensIn } from './budget.ts';
import { BUDGET_LOW_SHARE } from './constants.ts';
import { peakRate } from './rate.ts';
import type { GateState } from './state.ts';

/*
 * What a gate means for the partitions of its resource; stores copy it to them when they write the gate.
 *
 * A partition is gated when its jobs must ask the gate one claim at a time: then no ordinary claim takes them, only
 * `claimGated`, which asks `admitClaim`. All partitions of a resource are gated unless its gate is closed, holds nothing
 * and has no suspect worker; its retries also while the retry budget is low. A suspect (the lane) is tried one at a
 * time anyway, so it is not gated; behind an open gate it waits for the time of the next probe. It must not wait for
 * another phase: where suspects alone wait, no probe starts, and the gate would never leave this one.
 */
export interface Access {
  readonly gated: boolean;
  /** From when on a claim may take a job; null when only another state of the gate admits one. */
  readonly at: number | null;
}

export interface GateAccess {
  /** Of the lanes `fresh` and `redrive`. */
  readonly fresh: Access;
  readonly retry: Access;
  readonly suspect: Access;
}

const free: Access = { gated: false, at: 0 };
export const freeAccess: GateAccess = { fresh: free, retry: free, suspect: free };

export function accessOf(before: GateState, now: number): GateAccess {
  const state = withinBounds(before, now);
  if (state.pin === 'closed') return freeAccess;
  const isGated =
    state.phase !== 'closed' || state.heldUntil > now || state.workers.some(({ intervalMs }) => intervalMs > 0);
  const { isLow } = budgetOf(state, now);
  const freshAt = admissibleAt(state, { pays: 'nothing' }, now);
  return {
    fresh: isGated ? { gated: true, at: freshAt } : free,
    retry: isGated || isLow ? { gated: true, at: admissibleAt(state, { pays: 'retry' }, now) } : free,
    suspect: { gated: false, at: state.phase === 'open' ? freshAt : state.heldUntil },
  };
}

/** The retry budget now: what is left, what can be saved up, and whether each retry must ask before it starts. */
export function budgetOf(
  state: Pick<GateState, 'budget' | 'peak'>,
  now: number,
): { readonly tokens: number; readonly cap: number; readonly isLow: boolean } {
  const peak = peakRate(state.peak, now);
  const [tokens, cap] = [tokensIn(state.budget, peak, now), budgetCap(peak)];
  return { tokens, cap, isLow: tokens < cap * BUDGET_LOW_SHARE };
}

export function accessFor(lane: Lane): keyof GateAccess {
  return lane === 'redrive' ? 'fresh' : lane;
}

export function isFree({ fresh, retry, suspect }: GateAccess): boolean {
  return !fresh.gated && !retry.gated && suspect.at === 0;
}
