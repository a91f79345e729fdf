import type { LimitSettings } from './limit.ts';

/*
 * What an enqueue does when a key is full: as many jobs of the key are live, waiting or running, as may run at once.
 *
 *   cancel-newest  the job is not stored; the answer is a live job of the key
 *   cancel-oldest  the job is stored, and of those that wait and have never started, the one accepted first is cancelled;
 *                  when all have started, none is
 *
 * Of several limits, those with cancel-newest come first: a job that is not stored cancels none.
 */

/**
 * With so many live jobs a key is full; null when it never is. A concurrency of 0, which lets nothing start, still leaves
 * one job waiting: there is always a live job to answer with.
 */
export function mostLive({ concurrency }: LimitSettings): number | null {
  return concurrency === null ? null : Math.max(1, concurrency);
}
