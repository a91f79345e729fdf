/*
 * Lease expiry is suspended after an outage of the store.
 *
 * While no process can write (the server is down, another process holds SQLite's write lock), no worker can renew its
 * leases. They all look expired to the first process that gets through, although every worker is alive. So a process that
 * could not write for a while reports how long when it next looks for expired leases, and for a moment no lease counts as
 * expired: long enough for every live worker to renew.
 */

/** A worker whose calls failed tries again at least this often, so by then it has renewed its leases. */
const RECONNECT_MS = 3_000;
/** Workers renew three times per lease: one whose renewal did not fall into the outage sends the next within this part. */
const RENEWALS_PER_LEASE = 3;

export interface Outage {
  /** Store time. */
  readonly now: number;
  /** For how long this process could not write. */
  readonly awayMs: number;
  /** When any process last looked for expired leases, in store time; null when none has yet. */
  readonly lastLookAt: number | null;
  /** The longest lease that is outstanding; 0 when none is. */
  readonly longestLeaseMs: number;
}

/** Until when no lease counts as expired, in store time; null when there is no reason to suspend expiry. */
export function suspendedUntil({ now, awayMs, lastLookAt, longestLeaseMs }: Outage): number | null {
  if (awayMs <= 0 || longestLeaseMs <= 0) return null;
  // Another process reached the store meanwhile, so only this one was cut off, and the others could renew.
  if (lastLookAt !== null && lastLookAt > now - awayMs) return null;
  return now + Math.min(longestLeaseMs, RECONNECT_MS + Math.ceil(longestLeaseMs / RENEWALS_PER_LEASE));
}
