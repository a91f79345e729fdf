import { lastTicks, nextTick } from './ticks.ts';
import type { Timing } from './timing.ts';

/** What becomes of ticks that were missed: none gets a job, the last one does, or all do. */
export const misfirePolicies = ['skip', 'once', 'all'] as const;
export type MisfirePolicy = (typeof misfirePolicies)[number];

/** A tick that no worker could fire within this time was missed. Restarts and crashes take less. */
export const MISSED_AFTER_MS = 60_000;
/** More jobs than this are not stored in one transaction. */
export const MOST_AT_ONCE = 100;

/** Of `misfire: 'all'`, whatever is stored. */
export const LARGEST_MISFIRE_LIMIT = 10_000;

export interface DueSchedule {
  readonly timing: Timing;
  readonly misfire: MisfirePolicy;
  /** Of `all`: no more jobs than this, and of the last ticks. */
  readonly misfireLimit: number;
  /** The first tick that was not fired yet. */
  readonly nextAt: number;
}

export interface TickPlan {
  /** The ticks that get a job now, earliest first. */
  readonly ticks: readonly number[];
  /** The first tick that is left for later; null when there is none. */
  readonly nextAt: number | null;
  /** True when some ticks came too late, so that the misfire policy chose. */
  readonly isLate: boolean;
}

/**
 * Which ticks of a schedule get a job at `now`. All ticks that are due do, unless the first is so late that it was missed:
 * then the misfire policy chooses. The plan only ever moves forward: a clock that was put back fires nothing again.
 */
export function planTicks(schedule: DueSchedule, now: number): TickPlan {
  const { timing, nextAt } = schedule;
  if (nextAt > now) return { ticks: [], nextAt, isLate: false };
  const isLate = nextAt < now - MISSED_AFTER_MS;
  const ticks = isLate ? chosenTicks(schedule, now) : [nextAt, ...lastTicks(timing, nextAt, now, MOST_AT_ONCE)];
  if (ticks.length <= MOST_AT_ONCE) return { ticks, nextAt: nextTick(timing, now), isLate };
  return { ticks: ticks.slice(0, MOST_AT_ONCE), nextAt: ticks[MOST_AT_ONCE] as number, isLate };
}

function chosenTicks({ timing, misfire, misfireLimit, nextAt }: DueSchedule, now: number): number[] {
  switch (misfire) {
    case 'skip':
      return lastTicks(timing, now - MISSED_AFTER_MS - 1, now, MOST_AT_ONCE);
    case 'once':
      return [lastTicks(timing, nextAt, now, 1)[0] ?? nextAt];
    case 'all': {
      const most = Math.min(misfireLimit, LARGEST_MISFIRE_LIMIT);
      const later = lastTicks(timing, nextAt, now, most);
      return later.length < most ? [nextAt, ...later] : later;
    }
  }
}
