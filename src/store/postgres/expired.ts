import type { StoredError } from '../../retry/outcome.ts';
import { parseFrozen } from '../json.ts';
import type { ClaimedJob } from '../store.ts';
import { claimedJob } from './claimed.ts';
import type { Session } from './session.ts';

const EXPIRED = `
  SELECT (job).id, (job).runs, (job).line, (job).kind, (job).due_at, (job).attempts, (job).crashes, (job).available_at,
    (job).first_started_at, (job).previous_delay_ms, (job).enqueued_at, (job).payload, error,
    (job).worker, (job).claimed_at, (job).lease_ends_at, (job).cancel_requested
  FROM @.expired($1)`;

type ExpiredRow = [
  id: string,
  run: number,
  line: number,
  kind: number,
  dueAt: number,
  attempts: number,
  crashes: number,
  availableAt: number,
  firstStartedAt: number,
  previousDelayMs: number | null,
  enqueuedAt: number,
  payload: string,
  error: string | null,
  worker: number,
  claimedAt: number,
  leaseEndsAt: number,
  cancelRequested: boolean,
];

export async function expired(session: Session, limit: number): Promise<ClaimedJob[]> {
  const awayMs = session.db.takeAwayMs();
  if (awayMs > 0) await session.db.query('SELECT @.pardon($1)', [awayMs]);
  const rows = await session.db.query<ExpiredRow>(EXPIRED, [limit]);
  await session.kinds.know(rows.map((row) => row[3]));
  await session.lines.know(rows.map((row) => row[2]));
  await session.workers.know(rows.map((row) => row[13]));
  return rows.map((row) => {
    const [id, run, line, kind, dueAt, attempts, crashes, availableAt, firstStartedAt, previousDelayMs] = row;
    const [, , , , , , , , , , enqueuedAt, payload, error, worker, claimedAt, leaseEndsAt, cancelRequested] = row;
    const lastError = error === null ? null : parseFrozen<StoredError>(error);
    const times = { dueAt, availableAt, firstStartedAt, previousDelayMs, enqueuedAt };
    const holding = { worker: session.workers.name(worker), claimedAt, leaseEndsAt, cancelRequested };
    session.hold(id, line, kind, run, null);
    return claimedJob(session, { id, run, line, kind, attempts, crashes, ...times, payload, lastError }, holding);
  });
}
