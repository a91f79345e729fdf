/**
 * The lane a job waits in. `suspect` is for a job whose next crash may bury it as poison: it is tried one at a time, so
 * that the jobs that merely ran beside a killer are not buried with it.
 */
export const lanes = ['fresh', 'retry', 'redrive', 'suspect'] as const;
export type Lane = (typeof lanes)[number];

/** True for the lanes of jobs that have had a counted run. `maxRetriesInFlight` bounds both together. */
export function isRetry(lane: Lane): boolean {
  return lane === 'retry' || lane === 'suspect';
}
