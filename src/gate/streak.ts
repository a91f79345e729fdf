import { STREAK_KEPT_MS } from './constants.ts';
import type { GateReport } from './evidence.ts';
import { type JobBits, join, joinWorkers, noJobs, type WorkerSet } from './sets.ts';

/** Environment failures since the last sign of life. */
export interface Streak {
  readonly count: number;
  /** When its first and its last failure were reported. */
  readonly since: number;
  readonly at: number;
  readonly jobs: JobBits;
  readonly workers: WorkerSet;
}

export const noStreak: Streak = { count: 0, since: 0, at: 0, jobs: noJobs, workers: [] };

export function addToStreak(streak: Streak, report: GateReport, now: number): Streak {
  const isAnswered = report.alive + report.throttled > 0;
  const kept = isAnswered ? noStreak : streakNow(streak, now);
  const added = isAnswered ? report.tail : report.environment;
  if (added === 0) return kept;
  return {
    count: kept.count + added,
    since: kept.count === 0 ? now : kept.since,
    at: now,
    jobs: join(kept.jobs, report.jobs),
    workers: joinWorkers(kept.workers, [report.worker]),
  };
}

/** Failures of yesterday and of today are no streak. */
export function streakNow(streak: Streak, now: number): Streak {
  return now - streak.at >= STREAK_KEPT_MS ? noStreak : streak;
}
