import { admissionOf, keepGates } from './gates.ts';
import {
  BY_INDEX,
  FOR_GOOD,
  FULL,
  HERE,
  isApart,
  isLimited,
  isOfResource,
  limitKeys,
  limitNames,
  lookUp,
  partitionDigest,
  resourceStart,
} from './shared.ts';

/*
 * A claim is always offered all partitions of its queues without a resource: they are as few as queues, priorities and job
 * names are. Those with a resource may be many.
 */

/** Of one queue, lane, priority and line, a claim is offered at most so many partitions with a resource, unless these are few. */
export const MOST_CANDIDATES = 64;
/** A claim is offered all of them when there are no more than MOST_CANDIDATES and this many per queue. */
const FEW_PER_QUEUE = 8;
const FEW = `${MOST_CANDIDATES} + ${FEW_PER_QUEUE} * cardinality(p_read)`;

/** All partitions of p_read; of those with a resource no more than one beyond what is few. */
const PLAIN = `SELECT p.id FROM partitions p WHERE p.queue = ANY (p_read) AND p.resource = ''`;
const KEYED = `SELECT p.id FROM partitions p WHERE p.queue = ANY (p_read) AND p.resource <> '' LIMIT ${FEW} + 1`;
export const FOUND_PARTITIONS: string = `${PLAIN} UNION ALL (${KEYED})`;

/** A partition without due jobs is read again after this time at the latest. */
export const LONGEST_PARKING_MS = 600_000;
/** While a strict transaction is open that parking cannot see. */
export const SHORT_PARKING_MS = 1_000;

/** The lock of strict transactions, as arguments. */
const STRICT = `hashtext(current_schema()), hashtext('mulligan: strict transactions')`;
const IS_STRICT = `current_setting('transaction_isolation') IN ('repeatable read', 'serializable')`;

/** The queue, lane, priority and line of every such partition p of p_read, found without reading all of them. */
export const tiersOf = (condition: string): string => `
  tiers AS (
    SELECT q.queue, g.lane, g.priority, g.line FROM unnest(p_read) AS q (queue) CROSS JOIN LATERAL (
      SELECT p.lane, p.priority, p.line FROM partitions p WHERE p.queue = q.queue AND ${condition}
      ORDER BY p.lane, p.priority, p.line LIMIT 1) g
    UNION ALL
    SELECT b.queue, g.lane, g.priority, g.line FROM tiers b CROSS JOIN LATERAL (
      SELECT p.lane, p.priority, p.line FROM partitions p
      WHERE p.queue = b.queue AND ${condition} AND (p.lane, p.priority, p.line) > (b.lane, b.priority, b.line)
      ORDER BY p.lane, p.priority, p.line LIMIT 1) g
  )`;
/** The partitions p of the tier g. */
export const OF_TIER = 'p.queue = g.queue AND p.lane = g.lane AND p.priority = g.priority AND p.line = g.line';
const TIERS = tiersOf("p.resource <> ''");

/** For ordinary claims, or for the gated claims that a claim names. One whose key has no room stays parked, whatever is put into it. */
const IS_PARKED = `(p.admissible_at > greatest(p.held_until, store_now) AND p.admissible_at < ${FULL}
    OR p.gated_at > greatest(p.gate_at, store_now))`;

/** The partitions p that may be many, and so are parked and take turns in the database. */
const ARE_MANY = `(p.resource <> '' OR ${isLimited('p.queue')})`;

/** The partition p that was given as g. */
const IS_GIVEN = `${lookUp(resourceStart('p.resource'), resourceStart('g.resource'))}
  AND ${lookUp('p.digest', partitionDigest('g.'))}`;

const asJson = (partitions: string): string =>
  `(SELECT json_agg(json_build_array(c.id, c.queue, c.lane, c.priority, c.resource, c.name)) FROM ${partitions})`;

/** When the first of these partitions that is not admissible may give a job; holds without an end do not count. */
export const NEXT_ADMISSION: string = `
  WITH RECURSIVE ${TIERS}
  SELECT min(greatest(c.admissible_at, first.due_at)) FROM tiers g
  CROSS JOIN LATERAL (
    SELECT p.id, p.admissible_at FROM partitions p
    WHERE ${OF_TIER} AND p.resource <> ''
      AND p.admissible_at > store_now AND p.admissible_at < ${FOR_GOOD}
    ORDER BY p.admissible_at LIMIT 3) c
  CROSS JOIN LATERAL (
    SELECT w.due_at FROM live w WHERE w.partition = c.id AND w.worker IS NULL ORDER BY w.due_at LIMIT 1) first`;

/*
 * Partitions with a resource may be many, and most of them without due jobs. While a claim is offered all there are, it
 * simply reads them all. When there are more, those without due jobs are parked: their admissible_at is when the next of
 * their jobs falls due. Pruning deletes those without any job (prune_partitions). No job may be left behind in a parked
 * partition, nor point at a deleted one, also not by a transaction that is still open:
 *
 *   - A transaction that puts a job into a partition with a resource first locks the partition's row FOR KEY SHARE, until
 *     it ends, and then, in a new statement, takes the partition out of its parking (admit). When a row is gone the
 *     transaction writes nothing and says so, and its process looks up the number again.
 *   - A transaction that parks or deletes a partition locks its row FOR UPDATE, which fails while such a transaction is
 *     open, and then, in a new statement, reads which jobs wait in it.
 *
 * So one of the two sees what the other did. Key share locks do not keep each other waiting, nor do they wait for an
 * update of admissible_at; parking and pruning skip locked rows. Partitions without a resource are few, and are neither
 * parked nor deleted, unless they are for jobs aside: those are deleted. Those behind limits are treated as those with a resource. Gated partitions are parked in the same way, in gated_at (gated_names in claim-gated.ts).
 *
 * A caller's transaction may stay open for long and may be rolled back, and an error would abort it. So it only locks
 * (is_admitted). When a partition is parked or gone, the call answers that instead of an error, the process looks up the
 * partitions and admits them on a connection of its own, and calls again.
 *
 * A transaction of a strict isolation (REPEATABLE READ, SERIALIZABLE) cannot do even that: its snapshot may be older than
 * a partition, or than its parking. It takes a shared advisory lock instead, until it ends, and has all partitions of the
 * call admitted on the other connection. While that lock is held, no partition is deleted, and parking ends after a
 * second. Parking and pruning look at the lock when they have locked their rows: one that looked too early to see it still
 * has its rows locked when the other connection admits them.
 */
export const partitionsSql: string = `
  -- The numbers of partitions, adding those that are new. One that is deleted at this moment is left out.
  CREATE FUNCTION partitions_of(p_queue text[], p_lane smallint[], p_priority smallint[], p_resource text[], p_name text[])
  RETURNS TABLE (ord bigint, id bigint) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  BEGIN
    IF EXISTS (
      SELECT 1 FROM unnest(p_queue, p_lane, p_priority, p_resource, p_name) AS g (queue, lane, priority, resource, name)
      WHERE NOT EXISTS (SELECT 1 FROM partitions p WHERE ${IS_GIVEN}))
    THEN
      -- A hold or a gate that is being written must see these partitions, or they must see it.
      LOCK TABLE holds IN SHARE MODE;
      PERFORM keep_asides(p_queue);
      IF array_remove(p_resource, '') <> '{}' THEN ${keepGates('p_resource')} END IF;
      WITH made AS (
        INSERT INTO partitions (queue, lane, priority, resource, name, held_until, admissible_at, gate_at, gated_at)
        SELECT g.*, a.held_until, a.held_until, a.gate_at, a.gate_at
        FROM unnest(p_queue, p_lane, p_priority, p_resource, p_name) AS g (queue, lane, priority, resource, name),
          LATERAL (${admissionOf('g')} OFFSET 0) a
        ORDER BY ${partitionDigest('g.')}
        ON CONFLICT DO NOTHING RETURNING id, queue, name
      )
      INSERT INTO limit_partitions (limit_name, key, partition)
      SELECT k.limit_name, k.key, m.id FROM made m
      CROSS JOIN LATERAL ROWS FROM (json_array_elements_text(${limitNames('m.queue')}::json),
        json_array_elements_text(${limitKeys('m.name')}::json)) AS k (limit_name, key)
      WHERE ${isLimited('m.queue')};
    END IF;
    RETURN QUERY
    SELECT g.ord, p.id FROM unnest(p_queue, p_lane, p_priority, p_resource, p_name) WITH ORDINALITY
        AS g (queue, lane, priority, resource, name, ord)
      JOIN partitions p ON ${IS_GIVEN};
  END $$;

  /*
   * The partitions that the next claim of these queues should read, as JSON: whether these are all, and then each of them.
   * When those with a resource are many (p_are_many: the caller knows that), the admissible ones are offered, of each
   * queue, lane, priority and line the p_breadth least recently served.
   */
  CREATE FUNCTION candidates(p_read text[], p_breadth int, p_are_many boolean) RETURNS text LANGUAGE plpgsql AS $$
  DECLARE
    found bigint[];
    store_now bigint;
  BEGIN
    IF NOT p_are_many THEN
      found := ARRAY (${FOUND_PARTITIONS});
      IF cardinality(found) - (SELECT count(*) FROM (${PLAIN}) p) <= ${FEW} THEN
        RETURN json_build_array(true, ${asJson(`unnest(found) AS f (id) JOIN partitions c ON ${lookUp('c.id', 'f.id')}`)});
      END IF;
    END IF;
    store_now := now_ms();
    RETURN (WITH RECURSIVE ${TIERS}, offered AS (
      SELECT p.* FROM partitions p WHERE p.queue = ANY (p_read) AND p.resource = ''
      UNION ALL
      SELECT c.* FROM tiers g CROSS JOIN LATERAL (
        SELECT p.* FROM partitions p
        WHERE ${OF_TIER} AND p.resource <> ''
          AND p.admissible_at <= store_now
        ORDER BY p.admissible_at LIMIT p_breadth) c
    ) SELECT json_build_array(false, ${asJson('offered c')}));
  END $$;

  -- Keeps these partitions, each given once, from being parked or deleted. False when one of them is gone.
  CREATE FUNCTION keep(p_partition bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    RETURN cardinality(p_partition) =
      (SELECT count(*) FROM (SELECT 1 FROM partitions WHERE id = ANY (p_partition) ORDER BY id FOR KEY SHARE) k);
  END $$;

  -- Before jobs are put into these partitions, which have a resource. False when one of them is gone.
  CREATE FUNCTION admit(p_partition bigint[]) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE store_now bigint := now_ms();
  BEGIN
    IF NOT keep(p_partition) THEN RETURN false; END IF;
    -- Waits for another transaction that is doing the same, since that one may be rolled back.
    UPDATE partitions SET admissible_at = least(admissible_at, greatest(held_until, store_now)), gated_at = gate_at
    WHERE id IN (SELECT p.id FROM partitions p WHERE p.id = ANY (p_partition) AND ${IS_PARKED} ORDER BY p.id FOR NO KEY UPDATE);
    RETURN true;
  END $$;

  -- The same, for jobs that a caller's transaction then puts into them.
  CREATE FUNCTION admit_for_caller(p_partition bigint[]) RETURNS boolean LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  BEGIN
    RETURN admit(p_partition);
  END $$;

  -- In a caller's transaction: whether jobs may be put into these partitions. p_admitted: admit_for_caller was just called.
  CREATE FUNCTION is_admitted(p_partition bigint[], p_admitted boolean) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE store_now bigint := now_ms();
  BEGIN
    IF ${IS_STRICT} THEN
      PERFORM pg_advisory_xact_lock_shared(${STRICT});
      RETURN p_admitted;
    END IF;
    RETURN keep(p_partition) AND NOT EXISTS (SELECT 1 FROM partitions p WHERE p.id = ANY (p_partition) AND ${IS_PARKED});
  END $$;

  -- Whether a strict transaction is open that put jobs into partitions with a resource. Never waits.
  CREATE FUNCTION has_strict() RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    IF ${IS_STRICT} OR NOT pg_try_advisory_lock(${STRICT}) THEN RETURN true; END IF;
    PERFORM pg_advisory_unlock(${STRICT});
    RETURN false;
  END $$;

  -- Of the next p_limit partitions after p_after, deletes those without a job that have a resource, or are for jobs aside or behind limits,
  -- and stops after p_ms.
  -- Answers the last one that it looked at; 0 when it has reached the end.
  CREATE FUNCTION prune_partitions(p_after bigint, p_limit int, p_ms double precision) RETURNS bigint
  LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    began timestamptz := clock_timestamp();
    one record;
    seen int := 0;
    reached bigint := 0;
    empty bigint[] := '{}';
  BEGIN
    FOR one IN SELECT p.id, p.resource, p.queue FROM partitions p WHERE p.id > p_after ORDER BY p.id LIMIT p_limit LOOP
      IF (one.resource <> '' OR ${isApart('one.queue')}) AND NOT EXISTS (SELECT 1 FROM live l WHERE l.partition = one.id) THEN
        empty := empty || one.id;
      END IF;
      seen := seen + 1;
      reached := one.id;
      EXIT WHEN extract(epoch FROM clock_timestamp() - began) * 1000 > p_ms;
    END LOOP;
    empty := ARRAY (SELECT p.id FROM partitions p WHERE p.id = ANY (empty) ORDER BY p.id FOR UPDATE SKIP LOCKED);
    IF cardinality(empty) > 0 THEN
      -- With the locks, and in a new statement: what is there now is all that will be.
      IF has_strict() THEN RETURN p_after; END IF;
      DELETE FROM partitions p USING unnest(empty) AS g (id)
      WHERE ${lookUp('p.id', 'g.id')} AND NOT EXISTS (SELECT 1 FROM live l WHERE l.partition = g.id);
    END IF;
    PERFORM prune_asides();
    RETURN CASE WHEN seen = p_limit OR extract(epoch FROM clock_timestamp() - began) * 1000 > p_ms THEN reached ELSE 0 END;
  END $$;

  /*
   * Puts those of these partitions that may be many behind the others, and parks those that are empty: as far as the
   * caller knows no job is due in them. One that a transaction is putting a job into is not parked, and passes its turn on.
   */
  CREATE FUNCTION pass_on(p_partition bigint[], p_is_empty boolean[]) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    locked bigint[] := ARRAY (
      SELECT p.id FROM unnest(p_partition, p_is_empty) AS g (id, is_empty) JOIN partitions p ON ${lookUp('p.id', 'g.id')}
      WHERE g.is_empty AND ${ARE_MANY} FOR UPDATE OF p SKIP LOCKED);
    longest bigint := CASE WHEN cardinality(locked) = 0 THEN 0
      WHEN has_strict() THEN ${SHORT_PARKING_MS} ELSE ${LONGEST_PARKING_MS} END;
    store_now bigint := now_ms();
  BEGIN
    UPDATE partitions p SET admissible_at = greatest(p.held_until, store_now, n.parked_until)
    FROM (
      SELECT p.id, CASE WHEN p.id = ANY (locked) THEN least(store_now + longest, (
        SELECT w.due_at FROM live w WHERE w.partition = p.id AND w.worker IS NULL ORDER BY w.due_at LIMIT 1)) END AS parked_until
      FROM unnest(p_partition) AS g (id) JOIN partitions p ON ${lookUp('p.id', 'g.id')}
      WHERE ${ARE_MANY} FOR NO KEY UPDATE OF p SKIP LOCKED
    ) n
    WHERE ${lookUp('p.id', 'n.id')};
  END $$;

  -- Makes, changes or (p_until is null) takes away a hold. Answers whether there was one before.
  CREATE FUNCTION hold(p_scope text, p_name text, p_until bigint) RETURNS boolean LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    was_held boolean;
    concerned bigint[];
  BEGIN
    LOCK TABLE holds IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM holds WHERE scope = p_scope AND name = p_name;
    was_held := FOUND;
    IF p_until IS NOT NULL THEN INSERT INTO holds VALUES (p_scope, p_name, p_until); END IF;
    concerned := ARRAY (
      SELECT p.id FROM partitions p WHERE p_scope = 'queue' AND p.queue = p_name
      UNION ALL SELECT p.id FROM asides a JOIN partitions p ON ${lookUp('p.queue', 'a.aside')}
        WHERE p_scope = 'queue' AND a.queue = p_name
      UNION ALL SELECT p.id FROM limited_queues q JOIN partitions p ON ${lookUp('p.queue', 'q.under')}
        WHERE p_scope = 'queue' AND q.queue = p_name
      UNION ALL SELECT p.id FROM partitions p WHERE p_scope = 'resource' AND ${isOfResource('p_name')});
    ${keepGates(`ARRAY (SELECT p.resource FROM unnest(concerned) AS g (id) JOIN partitions p ON ${lookUp('p.id', 'g.id')})`)}
    UPDATE partitions p SET held_until = a.held_until, admissible_at = a.held_until, gate_at = a.gate_at, gated_at = a.gate_at
    FROM (
      SELECT m.id, a.* FROM unnest(concerned) AS g (id) JOIN partitions m ON ${lookUp('m.id', 'g.id')}
      CROSS JOIN LATERAL (${admissionOf('m')}) a ORDER BY m.id OFFSET 0
    ) a
    WHERE ${lookUp('p.id', 'a.id')};
    RETURN was_held;
  END $$;
`;
