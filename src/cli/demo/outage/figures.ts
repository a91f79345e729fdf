import type { Job } from '../../../job.ts';
import { rateWords } from '../../../observe/gate-words.ts';
import type { SideFigures } from './side.ts';

/* What both the picture and the summary read from the jobs of a side. */

export function inState({ jobs }: SideFigures, ...states: readonly Job['state'][]): number {
  return jobs.filter(({ state }) => states.includes(state)).length;
}

export function waitingOf(figures: SideFigures): number {
  return inState(figures, 'scheduled', 'ready', 'retrying');
}

export function attemptsOf({ jobs }: SideFigures): number {
  return jobs.reduce((sum, { attempts }) => sum + attempts, 0);
}

/** Calls of the last second that has ended. */
export function lastSecond({ callsPerSecond }: SideFigures): number {
  return callsPerSecond.at(-2) ?? 0;
}

/** How many jobs wait behind the gate. */
export function heldOf({ gate }: SideFigures): number {
  return gate === null || gate.phase === 'closed' ? 0 : (gate.waiting ?? 0);
}

export function gateText({ gate }: SideFigures): string {
  return gate?.phase ?? '-';
}

/** How many jobs the gate lets start. */
export function rateText({ gate }: SideFigures): string {
  if (gate === null || gate.phase === 'closed') return 'no limit';
  return gate.rate.limit === null ? 'probes only' : rateWords(gate.rate.limit);
}

export function number(value: number): string {
  return value.toLocaleString('en-US');
}
