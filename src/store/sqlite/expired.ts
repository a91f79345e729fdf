import { STATE } from '../codes.ts';
import { suspendedUntil } from '../expiry.ts';
import { CLAIM_BYTES } from '../store.ts';
import { CLAIMED_COLUMNS, type ClaimedRow, PAYLOAD } from './claimed-row.ts';
import { type PackedJobs, packJobs } from './packed-claim.ts';
import type { Session } from './session.ts';

/*
 * Expired leases are only believed by a process that has the file's write lock, and after an outage of the file not at
 * once: see ../expiry.ts. The table lease_expiry has what processes tell each other about it.
 */
const READ = 'SELECT looked_at, suspended_until FROM lease_expiry';
const WRITE = 'UPDATE lease_expiry SET looked_at = ?, suspended_until = ?';
const LONGEST_LEASE = `SELECT coalesce(max(lease_ms), 0) AS ms FROM jobs WHERE state = ${STATE.running}`;
const ANY = `SELECT 1 FROM jobs WHERE state = ${STATE.running} AND lease_ends_at <= ? LIMIT 1`;
/** So many rows are read at a time: at most this many payloads are read beyond CLAIM_BYTES. */
const ROWS_AT_ONCE = 64;
const EXPIRED = `
  SELECT ${CLAIMED_COLUMNS} FROM jobs WHERE state = ${STATE.running} AND lease_ends_at <= ?
  ORDER BY lease_ends_at, seq LIMIT ? OFFSET ?`;

interface Expiry {
  readonly looked_at: number | null;
  readonly suspended_until: number;
}

/** Answers without a write transaction when nothing has expired; null when there may be something. */
export function expiredNothing(session: Session): PackedJobs | null {
  const expiry = session.sql(READ).get() as unknown as Expiry;
  const { awayMs } = session.outage;
  const isReported = awayMs === 0 || (expiry.looked_at ?? 0) > session.now - awayMs;
  if (!isReported) return null;
  if (!isSuspended(session, expiry) && session.sql(ANY).get(session.now)) return null;
  return packJobs(session, []);
}

export function expired(session: Session, limit: number): PackedJobs {
  const { now } = session;
  const before = session.sql(READ).get() as unknown as Expiry;
  const outage = { now, awayMs: session.outage.awayMs, lastLookAt: before.looked_at };
  const longestLeaseMs = outage.awayMs === 0 ? 0 : (session.sql(LONGEST_LEASE).get() as { ms: number }).ms;
  const until = suspendedUntil({ ...outage, longestLeaseMs });
  session.sql(WRITE).run(now, until ?? before.suspended_until);
  return packJobs(session, until !== null || isSuspended(session, before) ? [] : read(session, limit));
}

/** By a clock that was put back, a suspension that was made before does not last until that time comes again. */
function isSuspended({ now }: Session, { looked_at, suspended_until }: Expiry): boolean {
  return now < suspended_until && looked_at !== null && looked_at <= now;
}

function read(session: Session, limit: number): ClaimedRow[] {
  const found: ClaimedRow[] = [];
  let bytes = 0;
  for (;;) {
    const wanted = Math.min(ROWS_AT_ONCE, limit - found.length);
    const rows = session.arrays(EXPIRED).all(session.now, wanted, found.length) as unknown as ClaimedRow[];
    for (const row of rows) {
      bytes += Buffer.byteLength(row[PAYLOAD] as string);
      if (found.length > 0 && bytes > CLAIM_BYTES) return found;
      found.push(row);
    }
    if (rows.length < ROWS_AT_ONCE) return found;
  }
}
