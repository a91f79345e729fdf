import type { JobState } from '../../src/job.ts';
import { call } from './request.ts';

/** Counting stops here: a larger number would cost the store more than it tells. */
const MOST_COUNTED = 10_000;

export interface Counted {
  readonly count: number;
  /** False: there are more. */
  readonly isExact: boolean;
}

export async function countState(state: JobState, signal: AbortSignal): Promise<Counted> {
  const { count, isExact } = await call('countJobs', { query: { state, limit: MOST_COUNTED + 1 }, signal });
  return count > MOST_COUNTED ? { count: MOST_COUNTED, isExact: false } : { count, isExact };
}
