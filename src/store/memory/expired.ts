import type { ClaimedJob } from '../store.ts';
import { type Lease, toClaimedJob } from './row.ts';
import type { MemoryState } from './state.ts';

/** Only reads: whoever rescues the job names the dead worker's fence, so that two rescuers settle it once. */
export function expired(state: MemoryState, limit: number, now: number): ClaimedJob[] {
  return [...state.running]
    .map((row) => ({ row, lease: row.lease as Lease }))
    .filter(({ lease }) => lease.endsAt <= now)
    .sort((a, b) => a.lease.endsAt - b.lease.endsAt || a.row.accepted - b.row.accepted)
    .slice(0, limit)
    .map(({ row, lease }) => toClaimedJob(row, lease));
}
