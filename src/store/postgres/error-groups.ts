import type { StoredError } from '../../retry/outcome.ts';
import {
  type Counter,
  counters,
  type ErrorCount,
  type ErrorGroup,
  type ErrorGroupFilter,
  type ErrorSample,
  toErrorGroups,
} from '../error-groups.ts';
import type { Session } from './session.ts';

type CountRow = [
  fingerprint: string,
  queue: string,
  name: string,
  attempt: number,
  firstSeenAt: number | null,
  lastSeenAt: number | null,
  ...counts: number[],
];
type SampleRow = [fingerprint: string, job: string, error: string];

/** The counters of the groups that are chosen, in one statement, so that choice and counters agree. */
export async function errorGroups(session: Session, filter: ErrorGroupFilter): Promise<ErrorGroup[]> {
  const { fingerprint, name, queue, state, since, limit } = filter;
  const values: unknown[] = [];
  const bound = (value: unknown): string => `$${values.push(value)}`;
  const ofJobs = [
    'true',
    ...(name === undefined ? [] : [`t.name = ${bound(name)}`]),
    ...(queue === undefined ? [] : [`t.queue = ${bound(queue)}`]),
  ].join(' AND ');
  const sql = `
    WITH counts AS MATERIALIZED (
      SELECT c.fingerprint, t.queue, t.name, c.attempt, min(c.first_seen) AS first_seen, max(c.last_seen) AS last_seen,
        ${counters.map((counter) => `sum(c.${counter}) AS ${counter}`).join(', ')}
      FROM @.error_counts c JOIN @.job_types t ON t.id = c.job_type
      WHERE ${ofJobs} ${fingerprint === undefined ? '' : `AND starts_with(c.fingerprint, ${bound(fingerprint)})`}
      GROUP BY 1, 2, 3, 4
    ), chosen AS (
      SELECT c.fingerprint FROM counts c GROUP BY c.fingerprint
      HAVING max(c.last_seen) IS NOT NULL
        ${state === undefined ? '' : `AND sum(c.${state}) > 0`}
        ${since === undefined ? '' : `AND max(c.last_seen) >= ${bound(since)}`}
      ORDER BY greatest(0, sum(c.failing)) + greatest(0, sum(c.dead)) DESC, max(c.last_seen) DESC,
        c.fingerprint COLLATE "C" LIMIT ${bound(limit)}
    )
    SELECT c.* FROM counts c WHERE c.fingerprint IN (SELECT fingerprint FROM chosen)`;
  const rows = await session.db.read<CountRow>(sql, values);
  const samples = await samplesOf(session, [...new Set(rows.map(([one]) => one))]);
  return toErrorGroups(rows.map(toCount), (one) => samples.get(one) ?? null);
}

function toCount(row: CountRow): ErrorCount {
  const [fingerprint, queue, name, attempt, firstSeenAt, lastSeenAt, ...amounts] = row;
  const counts = Object.fromEntries(counters.map((counter, index) => [counter, Number(amounts[index])]));
  const counted = counts as Record<Counter, number>;
  return { fingerprint, queue, name, attempt, firstSeenAt, lastSeenAt, ...counted };
}

async function samplesOf(session: Session, fingerprints: readonly string[]): Promise<Map<string, ErrorSample>> {
  if (fingerprints.length === 0) return new Map();
  const rows = await session.db.read<SampleRow>(
    'SELECT fingerprint, job, error FROM @.error_samples WHERE fingerprint = ANY ($1::text[])',
    [fingerprints],
  );
  return new Map(
    rows.map(([fingerprint, job, error]) => [fingerprint, { jobId: job, error: JSON.parse(error) as StoredError }]),
  );
}
