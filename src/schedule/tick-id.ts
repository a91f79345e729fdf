import { derivedId } from '../derived-id.ts';

/** The id of the job of a tick: however often a tick is fired, it is the same job. */
export function tickId(schedule: string, tick: number): string {
  return derivedId(tick, schedule);
}
