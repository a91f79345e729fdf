import { KEYS_SHOWN, type LimitDetails } from '../../limits.ts';
import type { Mulligan } from '../../mulligan.ts';
import type { LimitKeyInfo } from '../../store/store.ts';
import type { WaitingJobs } from './served.ts';

/**
 * Jobs behind limits as these hold them: of each group, those of keys that let fewer start than are due. A group whose
 * keys all have room waits behind none.
 */
export async function heldByLimits(
  { limits }: Pick<Mulligan, 'limits'>,
  jobs: readonly WaitingJobs[],
  now: number,
): Promise<WaitingJobs[]> {
  const names = [...new Set(jobs.flatMap((group) => (group.due > 0 ? group.limits : [])))];
  const held = new Map<string, number>();
  for (const name of names) {
    const details = await limits.show(name);
    held.set(name, details === null ? 0 : heldBy(details, now));
  }
  return jobs.map((group) => {
    const holding = group.limits.filter((name) => (held.get(name) ?? 0) > 0);
    const most = Math.max(...holding.map((name) => held.get(name) ?? 0));
    return { ...group, limits: holding, due: Math.min(group.due, holding.length === 0 ? group.due : most) };
  });
}

/** How many due jobs a limit holds back. */
function heldBy({ limit: { running, settings }, keys }: LimitDetails, now: number): number {
  const isFull = settings.total !== null && running >= settings.total;
  const full = keys.filter((key) => key.due > 0 && (isFull || key.due > roomOf(key, now)));
  // Not all keys were looked at: what else is due is held as well, for all that is known.
  if (keys.length >= KEYS_SHOWN && full.length > 0) return Number.POSITIVE_INFINITY;
  return full.reduce((sum, { due }) => sum + due, 0);
}

/** How many jobs of a key may start now. */
function roomOf(
  { settings: { concurrency, rate }, running, waiting, due, startsAt }: LimitKeyInfo,
  now: number,
): number {
  // With a concurrency of 1, a job that failed before and is not due yet may keep the turn.
  if (concurrency === 1 && waiting > due) return 0;
  const free = concurrency === null ? Number.POSITIVE_INFINITY : Math.max(0, concurrency - running);
  if (rate === null) return free;
  return startsAt !== null && startsAt > now ? 0 : Math.min(free, rate.burst);
}
