import type { StoredError } from '../../retry/outcome.ts';
import {
  counters,
  type ErrorCount,
  type ErrorGroup,
  type ErrorGroupFilter,
  type ErrorSample,
  toErrorGroups,
} from '../error-groups.ts';
import type { Session } from './session.ts';

interface CountRow extends Omit<ErrorCount, 'queue' | 'name'> {
  readonly queue: number;
  readonly name: number;
}

interface SampleRow {
  readonly fingerprint: string;
  readonly job: string;
  readonly error: string;
}

/** The counters of the groups that are chosen, in one statement, so that choice and counters agree. */
export function errorGroups(session: Session, filter: ErrorGroupFilter): ErrorGroup[] {
  const { fingerprint, name, queue, state, since, limit } = filter;
  const ofJobs = `
    ${name === undefined ? '' : 'AND name = (SELECT id FROM strings WHERE text = :name)'}
    ${queue === undefined ? '' : 'AND queue = (SELECT id FROM strings WHERE text = :queue)'}`;
  const sql = `
    WITH chosen AS MATERIALIZED (
      SELECT fingerprint FROM error_counts
      WHERE ${fingerprint === undefined ? 'true' : 'substr(fingerprint, 1, length(:fingerprint)) = :fingerprint'} ${ofJobs}
      GROUP BY fingerprint
      HAVING max(last_seen) IS NOT NULL
        ${state === undefined ? '' : `AND sum(${state}) > 0`}
        ${since === undefined ? '' : 'AND max(last_seen) >= :since'}
      ORDER BY max(0, sum(failing)) + max(0, sum(dead)) DESC, max(last_seen) DESC, fingerprint LIMIT :limit
    )
    SELECT fingerprint, queue, name, attempt, first_seen AS firstSeenAt, last_seen AS lastSeenAt, ${counters.join(', ')}
    FROM error_counts WHERE fingerprint IN (SELECT fingerprint FROM chosen) ${ofJobs}`;
  const bound = {
    ...(fingerprint !== undefined && { fingerprint }),
    ...(name !== undefined && { name }),
    ...(queue !== undefined && { queue }),
    ...(since !== undefined && { since }),
    limit,
  };
  const rows = session.sql(sql).all(bound) as unknown as CountRow[];
  const counts = rows.map((row) => ({
    ...row,
    queue: session.strings.text(row.queue),
    name: session.strings.text(row.name),
  }));
  const samples = samplesOf(session, [...new Set(rows.map((row) => row.fingerprint))]);
  return toErrorGroups(counts, (one) => samples.get(one) ?? null);
}

function samplesOf(session: Session, fingerprints: readonly string[]): Map<string, ErrorSample> {
  const rows = session
    .sql('SELECT fingerprint, job, error FROM error_samples WHERE fingerprint IN (SELECT value FROM json_each(?))')
    .all(JSON.stringify(fingerprints)) as unknown as SampleRow[];
  return new Map(
    rows.map(({ fingerprint, job, error }) => [fingerprint, { jobId: job, error: JSON.parse(error) as StoredError }]),
  );
}
