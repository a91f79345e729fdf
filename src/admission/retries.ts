import type { Lane } from '../lane.ts';
import { isRetry } from '../lane.ts';
import type { PlannedQueue, RunningRetries } from './offer.ts';

/*
 * How many retries of a queue may start: no more than `maxRetriesInFlight` run at once, suspects included. While a suspect
 * is due, one of these places is kept for it, so that other retries cannot keep it from ever starting. Suspects are tried
 * one at a time: a second one of a queue waits until the first has ended.
 */

/** What a store counts and subtracts again when it takes the jobs. */
export interface CapGuard {
  readonly queue: string;
  readonly cap: number;
  readonly keepsOneForSuspect: boolean;
}

/** `running` is null that are not counted: then the whole cap is planned with, and taking leaves out what is too much. */
export function retryRoom(
  { maxRetriesInFlight: cap }: PlannedQueue,
  running: RunningRetries | null,
  lane: Lane,
  isSuspectDue: boolean,
): number {
  if (lane === 'suspect' && running !== null && running.suspects > 0) return 0;
  if (cap === null || !isRetry(lane)) return lane === 'suspect' ? 1 : Number.POSITIVE_INFINITY;
  const left = cap - (running === null ? 0 : running.retries + running.suspects);
  if (lane === 'suspect') return Math.min(1, Math.max(0, left));
  return Math.max(0, keepsOne(isSuspectDue, running) ? left - 1 : left);
}

/** A suspect that runs has the place that was kept. */
export function keepsOne(isSuspectDue: boolean, running: RunningRetries | null): boolean {
  return isSuspectDue && (running === null || running.suspects === 0);
}
