import type { NewJob, Schedule } from '../store/store.ts';
import { planTicks } from './plan.ts';
import { tickId } from './tick-id.ts';

/** What is written when a schedule fires: the schedule moved on, and the jobs of the ticks that get one. */
export interface Tick {
  readonly to: Schedule;
  readonly jobs: readonly NewJob[];
  /** Ticks came too late, so that the misfire policy chose. */
  readonly isLate: boolean;
}

/** What every worker that looks at `now` writes; null when nothing is due. `version` is that of the schedule afterwards. */
export function tickOf(schedule: Schedule, version: string, now: number): Tick | null {
  const { name, nextAt: dueAt } = schedule;
  if (dueAt === null || dueAt > now) return null;
  const { ticks, nextAt, isLate } = planTicks({ ...schedule, nextAt: dueAt }, now);
  const jobs = ticks.map((tick): NewJob => ({ ...schedule.job, id: tickId(name, tick), delayMs: 0, dueAt: tick }));
  return { to: { ...schedule, version, nextAt, lastAt: ticks.at(-1) ?? schedule.lastAt }, jobs, isLate };
}
