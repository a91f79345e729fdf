import { quoted } from '../../../store/postgres/connection/address.ts';
import type { JobTimes, StoredWaitingJobs } from '../jobs.ts';
import type { Server } from './server.ts';

type Leases = Omit<JobTimes, 'waiting'>;

/** From the live jobs, which are few; bigint comes as text. */
export async function jobTimes(server: Server): Promise<JobTimes> {
  const schema = quoted(server.schema);
  const { now, expiredLeases, oldestLeaseEndedAt } = await server.row<Leases>(
    `WITH clock AS MATERIALIZED (SELECT ${schema}.now_ms() AS now)
     SELECT (SELECT now FROM clock)::float8 AS "now",
       count(*)::int AS "expiredLeases", min(l.lease_ends_at)::float8 AS "oldestLeaseEndedAt"
     FROM ${schema}.live l WHERE l.worker IS NOT NULL AND l.lease_ends_at <= (SELECT now FROM clock)`,
  );
  const waiting = await server.rows<StoredWaitingJobs>(
    `WITH clock AS MATERIALIZED (SELECT ${schema}.now_ms() AS now)
     SELECT p.queue, t.name, count(*)::int AS "count", min(l.due_at)::float8 AS "oldestDueAt",
       count(*) FILTER (WHERE l.due_at <= (SELECT now FROM clock))::int AS "due",
       CASE WHEN p.gate_at IS NOT NULL OR p.held_until > (SELECT now FROM clock) THEN nullif(p.resource, '') END AS gate
     FROM ${schema}.live l
       JOIN ${schema}.partitions p ON p.id = l.partition JOIN ${schema}.job_types t ON t.id = l.job_type
     WHERE l.worker IS NULL GROUP BY 1, 2, 6`,
  );
  return { now: Number(now), waiting, expiredLeases: Number(expiredLeases), oldestLeaseEndedAt };
}
