import type { Heartbeat, HeartbeatAnswer } from '../store.ts';
import type { MemoryState } from './state.ts';

/** A late heartbeat still counts while the job was not rescued: its worker is alive, and the run goes on. */
export function heartbeat(state: MemoryState, beats: readonly Heartbeat[], now: number): HeartbeatAnswer[] {
  return beats.map((beat) => {
    const row = state.held(beat);
    if (!row) return { kept: false };
    row.lease = { ...row.lease, endsAt: now + beat.leaseMs, alone: beat.alone ?? row.lease.alone };
    if (beat.progress !== undefined) row.progress = beat.progress;
    return { kept: true, leaseEndsAt: row.lease.endsAt, cancelRequested: row.cancelRequested };
  });
}
