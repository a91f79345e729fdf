import {
  FLOOR_RATE,
  RAMP_CEILING,
  RAMP_CUT,
  RAMP_CUT_HALF_FAILED,
  RAMP_LONGEST_STEP_MS,
  RAMP_START_SHARE,
  RAMP_STEP_MS,
  RAMP_STEP_OUTCOMES,
  RAMP_UNUSED_MS,
  RATIO_SHARE,
} from './constants.ts';
import type { GateReport } from './evidence.ts';
import { grow } from './growth.ts';
import type { Ramp } from './ramp-state.ts';
import { isTrouble, learnBackground, type Share } from './trouble.ts';

/*
 * The ramp lets jobs start at a rate, in steps of 2 s or more (as long as runs take, and until 10 outcomes are known).
 *
 *   healthy, and the rate was the limit   below the peak x2; above it +10% of the peak, up to 1.4 x peak; after 5 min
 *                                         there +10% a minute
 *   trouble                               x0.9 (x0.5 when half of the step failed), then back along a cubic curve that
 *                                         lingers at the rate where the trouble began
 *   cuts do not help                      the failures do not come from the rate: they are the background (trouble.ts)
 *   the rate was not the limit for 10 s   the gate closes
 *
 * A ramp fails as a closed gate trips: by the share of the window, or by a streak.
 */

/** Where the last ramp failed. `top` is 0 when it had been healthy at that limit: then the limit is not to blame. */
export interface FailedRamp {
  readonly limit: number;
  readonly top: number;
}

/** `proven`: the peak, or null when none is known. */
export function startRamp(proven: number | null, failed: FailedRamp | null, now: number): Ramp {
  const limit = Math.max(baseOf(proven), (failed?.limit ?? 0) / 2);
  return rampAt(Math.min(limit, ceilingOf(proven)), failed?.top ?? 0, proven, now);
}

function baseOf(proven: number | null): number {
  return Math.max(FLOOR_RATE, (proven ?? 0) * RAMP_START_SHARE);
}

/** A ramp at a given rate: after a hold it resumes below `top`, the rate that was measured before. */
export function rampAt(wanted: number, top: number, proven: number | null, now: number): Ramp {
  const base = baseOf(proven);
  const limit = Math.max(base, wanted);
  const step = { stepAt: now, alive: 0, environment: 0, slowestMs: 0 };
  const cuts = { background: 0, cuts: 0, cutShare: 0, cutLimit: 0, top, cutAt: 0 };
  const times = { boundAt: now, healthySince: now, ceilingSince: 0 };
  return { limit, base, tat: now, ...step, healthyLimit: 0, ...cuts, ...times };
}

export function failedRamp({ limit, healthyLimit }: Ramp): FailedRamp {
  return { limit, top: healthyLimit >= limit ? 0 : limit };
}

/** Jobs that were handed back made no call, so others may start for them. */
export function countOutcomes(ramp: Ramp, { alive, environment, unstarted, slowestMs }: GateReport): Ramp {
  return {
    ...ramp,
    tat: Math.max(0, ramp.tat - (unstarted * 1_000) / ramp.limit),
    alive: ramp.alive + alive,
    environment: ramp.environment + environment,
    slowestMs: Math.max(ramp.slowestMs, Math.min(slowestMs, RAMP_LONGEST_STEP_MS)),
  };
}

/** The rate has not been the limit for a while, and the failures of this step are no reason to keep it. */
export function isUnused(ramp: Ramp, now: number): boolean {
  return now - ramp.boundAt >= RAMP_UNUSED_MS && !isTrouble(shareOf(ramp), ramp.background);
}

/** Ends the step if it is over, and sets the rate of the next one. `windowShare`: failures among the last 30 s. */
export function step(ramp: Ramp, proven: number | null, windowShare: number, now: number): Ramp {
  const elapsedMs = now - ramp.stepAt;
  const lengthMs = Math.max(RAMP_STEP_MS, ramp.slowestMs);
  const outcomes = shareOf(ramp);
  if (elapsedMs < lengthMs || outcomes.runs < outcomesAsked(ramp)) return ramp;
  const next = { ...ramp, stepAt: now, alive: 0, environment: 0, slowestMs: 0 };
  if (isTrouble(outcomes, ramp.background)) return cut(next, outcomes, windowShare, now);
  const calm = { ...next, cuts: 0, cutLimit: 0, healthyLimit: Math.max(ramp.healthyLimit, ramp.limit) };
  const learnt = { ...calm, background: Math.min(ramp.background, (ramp.background + windowShare) / 2) };
  const isUsed = ramp.boundAt > ramp.stepAt;
  return isUsed ? grow(learnt, proven, ceilingOf(proven), elapsedMs, now) : learnt;
}

function cut(ramp: Ramp, outcomes: Share, windowShare: number, now: number): Ramp {
  const background = learnBackground(ramp, outcomes.share, windowShare);
  if (background !== null) {
    return { ...ramp, background, limit: Math.max(ramp.limit, ramp.cutLimit), cuts: 0, cutLimit: 0, top: 0, cutAt: 0 };
  }
  const factor = outcomes.share >= RATIO_SHARE ? RAMP_CUT_HALF_FAILED : RAMP_CUT;
  const first = ramp.cuts === 0 ? { cutShare: outcomes.share, cutLimit: ramp.limit } : {};
  const limit = Math.max(ramp.base, ramp.limit * factor);
  const times = { cutAt: now, healthySince: now, ceilingSince: 0 };
  return { ...ramp, ...first, ...times, limit, cuts: ramp.cuts + 1, top: ramp.limit };
}

/** At a slow rate fewer outcomes are enough: waiting for ten of them would take longer than the first steps are worth. */
function outcomesAsked({ limit }: Ramp): number {
  return Math.min(RAMP_STEP_OUTCOMES, Math.ceil((limit * RAMP_STEP_MS) / 1_000));
}

function shareOf({ environment, alive }: Ramp): Share {
  const runs = environment + alive;
  return { runs, environment, share: runs === 0 ? 0 : environment / runs };
}

function ceilingOf(proven: number | null): number {
  return proven === null ? Number.POSITIVE_INFINITY : proven * RAMP_CEILING;
}
