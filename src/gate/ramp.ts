import {
  FLOOR_RATE,
  LARGEST_RATE,
  RAMP_CEILING,
  RAMP_CREEP_AFTER_MS,
  RAMP_CREEP_PER_MINUTE,
  RAMP_CUBIC_MS,
  RAMP_CUT,
  RAMP_CUT_HELPED,
  RAMP_GROWTH,
  RAMP_GROWTH_ABOVE_PEAK,
  RAMP_LARGEST_BACKGROUND,
  RAMP_LONGEST_STEP_MS,
  RAMP_REOPEN_FAILURES,
  RAMP_REOPEN_SHARE,
  RAMP_START_SHARE,
  RAMP_STEP_MS,
  RAMP_STEP_OUTCOMES,
  RAMP_TROUBLE_SHARE,
  RAMP_UNUSED_MS,
  RAMP_USED_SHARE,
} from './constants.ts';
import type { GateReport } from './evidence.ts';

/*
 * The ramp lets jobs start at a rate, in steps of 2 s or more (as long as runs take, and until 10 outcomes are known).
 *
 *   healthy and used   below the peak x2; above it +10% of the peak, up to 1.4 x peak; after 5 min there +10% a minute
 *   trouble            x0.8, then back along a cubic curve that lingers at the rate where the trouble began
 *   half failed        the ramp has failed: the gate opens again
 *   not used for 10 s  the rate is not the limit: the gate closes
 *
 * Failures that do not come from the rate (a dependency that always fails 30%) stay when the rate is cut. The ramp learns
 * them as its background and looks for trouble above it; otherwise it would cut until nothing flows.
 */

export interface Ramp {
  /** Starts per second. */
  readonly limit: number;
  readonly tat: number;
  /** This step: its begin, its starts and its outcomes. */
  readonly stepAt: number;
  readonly started: number;
  readonly alive: number;
  readonly environment: number;
  readonly slowestMs: number;
  /** The share of failures that does not depend on the rate. */
  readonly background: number;
  /** The share of failures that made the last step cut the rate; 0 when it did not. */
  readonly cutShare: number;
  /** Where trouble began; 0 when it never did. */
  readonly top: number;
  /** Where the cubic way back begins. */
  readonly cutAt: number;
  /** When the rate was last the limit. */
  readonly boundAt: number;
  /** When trouble ended, or the ramp began. */
  readonly healthySince: number;
  /** Since when the limit is at the ceiling; 0 when it is not. */
  readonly ceilingSince: number;
}

/** `proven`: the peak, or null when none is known. `remembered`: the limit at which the last ramp failed, or 0. */
export function startRamp(proven: number | null, remembered: number, now: number): Ramp {
  const limit = Math.max(FLOOR_RATE, (proven ?? 0) * RAMP_START_SHARE, remembered / 2);
  return rampAt(Math.min(limit, ceilingOf(proven)), remembered, now);
}

/** A ramp at a given rate: after a hold it resumes below `top`, the rate that was measured before. */
export function rampAt(limit: number, top: number, now: number): Ramp {
  const step = { stepAt: now, started: 0, alive: 0, environment: 0, slowestMs: 0 };
  const memory = { background: 0, cutShare: 0, cutAt: 0, ceilingSince: 0 };
  return { limit: Math.max(FLOOR_RATE, limit), tat: now, ...step, ...memory, top, boundAt: now, healthySince: now };
}

export function countOutcomes(ramp: Ramp, { alive, environment, slowestMs }: GateReport): Ramp {
  return {
    ...ramp,
    alive: ramp.alive + alive,
    environment: ramp.environment + environment,
    slowestMs: Math.max(ramp.slowestMs, Math.min(slowestMs, RAMP_LONGEST_STEP_MS)),
  };
}

export function hasFailed({ environment, alive }: Ramp): boolean {
  return environment >= RAMP_REOPEN_FAILURES && environment >= RAMP_REOPEN_SHARE * (environment + alive);
}

/** The rate has not been the limit for a while, and the failures of this step are no reason to keep it. */
export function isUnused(ramp: Ramp, now: number): boolean {
  return now - ramp.boundAt >= RAMP_UNUSED_MS && (ramp.environment === 0 || shareOf(ramp) < troubleShare(ramp));
}

/** Ends the step if it is over, and sets the rate of the next one. */
export function step(ramp: Ramp, proven: number | null, now: number): Ramp {
  const elapsedMs = now - ramp.stepAt;
  const lengthMs = Math.max(RAMP_STEP_MS, ramp.slowestMs);
  if (elapsedMs < lengthMs || ramp.alive + ramp.environment < RAMP_STEP_OUTCOMES) return ramp;
  const share = shareOf(ramp);
  const background = nextBackground(ramp, share);
  const next = { ...ramp, background, stepAt: now, started: 0, alive: 0, environment: 0, slowestMs: 0, cutShare: 0 };
  if (share >= troubleShare(ramp)) {
    const limit = Math.max(FLOOR_RATE, ramp.limit * RAMP_CUT);
    return { ...next, limit, cutShare: share, top: ramp.limit, cutAt: now, healthySince: now, ceilingSince: 0 };
  }
  const isUsed = ramp.started >= RAMP_USED_SHARE * ramp.limit * (elapsedMs / 1_000);
  return isUsed ? grow(next, proven, elapsedMs, now) : next;
}

function grow(ramp: Ramp, proven: number | null, elapsedMs: number, now: number): Ramp {
  const ceiling = ceilingOf(proven);
  if (ramp.limit >= ceiling) {
    const ceilingSince = ramp.ceilingSince === 0 ? now : ramp.ceilingSince;
    if (now - ceilingSince < RAMP_CREEP_AFTER_MS) return { ...ramp, ceilingSince };
    const creep = (1 + RAMP_CREEP_PER_MINUTE) ** (elapsedMs / 60_000);
    return { ...ramp, ceilingSince, limit: Math.min(LARGEST_RATE, ramp.limit * creep) };
  }
  const limit = Math.min(ceiling, LARGEST_RATE, grownLimit(ramp, proven, now));
  const isAtCurve = ramp.top > 0 && ramp.cutAt === 0 && limit >= ramp.top * RAMP_CUT;
  return { ...ramp, limit, cutAt: isAtCurve ? now : ramp.cutAt, ceilingSince: 0 };
}

function grownLimit({ limit, top, cutAt }: Ramp, proven: number | null, now: number): number {
  const doubled = limit * RAMP_GROWTH;
  if (top > 0) {
    // Up to where the last trouble was cut to, then along the curve.
    if (limit < top * RAMP_CUT) return Math.min(doubled, top * RAMP_CUT);
    return Math.min(doubled, Math.max(limit, cubic(top, now - cutAt)));
  }
  if (proven === null) return doubled;
  return limit < proven ? Math.min(doubled, proven) : limit + proven * RAMP_GROWTH_ABOVE_PEAK;
}

/** 0.8 of `top` at the cut, flat around `top` after 30 s, then faster and faster above it. */
function cubic(top: number, sinceMs: number): number {
  return top + (1 - RAMP_CUT) * top * ((sinceMs - RAMP_CUBIC_MS) / RAMP_CUBIC_MS) ** 3;
}

function shareOf({ environment, alive }: Ramp): number {
  return environment === 0 ? 0 : environment / (environment + alive);
}

function troubleShare({ background }: Ramp): number {
  return background + RAMP_TROUBLE_SHARE;
}

/** Falls with every calmer step; rises only when a cut has not helped. */
function nextBackground({ background, cutShare }: Ramp, share: number): number {
  if (share < background) return (background + share) / 2;
  const hasNotHelped = cutShare > 0 && share >= cutShare * RAMP_CUT_HELPED;
  return hasNotHelped ? Math.min(RAMP_LARGEST_BACKGROUND, (background + share) / 2) : background;
}

function ceilingOf(proven: number | null): number {
  return proven === null ? Number.POSITIVE_INFINITY : proven * RAMP_CEILING;
}
