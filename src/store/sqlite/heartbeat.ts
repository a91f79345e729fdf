import { STATE } from '../codes.ts';
import type { Fence, Heartbeat, HeartbeatAnswer } from '../store.ts';
import type { Session } from './session.ts';

const EXTEND = `
  UPDATE jobs SET lease_ends_at = ?4, progress = coalesce(?5, progress)
  WHERE id = ?1 AND state = ${STATE.running} AND runs = ?2 AND worker = ?3
  RETURNING cancel_requested`;
const HOLDS = `SELECT seq FROM jobs WHERE id = ? AND state = ${STATE.running} AND runs = ? AND worker = ?`;
const REMEMBER = 'INSERT INTO memos (job, key, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING';

export function heartbeat(session: Session, beats: readonly Heartbeat[]): HeartbeatAnswer[] {
  return beats.map((beat) => {
    const leaseEndsAt = session.now + beat.leaseMs;
    const worker = session.words.find(beat.worker);
    const row = session.sql(EXTEND).get(beat.id, beat.run, worker, leaseEndsAt, beat.progress ?? null);
    if (!row) return { kept: false };
    return { kept: true, leaseEndsAt, cancelRequested: (row as { cancel_requested: number }).cancel_requested === 1 };
  });
}

/** The first result stored under a key stays. */
export function remember(session: Session, fence: Fence, key: string, value: string): boolean {
  const row = session.sql(HOLDS).get(fence.id, fence.run, session.words.find(fence.worker));
  if (!row) return false;
  session.sql(REMEMBER).run((row as { seq: number }).seq, key, value);
  return true;
}
