import { MISSED_AFTER_MS } from '../../schedule/plan.ts';
import type { ScheduleInfo } from '../../schedules.ts';
import { span } from '../time.ts';
import { type Check, fromTrouble } from './check.ts';
import { count, some } from './words.ts';

/** More than this are not looked at. */
export const MOST_SCHEDULES = 1_000;

/**
 * Schedules that no worker fires, and those whose job no worker knows. `known` are the names of jobs that workers know;
 * null when that cannot be told.
 */
export function schedules(listed: readonly ScheduleInfo[], known: ReadonlySet<string> | null, now: number): Check {
  const paused = listed.filter((one) => one.paused).length;
  const found = `${listed.length === 0 ? 'none' : listed.length}${paused === 0 ? '' : `, ${paused} paused`}`;
  const late = listed.filter(({ nextAt }) => nextAt !== null && nextAt < now - MISSED_AFTER_MS);
  const unknown = known === null ? [] : listed.filter(({ job, nextAt }) => nextAt !== null && !known.has(job));
  return fromTrouble('schedules', found, [...lateTrouble(late, now), ...unknownTrouble(unknown)]);
}

type Trouble = Omit<Check, 'name'>;

function lateTrouble(late: readonly ScheduleInfo[], now: number): Trouble[] {
  if (late.length === 0) return [];
  const oldest = Math.min(...late.map(({ nextAt }) => nextAt as number));
  const names = some(late.map(({ name }) => name));
  const found = `${count(late.length, 'schedule')} not fired in time: ${names}, for up to ${span(now - oldest)}`;
  return [{ health: 'warn', found, advice: 'start a worker: each one fires the ticks of all schedules' }];
}

function unknownTrouble(unknown: readonly ScheduleInfo[]): Trouble[] {
  if (unknown.length === 0) return [];
  const names = some(unknown.map(({ name, job }) => `${name} (job ${job})`));
  const found = `${count(unknown.length, 'schedule')} whose job no worker knows: ${names}`;
  const advice = 'deploy a worker with this job, or mulligan schedules remove NAME';
  return [{ health: 'warn', found, advice }];
}
