import { parseRunLog, type RunLog } from '../../run-log.ts';
import type { MemoryState } from './state.ts';

export function keepLog(state: MemoryState, jobId: string, run: number, log: string): void {
  const ofJob = state.logs.get(jobId) ?? new Map<number, string>();
  state.logs.set(jobId, ofJob.set(run, log));
}

export function logs(state: MemoryState, jobId: string, limit: number): RunLog[] {
  // Runs settle in their order.
  const newestFirst = [...(state.logs.get(jobId) ?? [])].reverse();
  return newestFirst.slice(0, limit).map(([run, log]) => parseRunLog(run, log));
}
