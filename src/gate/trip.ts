import {
  DISTINCT_JOBS,
  FAST_CHANCES_PER_HOUR,
  FAST_LONGEST_STREAK,
  FAST_STREAK,
  HOUR_MS,
  LONE_STREAK,
  RAMP_STREAK,
  RAMP_STREAK_BACKGROUND,
  RAMP_STREAK_GROWTH,
  RATIO_DEVIATIONS,
  RATIO_FAILURES,
  RATIO_SHARE,
  SLOW_JOBS,
  SLOW_LASTING_MS,
  SLOW_RUNS,
  SLOW_STREAK,
  WINDOW_MS,
} from './constants.ts';
import type { Ramp } from './ramp-state.ts';
import { countJobs, joinWorkers } from './sets.ts';
import { type Streak, streakNow } from './streak.ts';
import { figuresOf, isOneWorkerAlone, recentRuns, type Window, type WindowFigures } from './window.ts';

/*
 * When a closed gate trips. Any of four rules is enough, unless all failures come from one worker while others live.
 *
 *   fast    a long streak from several jobs: an outage under load, seen within a second
 *   ratio   half of the window has failed: a dependency that serves some calls and drops the others
 *   slow    little traffic: a shorter streak that has lasted
 *   lone    one or two jobs and no sign of life for a whole window: all that can be known points to an outage
 *
 * The slow and the lone rule depend on time as well as on reports, so claims ask for them too.
 */

export type TripRule = 'fast' | 'ratio' | 'slow' | 'lone';

export interface Trip {
  readonly rule: TripRule;
  /** Environment failures since this time belong to the outage. */
  readonly from: number;
}

/** Asked with every report. */
export function tripOf(window: Window, now: number): Trip | null {
  const figures = figuresOf(window, now);
  const streak = streakNow(window.streak, now);
  if (isByOneWorker(figures, streak)) return null;
  if (isFast(streak, figures)) return trip('fast', streak, now);
  if (isHalfFailed(figures)) return trip('ratio', streak, now);
  return tripByTime(window, now);
}

/** Asked with every claim, too. */
export function tripByTime(window: Window, now: number): Trip | null {
  const figures = figuresOf(window, now);
  const streak = streakNow(window.streak, now);
  if (streak.count === 0 || now - streak.since < SLOW_LASTING_MS || isByOneWorker(figures, streak)) return null;
  const isSlow = recentRuns(window, now) < SLOW_RUNS && streak.count >= SLOW_STREAK;
  if (isSlow && countJobs(streak.jobs) >= SLOW_JOBS) return trip('slow', streak, now);
  return streak.count >= LONE_STREAK && figures.alive === 0 ? trip('lone', streak, now) : null;
}

function trip(rule: TripRule, streak: Streak, now: number): Trip {
  const windowFrom = now - WINDOW_MS;
  return { rule, from: streak.count > 0 ? Math.min(streak.since, windowFrom) : windowFrom };
}

/** A streak may have begun before the window, so its own workers count too. */
function isByOneWorker({ failing, living }: WindowFigures, streak: Streak): boolean {
  return isOneWorkerAlone({ failing: joinWorkers(failing, streak.workers), living });
}

function isFast(streak: Streak, figures: WindowFigures): boolean {
  return streak.count >= fastStreak(figures) && countJobs(streak.jobs) >= DISTINCT_JOBS;
}

/** Chance makes N x p^n streaks of n failures in N runs of which a share p fails. The streak itself does not count for p. */
export function fastStreak({
  alive,
  environment,
  streak,
}: Pick<WindowFigures, 'alive' | 'environment' | 'streak'>): number {
  const failed = Math.max(0, environment - streak);
  if (failed === 0 || alive === 0) return FAST_STREAK;
  const share = failed / (failed + alive);
  const runsPerHour = ((failed + alive) * HOUR_MS) / WINDOW_MS;
  const byChance = Math.log(runsPerHour / FAST_CHANCES_PER_HOUR) / Math.log(1 / share);
  return Math.min(FAST_LONGEST_STREAK, Math.max(FAST_STREAK, Math.ceil(byChance)));
}

/** More than half of the window, and not by chance. */
export function isHalfFailed({ environment, alive, distinctJobs }: WindowFigures): boolean {
  if (environment < RATIO_FAILURES || distinctJobs < DISTINCT_JOBS) return false;
  const runs = environment + alive;
  return environment >= RATIO_SHARE * runs + RATIO_DEVIATIONS * Math.sqrt(runs * RATIO_SHARE * (1 - RATIO_SHARE));
}

/** A ramp has more to lose: it fails at shorter streaks, the shorter the slower it is; the background makes longer ones. */
export function rampStreak({ limit, background }: Pick<Ramp, 'limit' | 'background'>): number {
  const byRate = RAMP_STREAK + Math.log(Math.max(1, limit)) / RAMP_STREAK_GROWTH;
  return Math.floor(byRate * (1 + RAMP_STREAK_BACKGROUND * background));
}
