import type { Rate } from './limit.ts';

/*
 * The rate of a key is kept as one time, `nextStartAt` (GCRA): when the next start would come if all were evenly spread. A
 * start may come up to `burst - 1` spaces earlier than that, and moves the time on by one space.
 *
 * After `burst` starts at once the next ones are a space apart, so a window of `perMs` holds at most `burst` and, behind
 * them, as many as there are spaces in it. With the space chosen here that makes `limit`, wherever the window begins. A
 * larger burst therefore costs throughput: `limit - burst + 1` starts per window when there is always work.
 */

/** The time between two starts. */
export function spaceOf({ limit, perMs, burst }: Rate): number {
  return perMs / (limit - burst + 1);
}

/** Sums of spaces are not exact. In ms, and far below one: times are whole ms, so no start comes early for it. */
const INEXACT_MS = 0.01;

/** How many may start now. */
export function startsNow(rate: Rate, nextStartAt: number, now: number): number {
  const aheadMs = Math.max(0, nextStartAt - now - INEXACT_MS);
  return Math.max(0, Math.floor(rate.burst - aheadMs / spaceOf(rate)));
}

/** When one more may start. */
export function startsAt(rate: Rate, nextStartAt: number): number {
  return Math.ceil(nextStartAt - (rate.burst - 1) * spaceOf(rate) - INEXACT_MS / 2);
}

/** `nextStartAt` after so many starts. */
export function afterStarts(rate: Rate, nextStartAt: number, now: number, count: number): number {
  return Math.max(nextStartAt, now) + count * spaceOf(rate);
}

/**
 * `nextStartAt` after a key got another rate. As many starts are owed as before, at the new space; but a lower rate puts
 * nothing off that was to come sooner. Without a rate nothing is owed.
 */
export function afterChange(before: Rate | null, after: Rate | null, nextStartAt: number, now: number): number {
  if (nextStartAt <= now) return nextStartAt;
  const owed = before === null ? 0 : (nextStartAt - now) / spaceOf(before);
  return Math.min(nextStartAt, now + (after === null ? 0 : owed * spaceOf(after)));
}

/**
 * `nextStartAt` after a start has not come about that was claimed so long ago. Time that has passed since has made room
 * already, perhaps for others that have started, and must not be given back again.
 */
export function afterHandedBack(rate: Rate, nextStartAt: number, heldMs: number): number {
  return nextStartAt - Math.max(0, spaceOf(rate) - heldMs);
}
