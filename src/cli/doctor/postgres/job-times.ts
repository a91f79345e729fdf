import { quoted } from '../../../store/postgres/connection/address.ts';
import type { JobTimes } from '../jobs.ts';
import type { Server } from './server.ts';

/** From the live jobs, which are few; bigint comes as text. */
export async function jobTimes(server: Server): Promise<JobTimes> {
  const schema = quoted(server.schema);
  const row = await server.row<Record<keyof JobTimes, number | null>>(
    `WITH clock AS MATERIALIZED (SELECT ${schema}.now_ms() AS now)
     SELECT (SELECT now FROM clock)::float8 AS "now",
       (SELECT min(l.due_at) FROM ${schema}.live l JOIN ${schema}.partitions p ON p.id = l.partition
        WHERE l.worker IS NULL AND p.held_until <= (SELECT now FROM clock))::float8 AS "oldestDueAt",
       count(*)::int AS "expiredLeases", min(l.lease_ends_at)::float8 AS "oldestLeaseEndedAt"
     FROM ${schema}.live l WHERE l.worker IS NOT NULL AND l.lease_ends_at <= (SELECT now FROM clock)`,
  );
  return { ...row, now: Number(row.now), expiredLeases: Number(row.expiredLeases) };
}
