import { BY_INDEX, FOR_GOOD, FULL, HERE, LANE, lookUp } from './shared.ts';

/*
 * What limits allow is worked out in TypeScript (src/limit/, limit-rooms.ts), so a claim is two calls: one reads how much of
 * each key is in use, and one takes as many jobs as there is room for, if there still is by then (`stale_uses`). The
 * second takes an advisory lock per limit, so that two claims do not fill the same room; what a process does between its
 * two calls, or that it never makes the second, concerns no other process.
 *
 * Use is never a counter. The jobs that a claim takes of a partition are in one row of limit_slots per key. Each of them counts as long as
 * the job in `live` says so (HOLDERS), so nothing drifts when an older version ends a run and leaves the row.
 *
 * A partition whose key has no room is parked (FULL in shared.ts) and marked in limit_partitions, and the end of a run, or
 * whatever else makes room, wakes a few of those that its key has (`wake_blocked`). A claim that leaves room wakes more of
 * them, should those that were woken have had no use for it. No partition must be parked while its key gets room:
 *
 *   - A transaction that makes room locks the slots concerned FOR UPDATE until it ends, and then, in a new statement, looks
 *     for parked partitions.
 *   - A transaction that parks locks the slots of the key FOR KEY SHARE, and counts those that it could lock at once: when
 *     these do not fill the key, it does not park.
 *
 * So one of the two sees what the other did. Jobs are locked before slots; claims wait for neither. An older version wakes
 * none, so a parked partition is read again after RECHECK_MS at the latest.
 */

export const RECHECK_MS = 60_000;
/** So many partitions of a key are woken for each place that was freed: some of them may have no use for it. */
export const WOKEN_PER_PLACE = 4;

export const GIVEN_USES = `json_to_recordset(p_uses) AS u (ord int, limit_name text, key text, takes boolean, version bigint, holding int,
  most_holding int, most_holding_retries int, most_total int, next double precision, keeps_turn boolean, spacing double precision)`;

const KEY_OF = (table: string, other: string): string =>
  `${lookUp(`${table}.limit_name`, `${other}.limit_name`)} AND ${lookUp(`${table}.key`, `${other}.key`)}`;

const laneOf = (job: string): string => `(SELECT p.lane FROM partitions p WHERE p.id = ${job}.partition)`;
/** The job `w` of the slot `s` has run, waits to run again, and keeps its turn. */
const KEEPS_TURN = `(w.worker IS NULL AND CASE ${laneOf('w')} WHEN ${LANE.suspect} THEN true WHEN ${LANE.retry} THEN s.keeps_turn ELSE false END)`;
const IS_SUSPECT = `(w.worker IS NULL AND ${laneOf('w')} = ${LANE.suspect})`;
/** The jobs `w` of the slots `s` that count. */
const HOLDERS = `CROSS JOIN LATERAL unnest(s.jobs, s.runs) AS j (job, run) JOIN live w ON ${lookUp('w.id', 'j.job')} AND w.runs = j.run`;
/** No job of the slots `s` counts any more. */
const IS_EMPTY = `NOT EXISTS (
      SELECT 1 FROM unnest(s.jobs, s.runs) AS j (job, run) JOIN live w ON w.id = j.job AND w.runs = j.run
      WHERE w.worker IS NOT NULL OR ${KEEPS_TURN})`;

/** How many hold a key, as far as jobs of a lane are concerned: see `roomOf`. */
export const holdersFor = (lane: string): string =>
  `count(*) FILTER (WHERE w.worker IS NOT NULL OR CASE ${lane} WHEN ${LANE.retry} THEN ${IS_SUSPECT} ELSE ${KEEPS_TURN} END)`;

const usedOf = (key: string): string => `
  SELECT count(*) FILTER (WHERE w.worker IS NOT NULL) AS running, count(*) FILTER (WHERE ${KEEPS_TURN}) AS waiting,
    count(*) FILTER (WHERE ${IS_SUSPECT}) AS suspects
  FROM limit_slots s ${HOLDERS} WHERE s.limit_name = ${key}.limit_name AND s.key = ${key}.key`;
const totalOf = (limit: string): string => `
  SELECT count(*) FROM limit_slots s ${HOLDERS}
  WHERE s.limit_name = ${limit} AND (w.worker IS NOT NULL OR ${laneOf('w')} = ${LANE.suspect})`;

/** Slots of a key that no transaction is about to free, and their jobs. */
export const STEADY_HOLDERS: string = `(
  SELECT s.jobs, s.runs, s.keeps_turn FROM limit_slots s WHERE s.limit_name = u.limit_name AND s.key = u.key FOR KEY SHARE SKIP LOCKED
) s ${HOLDERS}`;

/** In one order, so that no two calls wait for each other. */
const LOCK = (limits: string): string => `
    PERFORM pg_advisory_xact_lock(hashtext(current_schema()), g.lock) FROM (
      SELECT DISTINCT hashtext('mulligan: limit ' || limit_name) AS lock FROM ${limits} ORDER BY 1) g;`;

/** Takes these partitions out of their parking. */
const wake = (ids: string): string => `
    UPDATE partitions p SET admissible_at = greatest(p.held_until, store_now)
    FROM (
      SELECT p.id FROM (${ids}) g JOIN partitions p ON ${lookUp('p.id', 'g.id')}
      WHERE p.admissible_at > greatest(p.held_until, store_now) AND p.admissible_at < ${FOR_GOOD}
      FOR NO KEY UPDATE OF p SKIP LOCKED
    ) n WHERE ${lookUp('p.id', 'n.id')};`;

export const limitsSql: string = `
  -- How much of these keys is in use, as JSON: of each limit its name, version, rules and total (null when no rule asks for
  -- it), and of each key its limit, itself, its rules, how many run, how many keep their turn, how many of
  -- these are suspects, and its rate.
  CREATE FUNCTION read_uses(p_limit text[], p_key text[], OUT settings text, OUT uses text) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  BEGIN
    settings := (
      SELECT json_agg(json_build_array(l.name, l.version, l.code, l.operator, CASE WHEN l.has_total THEN (${totalOf('l.name')}) END))
      FROM (SELECT DISTINCT g.name FROM unnest(p_limit) AS g (name)) g JOIN limit_settings l ON ${lookUp('l.name', 'g.name')});
    uses := (
      SELECT json_agg(json_build_array(g.limit_name, g.key, k.code, k.operator, u.running, u.waiting, u.suspects, coalesce(k.next_start_at, 0)))
      FROM unnest(p_limit, p_key) AS g (limit_name, key) LEFT JOIN limit_keys k ON ${KEY_OF('k', 'g')}
      CROSS JOIN LATERAL (${usedOf('g')}) u);
  END $$;

  -- One claim at a time of the limits of these uses.
  CREATE FUNCTION lock_limits(p_uses json) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    ${LOCK(`${GIVEN_USES} WHERE u.takes`)}
    -- Hand-backs change these without the lock.
    PERFORM 1 FROM ${GIVEN_USES} JOIN limit_keys k ON ${KEY_OF('k', 'u')}
    WHERE u.takes AND u.spacing > 0 ORDER BY k.limit_name, k.key FOR UPDATE OF k;
  END $$;

  -- Which of these uses, with the lock, no longer have the room that they had: too much is in use, or the rules are other ones.
  CREATE FUNCTION stale_uses(p_uses json) RETURNS int[] LANGUAGE plpgsql AS $$
  BEGIN
    RETURN ARRAY (
      SELECT u.ord FROM ${GIVEN_USES}
      LEFT JOIN limit_settings l ON ${lookUp('l.name', 'u.limit_name')} LEFT JOIN limit_keys k ON ${KEY_OF('k', 'u')}
      CROSS JOIN LATERAL (${usedOf('u')}) n
      WHERE u.takes AND (coalesce(l.version, 0) <> u.version OR n.running + n.waiting > u.most_holding
        OR n.running + n.suspects > u.most_holding_retries
        OR abs(coalesce(k.next_start_at, 0) - u.next) > 0.01)
      UNION ALL
      -- What all keys of a limit have in use is counted once.
      SELECT u.ord FROM ${GIVEN_USES} JOIN (
        SELECT g.limit_name, (${totalOf('g.limit_name')}) AS total
        FROM (SELECT DISTINCT u.limit_name FROM ${GIVEN_USES} WHERE u.takes AND u.most_total IS NOT NULL) g OFFSET 0
      ) n ON n.limit_name = u.limit_name
      WHERE u.takes AND n.total > u.most_total);
  END $$;

  -- These jobs, each of a partition at the position p_of, have started: p_uses_of has the uses of each partition, an array literal.
  CREATE FUNCTION fill_slots(p_uses json, p_uses_of text[], p_job uuid[], p_run int[], p_of int[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    -- Where they kept their turn until now.
    DELETE FROM limit_slots s USING (SELECT u.limit_name, u.key FROM ${GIVEN_USES} WHERE u.takes AND u.holding > 0) u
    WHERE ${KEY_OF('s', 'u')} AND s.keeps_turn AND s.jobs && p_job;
    INSERT INTO limit_slots (limit_name, key, jobs, runs, keeps_turn, spacing)
    SELECT u.limit_name, u.key, t.jobs, t.runs, u.keeps_turn, u.spacing
    FROM (
      -- Those that will end last come first: so it takes one look-up to see that a row is not empty.
      SELECT t.given, array_agg(t.job ORDER BY t.ord DESC) AS jobs, array_agg(t.run ORDER BY t.ord DESC) AS runs
      FROM unnest(p_job, p_run, p_of) WITH ORDINALITY AS t (job, run, given, ord) GROUP BY 1 OFFSET 0
    ) t CROSS JOIN LATERAL unnest(p_uses_of[t.given]::int[]) AS o (ord) JOIN ${GIVEN_USES} ON u.ord = o.ord;
    INSERT INTO limit_keys (limit_name, key, next_start_at)
    -- As \`afterStarts\` says, by the time that the jobs have as that of their claim.
    SELECT u.limit_name, u.key, greatest(u.next, p_now) + sum(t.starts) * u.spacing
    FROM (SELECT t.given, count(*) AS starts FROM unnest(p_of) AS t (given) GROUP BY 1 OFFSET 0) t
    CROSS JOIN LATERAL unnest(p_uses_of[t.given]::int[]) AS o (ord) JOIN ${GIVEN_USES} ON u.ord = o.ord
    WHERE u.spacing > 0 GROUP BY u.limit_name, u.key, u.next, u.spacing ORDER BY u.limit_name, u.key
    ON CONFLICT (limit_name, key) DO UPDATE SET next_start_at = excluded.next_start_at;
  END $$;

  -- How far apart the starts of a key are by the rate that holds, 0 without one: see \`settingsFor\` and \`spaceOf\`.
  CREATE FUNCTION space_of(p_limit text, p_key text) RETURNS double precision LANGUAGE sql STABLE AS $$
    SELECT coalesce((
      SELECT greatest((r.rule -> 'rate' ->> 'perMs')::double precision, 1)
        / greatest((r.rule -> 'rate' ->> 'limit')::double precision - (r.rule -> 'rate' ->> 'burst')::double precision + 1, 1)
      FROM (
        SELECT 1 AS ord, operator::jsonb AS rule FROM limit_keys WHERE limit_name = p_limit AND key = p_key
        UNION ALL SELECT 2, operator::jsonb FROM limit_settings WHERE name = p_limit
        UNION ALL SELECT 3, code::jsonb FROM limit_keys WHERE limit_name = p_limit AND key = p_key
        UNION ALL SELECT 4, code::jsonb FROM limit_settings WHERE name = p_limit
      ) r
      WHERE r.rule ? 'rate' ORDER BY r.ord LIMIT 1), 0)
  $$;

  -- Jobs that an ordinary claim has started count in their limits, too: p_behind has their positions and limits, as JSON.
  CREATE FUNCTION fill_trial_slots(p_behind text, p_job uuid[], p_run int[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO limit_slots (limit_name, key, jobs, runs, keeps_turn, spacing)
    SELECT b.limit_name, b.key, ARRAY[b.job], ARRAY[b.run], coalesce(s.keeps_turn, false), space_of(b.limit_name, b.key)
    FROM (
      SELECT l.one ->> 0 AS limit_name, l.one ->> 1 AS key, p_job[(t.one ->> 0)::int] AS job, p_run[(t.one ->> 0)::int] AS run
      FROM json_array_elements(p_behind::json) AS t (one) CROSS JOIN LATERAL json_array_elements((t.one ->> 1)::json) AS l (one)
    ) b
    LEFT JOIN LATERAL (
      -- As at its last start.
      SELECT s.keeps_turn FROM limit_slots s
      WHERE s.limit_name = b.limit_name AND s.key = b.key AND b.job = ANY (s.jobs) ORDER BY s.id DESC LIMIT 1
    ) s ON true;
    INSERT INTO limit_keys AS k (limit_name, key, next_start_at)
    SELECT s.limit_name, s.key, p_now + sum(s.spacing)
    FROM json_array_elements(p_behind::json) AS t (one) CROSS JOIN LATERAL json_array_elements((t.one ->> 1)::json) AS l (one)
    JOIN limit_slots s ON s.limit_name = l.one ->> 0 AND s.key = l.one ->> 1
      AND s.jobs = ARRAY[p_job[(t.one ->> 0)::int]] AND s.runs = ARRAY[p_run[(t.one ->> 0)::int]]
    GROUP BY 1, 2 HAVING sum(s.spacing) > 0 ORDER BY 1, 2
    ON CONFLICT (limit_name, key) DO UPDATE SET next_start_at = greatest(k.next_start_at, p_now) + excluded.next_start_at - p_now;
    DELETE FROM limit_slots s USING json_array_elements(p_behind::json) AS t (one), json_array_elements((t.one ->> 1)::json) AS l (one)
    WHERE s.limit_name = l.one ->> 0 AND s.key = l.one ->> 1 AND s.jobs && p_job AND ${IS_EMPTY};
  END $$;

  -- Wakes up to p_most parked partitions of each of these keys, those first that were parked first; with p_for_place only those
  -- that wait for a place, not for a time. False when there are none.
  CREATE FUNCTION wake_blocked(p_limit text[], p_key text[], p_most int[], p_for_place boolean) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE
    store_now bigint := now_ms();
    blocked bigint[];
    of_limit text[];
  BEGIN
    SELECT array_agg(b.partition), array_agg(b.limit_name) INTO blocked, of_limit
    FROM unnest(p_limit, p_key, p_most) AS g (limit_name, key, most) CROSS JOIN LATERAL (
      SELECT b.partition, b.limit_name FROM limit_partitions b
      WHERE b.limit_name = g.limit_name AND b.key = g.key AND b.blocked_at IS NOT NULL
        AND (NOT p_for_place OR EXISTS (SELECT 1 FROM partitions p WHERE p.id = b.partition AND p.admissible_at >= ${FULL}))
      ORDER BY b.blocked_at LIMIT g.most FOR UPDATE SKIP LOCKED) b;
    IF blocked IS NULL THEN RETURN false; END IF;
    UPDATE limit_partitions b SET blocked_at = NULL FROM unnest(blocked, of_limit) AS g (id, limit_name)
    WHERE ${lookUp('b.partition', 'g.id')} AND b.limit_name = g.limit_name;
    ${wake('SELECT DISTINCT id FROM unnest(blocked) AS b (id)')}
    RETURN true;
  END $$;

  -- These jobs, each with one of its limits and keys, no longer run, or no longer wait. Those that were handed back give their
  -- start back, as \`afterHandedBack\` says. Answers whether partitions were woken, or may now be served.
  CREATE FUNCTION free_slots(p_job uuid[], p_limit text[], p_key text[], p_handed_back uuid[]) RETURNS boolean LANGUAGE plpgsql AS $$
  #variable_conflict use_column
  DECLARE
    names text[];
    keys text[];
    places int[];
    turns boolean[];
    slots bigint[];
    woken boolean;
    store_now bigint := now_ms();
  BEGIN
    SELECT array_agg(f.limit_name), array_agg(f.key), array_agg(f.places), array_agg(f.turns), array_agg(f.id)
    INTO names, keys, places, turns, slots FROM (
      SELECT s.limit_name, s.key, s.id, s.keeps_turn AS turns, (
        SELECT count(*)::int FROM unnest(s.jobs) AS j (job) WHERE j.job = ANY (g.jobs)) AS places
      FROM (
        SELECT g.limit_name, g.key, array_agg(g.job) AS jobs FROM unnest(p_job, p_limit, p_key) AS g (job, limit_name, key) GROUP BY 1, 2 OFFSET 0
      ) g JOIN limit_slots s ON ${KEY_OF('s', 'g')} AND s.jobs && g.jobs
      ORDER BY s.id FOR UPDATE OF s) f;
    IF names IS NULL THEN RETURN false; END IF;
    IF p_handed_back <> '{}' THEN
      PERFORM 1 FROM unnest(names, keys) AS g (limit_name, key) JOIN limit_keys k ON ${KEY_OF('k', 'g')}
      ORDER BY k.limit_name, k.key FOR UPDATE OF k;
      UPDATE limit_keys k SET next_start_at = k.next_start_at - n.spacing
      FROM (
        SELECT s.limit_name, s.key, sum(greatest(0, s.spacing - (store_now - w.claimed_at))) AS spacing
        FROM unnest(slots) AS g (id) JOIN limit_slots s ON ${lookUp('s.id', 'g.id')} ${HOLDERS}
        WHERE w.id = ANY (p_handed_back) GROUP BY 1, 2 OFFSET 0
      ) n
      WHERE ${KEY_OF('k', 'n')};
    END IF;
    DELETE FROM limit_slots s USING unnest(slots) AS g (id) WHERE ${lookUp('s.id', 'g.id')} AND ${IS_EMPTY};
    -- With the locks, and in a new statement.
    woken := (SELECT wake_blocked(array_agg(g.limit_name), array_agg(g.key), array_agg(${WOKEN_PER_PLACE} * g.places), false) FROM (
      SELECT g.limit_name, g.key, sum(g.places)::int AS places FROM unnest(names, keys, places) AS g (limit_name, key, places) GROUP BY 1, 2) g);
    -- The job that keeps the turn of such a key goes first, wherever it waits among those that are parked.
    IF true = ANY (turns) THEN
      ${wake(`
        SELECT DISTINCT w.partition AS id FROM unnest(names, keys, turns) AS g (limit_name, key, turns)
        JOIN limit_slots s ON ${KEY_OF('s', 'g')} ${HOLDERS} WHERE g.turns AND s.keeps_turn AND w.worker IS NULL`)}
      woken := woken OR FOUND;
    END IF;
    -- Partitions that only a total holds back are not parked.
    RETURN woken OR EXISTS (SELECT 1 FROM limit_settings l WHERE l.name = ANY (names) AND l.has_total);
  END $$;

  -- Moves the rate of a key on. False, and nothing is written, when it is not as it was read.
  CREATE FUNCTION take_permit(p_limit text, p_key text, p_version bigint, p_before double precision, p_after double precision)
  RETURNS boolean LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtext(current_schema()), hashtext('mulligan: limit ' || p_limit));
    INSERT INTO limit_keys (limit_name, key) VALUES (p_limit, p_key) ON CONFLICT DO NOTHING;
    UPDATE limit_keys SET next_start_at = p_after
    WHERE limit_name = p_limit AND key = p_key AND abs(next_start_at - p_before) <= 0.01
      AND p_version = coalesce((SELECT l.version FROM limit_settings l WHERE l.name = p_limit), 0);
    RETURN FOUND;
  END $$;

  -- Writes one rule, null for none, of a limit (p_key is null) or of a key. p_merge: what it leaves out stays as it was.
  -- p_has_total: it bounds the total. Answers whether it was another one before.
  CREATE FUNCTION write_limit(p_limit text, p_key text, p_is_code boolean, p_rule text, p_merge boolean, p_has_total boolean)
  RETURNS boolean LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    before text;
    rule text := p_rule;
    owing text[];
    owed double precision[];
    store_now bigint := now_ms();
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtext(current_schema()), hashtext('mulligan: limit ' || p_limit));
    IF p_key IS NULL THEN
      SELECT CASE WHEN p_is_code THEN l.code ELSE l.operator END INTO before FROM limit_settings l WHERE l.name = p_limit;
    ELSE
      SELECT CASE WHEN p_is_code THEN k.code ELSE k.operator END INTO before FROM limit_keys k
      WHERE k.limit_name = p_limit AND k.key = p_key;
    END IF;
    IF p_merge THEN rule := coalesce(before, '{}')::jsonb || p_rule::jsonb; END IF;
    IF before IS NOT DISTINCT FROM rule AND EXISTS (SELECT 1 FROM limit_settings l WHERE l.name = p_limit) THEN RETURN false; END IF;
    -- As \`afterChange\` says, for the keys whose next start lies ahead.
    IF before::jsonb -> 'rate' IS DISTINCT FROM rule::jsonb -> 'rate' THEN
      SELECT array_agg(k.key), array_agg(coalesce((k.next_start_at - store_now) / nullif(space_of(p_limit, k.key), 0), 0))
      INTO owing, owed FROM (
        -- Hand-backs change these without the lock, in this order.
        SELECT k.key, k.next_start_at FROM limit_keys k
        WHERE k.limit_name = p_limit AND (p_key IS NULL OR k.key = p_key) AND k.next_start_at > store_now
        ORDER BY k.limit_name, k.key FOR UPDATE
      ) k;
    END IF;
    INSERT INTO limit_settings (name, version, has_total) VALUES (p_limit, nextval('limit_versions'), p_has_total)
    ON CONFLICT (name) DO UPDATE SET version = excluded.version, has_total = limit_settings.has_total OR excluded.has_total;
    IF p_key IS NULL THEN
      UPDATE limit_settings l SET code = CASE WHEN p_is_code THEN rule ELSE l.code END,
        operator = CASE WHEN p_is_code THEN l.operator ELSE rule END WHERE l.name = p_limit;
    ELSE
      INSERT INTO limit_keys (limit_name, key) VALUES (p_limit, p_key) ON CONFLICT DO NOTHING;
      UPDATE limit_keys k SET code = CASE WHEN p_is_code THEN rule ELSE k.code END,
        operator = CASE WHEN p_is_code THEN k.operator ELSE rule END WHERE k.limit_name = p_limit AND k.key = p_key;
    END IF;
    UPDATE limit_keys k SET next_start_at = least(k.next_start_at, store_now + g.owed * space_of(p_limit, k.key))
    FROM unnest(owing, owed) AS g (key, owed) WHERE k.limit_name = p_limit AND ${lookUp('k.key', 'g.key')};
    -- What had no room before may have some now. With the lock: no claim parks by the old rules any more.
    PERFORM wake_blocked(array_agg(b.limit_name), array_agg(b.key), array_agg(b.count::int), false) FROM (
      SELECT b.limit_name, b.key, count(*) FROM limit_partitions b
      WHERE b.limit_name = p_limit AND (p_key IS NULL OR b.key = p_key) AND b.blocked_at IS NOT NULL GROUP BY 1, 2) b;
    RETURN true;
  END $$;

  -- Deletes up to p_limit keys whose row says nothing any more, and slots that no longer count.
  CREATE FUNCTION prune_limits(p_limit int) RETURNS void LANGUAGE plpgsql ${HERE} AS $$
  DECLARE store_now bigint := now_ms();
  BEGIN
    DELETE FROM limit_keys WHERE (limit_name, key) IN (
      SELECT k.limit_name, k.key FROM limit_keys k
      WHERE k.code IS NULL AND k.operator IS NULL AND k.next_start_at <= store_now
      ORDER BY k.next_start_at LIMIT p_limit FOR UPDATE SKIP LOCKED);
    DELETE FROM limit_slots WHERE id IN (SELECT s.id FROM limit_slots s WHERE ${IS_EMPTY} LIMIT p_limit FOR UPDATE SKIP LOCKED);
  END $$;
`;
