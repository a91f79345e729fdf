import { HOUR_MS } from '../duration.ts';
import { NEEDED_HOURS } from './bounds.ts';
import { type Errors, isEnvironment } from './classification.ts';
import type { Life, LifeRun } from './lives.ts';
import { type OutageSpan, outagesOf } from './outage.ts';

/*
 * Jobs that failed in an outage say nothing about attempts: the retries of all of them met the same dependency while it was
 * down. Beside an error that never recovers, they would make fewer attempts look free, and the next outage would kill more jobs.
 */

/** Lives with a counted failure of an outage. */
export function livesInOutages(lives: readonly Life[], errors: Errors): Set<Life> {
  const outages = outagesOf(lives);
  const ofOutages = outageGroups(lives, errors);
  const isOfOutage = ({ group, startedAt }: LifeRun): boolean =>
    group !== null && ofOutages.has(group) && outages.some((outage) => isWithin(outage, startedAt));
  return new Set(lives.filter(({ runs }) => runs.some(isOfOutage)));
}

export function isWithin({ from, until }: OutageSpan, at: number): boolean {
  return at >= from && at < until;
}

/**
 * Errors that an outage may have caused: those of the environment, and those that were seen in few different hours. An error
 * of every hour is none of them, though it may fill the minutes in which few other jobs ran.
 */
function outageGroups(lives: readonly Life[], errors: Errors): Set<string> {
  const hours = new Map<string, Set<number>>();
  for (const { group, startedAt } of lives.flatMap(({ runs }) => runs)) {
    if (group === null) continue;
    const own = hours.get(group) ?? new Set();
    hours.set(group, own.add(Math.floor(startedAt / HOUR_MS)));
  }
  return new Set(
    [...hours].flatMap(([group, own]) => (isEnvironment(errors[group]) || own.size < NEEDED_HOURS ? group : [])),
  );
}
