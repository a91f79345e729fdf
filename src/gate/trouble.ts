import {
  RAMP_CUT_HELPED,
  RAMP_CUTS_BEFORE_LEARNING,
  RAMP_LARGEST_BACKGROUND,
  RAMP_TROUBLE_MARGIN,
  RAMP_TROUBLE_SHARE,
} from './constants.ts';
import type { Ramp } from './ramp-state.ts';

/*
 * Trouble: more failures in a step of the ramp than the background explains. Overload gets better when the rate is cut.
 * Failures of another kind (a dependency that always fails 30%) do not; taken for overload, they would be answered with
 * cuts until nothing flows, where a closed gate would let 70% of the calls succeed.
 */

export interface Share {
  readonly runs: number;
  readonly environment: number;
  readonly share: number;
}

/** The margin keeps two unlucky runs of ten from being trouble. */
export function isTrouble({ runs, environment }: Share, background: number): boolean {
  return environment >= RAMP_TROUBLE_MARGIN + (background + RAMP_TROUBLE_SHARE) * runs;
}

/**
 * The background that a step in trouble proves; null while a cut may help. Failures do not come from the rate when four
 * cuts have not changed them, or when the rate is at its base. A step at the base has few outcomes, so there the whole
 * window tells their share.
 */
export function learnBackground(ramp: Ramp, share: number, windowShare: number): number | null {
  const isUnhelped = ramp.cuts >= RAMP_CUTS_BEFORE_LEARNING && share >= ramp.cutShare * RAMP_CUT_HELPED;
  const isAtBase = ramp.limit <= ramp.base;
  if (!isUnhelped && !isAtBase) return null;
  return Math.min(RAMP_LARGEST_BACKGROUND, Math.max(ramp.background, isAtBase ? windowShare : share));
}
