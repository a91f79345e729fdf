import { STATE, WAITING } from '../codes.ts';
import { counters, LAST_ATTEMPT_COUNTED } from '../error-groups.ts';
import { LANE } from './sql/shared.ts';

/** How SQL says what became of jobs whose runs have ended. */
export interface EndedJobs {
  /** A common table expression with job_type, attempt and refunded. */
  readonly from: string;
  /** The group that the job was in, and the one that its run adds it to; null for none. */
  readonly before: string;
  readonly failure: string;
  readonly state: string;
  /** The lane in which it was claimed. */
  readonly lane: string;
  readonly attempt: string;
}

/** What settlements change in error groups: the same as `errorChanges` of store/error-groups.ts. */
export function addErrorCounts({ from, before, failure, state, lane, attempt }: EndedJobs): string {
  const columns = ['failures', 'jobs', 'failing', 'dead', 'recovered', 'recurred'];
  return `
    INSERT INTO error_counts (fingerprint, job_type, attempt, first_seen, last_seen, ${columns.join(', ')})
    SELECT d.fingerprint, d.job_type, d.attempt, max(d.seen), max(d.seen), ${columns.map((column) => `sum(d.${column})`).join(', ')}
    FROM (
      SELECT ${before} AS fingerprint, job_type, 0 AS attempt, NULL::bigint AS seen,
        0 AS failures, 0 AS jobs, -1 AS failing, 0 AS dead, 0 AS recovered, 0 AS recurred
      FROM ${from} WHERE ${before} IS NOT NULL
      UNION ALL
      SELECT ${failure}, job_type, 0, store_now,
        1, (${failure} IS DISTINCT FROM ${before})::int, 0, 0, 0, coalesce(${failure} = ${before} AND ${lane} = ${LANE.redrive}, false)::int
      FROM ${from} WHERE ${failure} IS NOT NULL
      UNION ALL
      SELECT coalesce(${failure}, ${before}), job_type,
        CASE ${state} WHEN ${STATE.completed} THEN least(${attempt}, ${LAST_ATTEMPT_COUNTED}) ELSE 0 END, NULL,
        0, 0, (${state} IN (${WAITING}))::int, (${state} = ${STATE.dead})::int, (${state} = ${STATE.completed})::int, 0
      FROM ${from} WHERE coalesce(${failure}, ${before}) IS NOT NULL AND ${state} <> ${STATE.cancelled}
    ) d
    GROUP BY d.fingerprint, d.job_type, d.attempt
    HAVING max(d.seen) IS NOT NULL OR sum(d.failing) <> 0 OR sum(d.dead) <> 0 OR sum(d.recovered) <> 0`;
}

/** All columns of the table that are added up. */
export const errorCountColumns: readonly string[] = counters;
