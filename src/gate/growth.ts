import {
  LARGEST_RATE,
  RAMP_CREEP_AFTER_MS,
  RAMP_CREEP_PER_MINUTE,
  RAMP_CUBIC_MS,
  RAMP_CUT,
  RAMP_GROWTH,
  RAMP_GROWTH_ABOVE_PEAK,
} from './constants.ts';
import type { Ramp } from './ramp-state.ts';

/** Stored numbers are rounded, so a limit may lie a little below where it was put. */
const ROUNDING = 0.999;

/** The ramp after a step that was healthy and used. */
export function grow(ramp: Ramp, proven: number | null, ceiling: number, elapsedMs: number, now: number): Ramp {
  if (ramp.limit >= ceiling * ROUNDING) return creep(ramp, elapsedMs, now);
  const limit = Math.min(ceiling, LARGEST_RATE, grownLimit(ramp, proven, now));
  const isAtCurve = ramp.cutAt === 0 && isOnCurve({ limit, top: ramp.top });
  return { ...ramp, limit, cutAt: isAtCurve ? now : ramp.cutAt, ceilingSince: 0 };
}

/** A load that has grown for good would otherwise keep the gate in its ramp for ever. */
function creep(ramp: Ramp, elapsedMs: number, now: number): Ramp {
  const ceilingSince = ramp.ceilingSince === 0 ? now : ramp.ceilingSince;
  if (now - ceilingSince < RAMP_CREEP_AFTER_MS) return { ...ramp, ceilingSince };
  const factor = (1 + RAMP_CREEP_PER_MINUTE) ** (elapsedMs / 60_000);
  return { ...ramp, ceilingSince, limit: Math.min(LARGEST_RATE, ramp.limit * factor) };
}

function grownLimit({ limit, top, cutAt }: Ramp, proven: number | null, now: number): number {
  const doubled = limit * RAMP_GROWTH;
  if (top > 0) {
    if (!isOnCurve({ limit, top })) return Math.min(doubled, top * RAMP_CUT);
    return Math.min(doubled, Math.max(limit, cubic(top, now - cutAt)));
  }
  if (proven === null) return doubled;
  return limit < proven * ROUNDING ? Math.min(doubled, proven) : limit + proven * RAMP_GROWTH_ABOVE_PEAK;
}

/** Below, the limit doubles up to where the last trouble was cut to. */
function isOnCurve({ limit, top }: { limit: number; top: number }): boolean {
  return top > 0 && limit >= top * RAMP_CUT * ROUNDING;
}

/** 0.9 of `top` at the cut, flat around `top` after 30 s, then faster and faster above it. */
function cubic(top: number, sinceMs: number): number {
  return top + (1 - RAMP_CUT) * top * ((sinceMs - RAMP_CUBIC_MS) / RAMP_CUBIC_MS) ** 3;
}
