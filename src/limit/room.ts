import { isRetry, type Lane } from '../lane.ts';
import type { KeyUse, LimitSettings } from './limit.ts';
import { startsAt, startsNow } from './rate.ts';

/** How many jobs of a key may start now from this lane. Those that keep their turn are in the lane of retries. */
export function roomOf({ concurrency, total, rate }: LimitSettings, use: KeyUse, lane: Lane, now: number): number {
  const before = use.running + holdersBefore(use, lane);
  return Math.max(
    0,
    Math.min(
      concurrency === null ? Number.POSITIVE_INFINITY : concurrency - before,
      total === null ? Number.POSITIVE_INFINITY : total - use.total,
      rate === null ? Number.POSITIVE_INFINITY : startsNow(rate, use.nextStartAt, now),
    ),
  );
}

/**
 * How many of `count` jobs a claim may take whose worker has `places` for them at once. The others are claimed ahead: while
 * they wait in the worker they hold places that others could use, so they get no more than half of them; and none where a
 * rate counts, because they start later than it counts them. `limits`: what holds for each of the jobs' limits.
 */
export function roomWithin(
  limits: readonly { readonly settings: LimitSettings; readonly use: KeyUse }[],
  lane: Lane,
  now: number,
  count: number,
  places: number = count,
): number {
  let room = Math.min(count, Math.max(0, places));
  let ahead = room < count ? count : 0;
  for (const { settings, use } of limits) {
    room = Math.min(room, roomOf(settings, use, lane, now));
    if (ahead > 0) ahead = Math.min(ahead, settings.rate === null ? roomOf(halfOf(settings), use, lane, now) : 0);
  }
  return Math.max(room, ahead);
}

function halfOf({ concurrency, total, rate }: LimitSettings): LimitSettings {
  const half = (bound: number | null): number | null => (bound === null ? null : Math.floor(bound / 2));
  return { concurrency: half(concurrency), total: half(total), rate };
}

/** When a job of a key that has no room may start by time alone; null when another job must end first. */
export function roomAt({ concurrency, total, rate }: LimitSettings, use: KeyUse, lane: Lane): number | null {
  const before = use.running + holdersBefore(use, lane);
  if (concurrency !== null && before >= concurrency) return null;
  if (total !== null && use.total >= total) return null;
  return rate === null ? null : startsAt(rate, use.nextStartAt);
}

function holdersBefore({ waiting, suspects }: KeyUse, lane: Lane): number {
  return isRetry(lane) ? suspects : waiting;
}
