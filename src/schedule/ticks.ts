import { Cron } from 'croner';
import type { Timing } from './timing.ts';

/*
 * The times of a schedule. Pure: which time it is now comes as an argument.
 *
 * Daylight saving, for `cron` (`every` counts elapsed time, and does not know of it):
 *   - A pattern with a fixed time ticks once a day. On the day of 23 hours, 02:30 does not exist: it ticks at 03:00, when
 *     the clocks have been put forward. On the day of 25 hours, 02:30 comes twice: it ticks at the first.
 *   - A pattern that repeats (`*`, ranges and steps in minutes or hours) ticks in the hours that there are: hourly means
 *     23 and 25 ticks on these days.
 */

/** The ticks after a time, earliest first. */
export function* ticksAfter(timing: Timing, after: number): Generator<number> {
  const next = nextOf(timing);
  for (let tick = next(after); tick !== null; tick = next(tick)) yield tick;
}

/** The first tick after a time; null when there is none. */
export function nextTick(timing: Timing, after: number): number | null {
  return nextOf(timing)(after);
}

export function nextTicks(timing: Timing, after: number, count: number): number[] {
  const ticks: number[] = [];
  for (const tick of ticksAfter(timing, after)) {
    if (ticks.length >= count) break;
    ticks.push(tick);
  }
  return ticks;
}

const FIRST_SPAN_MS = 60_000;
const SPAN_FACTOR = 8;

/**
 * The last ticks after one time and up to another, earliest first, `most` at most. They are looked for in spans that grow
 * backwards from the end, and are halved where there are many ticks: after an outage of a month, a schedule of each second has
 * missed millions.
 */
export function lastTicks(timing: Timing, after: number, upTo: number, most: number): number[] {
  const spans: number[][] = [];
  let found = 0;
  let span = FIRST_SPAN_MS;
  for (let end = upTo; found < most && end > after; ) {
    const from = Math.max(after, end - span);
    const ticks = ticksOfSpan(timing, from, end, 2 * most);
    if (ticks === null) {
      span = Math.ceil((end - from) / 2);
      continue;
    }
    spans.unshift(ticks);
    found += ticks.length;
    end = from;
    span *= SPAN_FACTOR;
  }
  const ticks = spans.flat();
  return ticks.slice(Math.max(0, ticks.length - most));
}

/** Null when there are more than `most`. */
function ticksOfSpan(timing: Timing, after: number, upTo: number, most: number): number[] | null {
  const ticks: number[] = [];
  for (const tick of ticksAfter(timing, after)) {
    if (tick > upTo) break;
    if (ticks.length === most) return null;
    ticks.push(tick);
  }
  return ticks;
}

/** Whole times that rise, whatever is stored: so every loop over ticks ends. */
function nextOf(timing: Timing): (after: number) => number | null {
  const next = foundBy(timing);
  return (after) => {
    const tick = next(after);
    return tick !== null && tick > after && Number.isSafeInteger(tick) ? tick : null;
  };
}

function foundBy(timing: Timing): (after: number) => number | null {
  switch (timing.kind) {
    case 'at':
      return () => timing.at;
    case 'every': {
      const { everyMs, anchor } = timing;
      return (after) => anchor + (Math.floor((after - anchor) / everyMs) + 1) * everyMs;
    }
    case 'cron': {
      const cron = new Cron(timing.cron, { timezone: timing.timezone, paused: true });
      return (after) => cron.nextRun(new Date(after))?.getTime() ?? null;
    }
  }
}
