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
 * backwards from the end: after an outage of a month, a schedule of each second has missed millions of ticks.
 */
export function lastTicks(timing: Timing, after: number, upTo: number, most: number): number[] {
  for (let span = FIRST_SPAN_MS; ; span *= SPAN_FACTOR) {
    const from = Math.max(after, upTo - span);
    const ticks: number[] = [];
    for (const tick of ticksAfter(timing, from)) {
      if (tick > upTo) break;
      ticks.push(tick);
    }
    if (ticks.length >= most || from === after) return ticks.slice(Math.max(0, ticks.length - most));
  }
}

function nextOf(timing: Timing): (after: number) => number | null {
  switch (timing.kind) {
    case 'at':
      return (after) => (timing.at > after ? timing.at : null);
    case 'every': {
      const { everyMs, anchor } = timing;
      return (after) => anchor + (Math.floor((after - anchor) / everyMs) + 1) * everyMs;
    }
    case 'cron': {
      const cron = new Cron(timing.cron, { timezone: timing.timezone, paused: true });
      return (after) => {
        const tick = cron.nextRun(new Date(after))?.getTime() ?? null;
        // Every loop over ticks ends because they rise.
        return tick !== null && tick > after ? tick : null;
      };
    }
  }
}
