import { STATE } from '../codes.ts';
import type { Heartbeat, HeartbeatAnswer } from '../store.ts';
import type { Session } from './session.ts';

const EXTEND = `
  UPDATE jobs SET lease_ends_at = ?4, lease_ms = ?5, progress = coalesce(?6, progress), alone = coalesce(?7, alone)
  WHERE id = ?1 AND state = ${STATE.running} AND runs = ?2 AND worker = ?3
  RETURNING cancel_requested`;

export function heartbeat(session: Session, beats: readonly Heartbeat[]): HeartbeatAnswer[] {
  return beats.map(({ id, run, worker, leaseMs, progress = null, alone }) => {
    const leaseEndsAt = session.now + leaseMs;
    const aloneCode = alone === undefined ? null : Number(alone);
    const row = session
      .sql(EXTEND)
      .get(id, run, session.strings.find(worker), leaseEndsAt, leaseMs, progress, aloneCode);
    if (!row) return { kept: false };
    return { kept: true, leaseEndsAt, cancelRequested: (row as { cancel_requested: number }).cancel_requested === 1 };
  });
}
