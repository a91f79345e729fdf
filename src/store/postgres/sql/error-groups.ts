import { GROUP_KEPT_MS } from '../../error-groups.ts';
import { errorCountColumns } from '../error-counts.ts';
import { HERE, lookUp } from './shared.ts';

const SUMS = errorCountColumns.map((column) => `sum(c.${column})`).join(', ');

export const errorGroupsSql: string = `
  /*
   * Keeps the first error of each new group. Every settlement begins with this, so that two that meet the same new groups
   * wait for each other before either has locked a job, and in one order.
   */
  CREATE FUNCTION keep_samples(p_fingerprints text[], p_errors text[], p_error int[], p_id uuid[]) RETURNS void
  LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO error_samples (fingerprint, seen_at, job, error)
    SELECT DISTINCT ON (f.fingerprint) f.fingerprint, now_ms(), p_id[array_position(p_error, f.ord::int)], p_errors[f.ord]
    FROM unnest(p_fingerprints) WITH ORDINALITY AS f (fingerprint, ord)
    WHERE f.fingerprint IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM error_samples s WHERE ${lookUp('s.fingerprint', 'f.fingerprint')})
    ORDER BY f.fingerprint, f.ord
    ON CONFLICT DO NOTHING;
  END $$;

  -- A job of a group changes its state without a run.
  CREATE FUNCTION move_error(p_fingerprint text, p_job_type int, p_failing int, p_dead int, p_redriven int) RETURNS void
  LANGUAGE plpgsql AS $$
  BEGIN
    IF p_fingerprint IS NULL THEN RETURN; END IF;
    INSERT INTO error_counts (fingerprint, job_type, failing, dead, redriven)
    VALUES (p_fingerprint, p_job_type, p_failing, p_dead, p_redriven);
  END $$;

  -- Adds up what transactions have counted, and deletes groups in which no job was left for a while. One transaction at a time.
  CREATE FUNCTION fold_error_counts() RETURNS void LANGUAGE plpgsql ${HERE} SET jit = off AS $$
  DECLARE over_before bigint := now_ms() - ${GROUP_KEPT_MS};
  BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext(current_schema()), hashtext('mulligan: error groups')) THEN RETURN; END IF;
    WITH many AS (
      SELECT c.fingerprint, c.attempt, t.counted_as FROM error_counts c JOIN job_types t ON t.id = c.job_type
      GROUP BY 1, 2, 3 HAVING count(*) > 1
    ), gone AS (
      DELETE FROM error_counts c USING many m, job_types t
      WHERE t.id = c.job_type AND c.fingerprint = m.fingerprint AND c.attempt = m.attempt AND t.counted_as = m.counted_as
      RETURNING c.*, t.counted_as
    )
    INSERT INTO error_counts (fingerprint, job_type, attempt, first_seen, last_seen, ${errorCountColumns.join(', ')})
    SELECT c.fingerprint, c.counted_as, c.attempt, min(c.first_seen), max(c.last_seen), ${SUMS}
    FROM gone c GROUP BY 1, 2, 3;
    DELETE FROM error_counts WHERE fingerprint IN (
      SELECT c.fingerprint FROM error_counts c GROUP BY c.fingerprint
      HAVING sum(c.failing) <= 0 AND sum(c.dead) <= 0 AND max(c.last_seen) < over_before);
    DELETE FROM error_samples s WHERE s.seen_at < over_before
      AND NOT EXISTS (SELECT 1 FROM error_counts c WHERE c.fingerprint = s.fingerprint);
  END $$;
`;
