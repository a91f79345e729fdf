import { LANE, lookUp } from './shared.ts';

/*
 * Jobs that are not to wait behind a full key (src/limit/on-limit.ts). Enqueues of such jobs of one key come one after the
 * other, by a row of enqueue_locks that each of them writes: so two of them never take the same room. Each statement after the
 * lock sees what the one before has committed; a transaction of a strict isolation cannot, and finds that the row has changed,
 * which is a conflict. An advisory lock would not tell it.
 *
 * Live jobs of a key are those of its partitions, where a job stays listed while it runs, and suspects, whose partitions have
 * no limits: these have a slot. No more of them are read than fill the key.
 */

/** Keys share so many rows; a transaction may ask for thousands of keys. */
const ENQUEUE_LOCKS = 256;

/** The rules of a job: whether jobs before it in this call count in its keys; then the limit, the key and the action of each. */
const RULES = `CROSS JOIN LATERAL json_array_elements(g.rules::json -> 1) AS r (one)`;

/** In one order, so that no two calls wait for each other. */
export const LOCK_FULL_KEYS: string = `
      INSERT INTO enqueue_locks AS l (id, uses)
      SELECT DISTINCT hashtext((r.one ->> 0) || ' ' || (r.one ->> 1)) & ${ENQUEUE_LOCKS - 1}, 1
      FROM unnest(p_on_limit) AS g (rules) ${RULES} ORDER BY 1
      ON CONFLICT (id) DO UPDATE SET uses = l.uses + 1;`;

const OF_KEY = 'b.limit_name = p_limit AND b.key = p_key';

export const onLimitSql: string = `
  -- A live job of a key that is full; null when it is not. What holds for a key is what \`settingsFor\` says, and how many fill
  -- it what \`mostLive\` says.
  CREATE FUNCTION job_of_full_key(p_limit text, p_key text) RETURNS uuid LANGUAGE plpgsql AS $$
  DECLARE
    concurrency int;
    most int;
    live_jobs uuid[];
  BEGIN
    SELECT (coalesce(k.operator::jsonb -> 'concurrency', l.operator::jsonb -> 'concurrency', l.code::jsonb -> 'concurrency',
      k.code::jsonb -> 'concurrency', l.code::jsonb -> 'concurrencyBefore') #>> '{}')::int INTO concurrency
    FROM (SELECT) one LEFT JOIN limit_settings l ON l.name = p_limit
    LEFT JOIN limit_keys k ON k.limit_name = p_limit AND k.key = p_key;
    IF concurrency IS NULL THEN RETURN NULL; END IF;
    most := greatest(1, concurrency);
    live_jobs := ARRAY (
      SELECT w.id FROM limit_partitions b JOIN live w ON ${lookUp('w.partition', 'b.partition')} WHERE ${OF_KEY}
      UNION ALL
      SELECT w.id FROM limit_slots b CROSS JOIN LATERAL unnest(b.jobs, b.runs) AS j (job, run)
      JOIN live w ON ${lookUp('w.id', 'j.job')} AND w.runs = j.run JOIN partitions p ON ${lookUp('p.id', 'w.partition')} AND p.lane = ${LANE.suspect} WHERE ${OF_KEY}
      LIMIT most);
    RETURN CASE WHEN cardinality(live_jobs) = most THEN live_jobs[1] END;
  END $$;

  -- Makes way for a job with these rules that is stored next. Null; or a live job of a full key when that keeps it from being
  -- stored. A job that is locked is being claimed or changed, and so makes no way.
  CREATE FUNCTION make_room(p_rules text) RETURNS uuid LANGUAGE plpgsql AS $$
  DECLARE
    rule record;
    full_of uuid;
    oldest uuid;
  BEGIN
    FOR rule IN
      SELECT r.one ->> 0 AS limit_name, r.one ->> 1 AS key, r.one ->> 2 = 'cancel-newest' AS refuses
      FROM (SELECT p_rules) AS g (rules) ${RULES} ORDER BY 3 DESC
    LOOP
      full_of := job_of_full_key(rule.limit_name, rule.key);
      CONTINUE WHEN full_of IS NULL;
      IF rule.refuses THEN RETURN full_of; END IF;
      SELECT w.id INTO oldest FROM limit_partitions b JOIN live w ON ${lookUp('w.partition', 'b.partition')}
      WHERE b.limit_name = rule.limit_name AND b.key = rule.key AND w.runs = 0 AND w.worker IS NULL
      ORDER BY w.seq LIMIT 1 FOR UPDATE OF w SKIP LOCKED;
      IF FOUND THEN PERFORM cancel(oldest); END IF;
    END LOOP;
    RETURN NULL;
  END $$;
`;
