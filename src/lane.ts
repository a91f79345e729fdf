/**
 * The lane a job waits in. `suspect` is for a job whose next crash may bury it as poison: it is tried one at a time, so
 * that the jobs that merely ran beside a killer are not buried with it.
 */
export const lanes = ['fresh', 'retry', 'redrive', 'suspect'] as const;
export type Lane = (typeof lanes)[number];

/** Both lanes hold jobs that a counted run came before; together they are what `maxRetriesInFlight` bounds. */
export function isRetry(lane: Lane): boolean {
  return lane === 'retry' || lane === 'suspect';
}
