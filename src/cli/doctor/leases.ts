import { type RegisteredWorker, SILENT_AFTER_MS } from '../../store/store.ts';
import { span } from '../time.ts';
import { type Check, ok, warn } from './check.ts';
import { count } from './words.ts';

/** Workers look for expired leases several times a minute. */
const LONG_WAIT_MS = 60_000;

/** In store time. */
export interface ExpiredLeases {
  readonly now: number;
  readonly expiredLeases: number;
  readonly oldestLeaseEndedAt: number | null;
}

/** A worker that was seen only before the lease ended may be the one that held it, and dead: it is no reason for hope. */
export function leases(
  { now, expiredLeases, oldestLeaseEndedAt }: ExpiredLeases,
  workers: readonly RegisteredWorker[],
): Check {
  const name = 'leases';
  if (expiredLeases === 0 || oldestLeaseEndedAt === null) return ok(name, 'none has expired');
  const ago = now - oldestLeaseEndedAt;
  const found = `${count(expiredLeases, 'lease has', 'leases have')} expired, the oldest ${span(ago)} ago`;
  const lastSeenAt = Math.max(Number.NEGATIVE_INFINITY, ...workers.map((worker) => worker.lastSeenAt));
  if (ago >= LONG_WAIT_MS || now - lastSeenAt > SILENT_AFTER_MS) {
    return warn(name, found, 'start a worker: each one rescues the crashed runs of all queues');
  }
  if (lastSeenAt > oldestLeaseEndedAt) return ok(name, `${found}; a worker was seen since, and will rescue them soon`);
  return ok(name, `${found}; no worker was seen since: look again in ${span(SILENT_AFTER_MS)}`);
}
