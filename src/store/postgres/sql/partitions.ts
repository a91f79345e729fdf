import { BY_INDEX, FOR_GOOD, HERE, lookUp, partitionDigest } from './shared.ts';

/**
 * Of one queue, lane and priority, a claim is offered so many partitions, unless it is offered all of them: more when it
 * has many places, because each may have a single due job, and fewer when it has few, because reading and rotating them
 * costs more than their jobs do.
 */
export const MOST_CANDIDATES = 64;
export const FEWEST_CANDIDATES = 8;
const PLACES_PER_CANDIDATE = 10;
/** As SQL. */
export const candidatesFor = (limit: string): string =>
  `least(${MOST_CANDIDATES}, greatest(${FEWEST_CANDIDATES}, ${limit} / ${PLACES_PER_CANDIDATE}))`;
/** A claim is offered all partitions of its queues when there are no more than MOST_CANDIDATES and this many per queue. */
const FEW_PER_QUEUE = 8;

/** A partition without due jobs is read again after this time at the latest. */
const LONGEST_PARKING_MS = 600_000;

/** The queue, lane and priority of every partition of p_queue, found without reading all of the partitions. */
const GROUPS = `
  groups AS (
    SELECT q.queue, g.lane, g.priority FROM unnest(p_queue) AS q (queue) CROSS JOIN LATERAL (
      SELECT p.lane, p.priority FROM partitions p WHERE p.queue = q.queue ORDER BY p.lane, p.priority LIMIT 1) g
    UNION ALL
    SELECT b.queue, g.lane, g.priority FROM groups b CROSS JOIN LATERAL (
      SELECT p.lane, p.priority FROM partitions p
      WHERE p.queue = b.queue AND (p.lane, p.priority) > (b.lane, b.priority) ORDER BY p.lane, p.priority LIMIT 1) g
  )`;

/** Until when a partition is held. Two look-ups, since one with OR would read all holds. */
const heldUntil = (queue: string, resource: string): string => `
  greatest(0, (SELECT until FROM holds WHERE scope = 'queue' AND holds.name = ${queue}),
    (SELECT until FROM holds WHERE scope = 'resource' AND holds.name = ${resource}))`;

const asJson = (partitions: string): string =>
  `(SELECT json_agg(json_build_array(c.id, c.queue, c.lane, c.priority, c.resource, c.name)) FROM ${partitions})`;

/** When the first of the partitions of p_queue that are not admissible may give a job; holds without an end do not count. */
export const NEXT_ADMISSION: string = `
  WITH RECURSIVE ${GROUPS}
  SELECT min(greatest(c.admissible_at, first.due_at)) FROM groups g
  CROSS JOIN LATERAL (
    SELECT p.id, p.admissible_at FROM partitions p
    WHERE p.queue = g.queue AND p.lane = g.lane AND p.priority = g.priority
      AND p.admissible_at > store_now AND p.admissible_at < ${FOR_GOOD}
    ORDER BY p.admissible_at LIMIT 3) c
  CROSS JOIN LATERAL (
    SELECT w.due_at FROM live w WHERE w.partition = c.id AND w.worker IS NULL ORDER BY w.due_at LIMIT 1) first`;

/*
 * Partitions with a resource may be many, and most of them without due jobs. While a claim is offered all there are, it
 * simply reads them all. When there are more, those without due jobs are parked: their admissible_at is when the next of
 * their jobs falls due. No job may be left behind in a parked partition, also not by a transaction that is still open:
 *
 *   - Whoever puts a job into a partition with a resource first locks the partition's row FOR KEY SHARE, until its
 *     transaction ends, and then, in a statement of its own, takes the partition out of its parking (admit).
 *   - Whoever parks a partition locks its row FOR UPDATE, which fails while such a transaction is open, and then, in a
 *     statement of its own, reads when the next job falls due (park).
 *
 * So one of the two sees what the other did. Key share locks do not keep each other waiting, nor do they wait for an
 * update of admissible_at; parking skips locked rows and does not wait for the disk. Partitions without a resource are few
 * and are never parked.
 */
export const partitionsSql: string = `
  -- The numbers of partitions, adding those that are new.
  CREATE FUNCTION partitions_of(p_queue text[], p_lane smallint[], p_priority smallint[], p_resource text[], p_name text[])
  RETURNS TABLE (ord bigint, id bigint) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  BEGIN
    IF EXISTS (
      SELECT 1 FROM unnest(p_queue, p_lane, p_priority, p_resource, p_name) AS g (queue, lane, priority, resource, name)
      WHERE NOT EXISTS (SELECT 1 FROM partitions p WHERE p.digest = ${partitionDigest('g.')}))
    THEN
      -- A hold that is being made must see these partitions, or they must see the hold.
      LOCK TABLE holds IN SHARE MODE;
      INSERT INTO partitions (queue, lane, priority, resource, name, held_until, admissible_at)
      SELECT g.*, h.until, h.until
      FROM unnest(p_queue, p_lane, p_priority, p_resource, p_name) AS g (queue, lane, priority, resource, name),
        LATERAL (SELECT ${heldUntil('g.queue', 'g.resource')} AS until OFFSET 0) h
      ORDER BY ${partitionDigest('g.')}
      ON CONFLICT DO NOTHING;
    END IF;
    RETURN QUERY
    SELECT g.ord, p.id FROM unnest(p_queue, p_lane, p_priority, p_resource, p_name) WITH ORDINALITY
        AS g (queue, lane, priority, resource, name, ord)
      JOIN partitions p ON ${lookUp('p.digest', partitionDigest('g.'))};
  END $$;

  /*
   * The partitions that the next claim of these queues should read, as JSON: whether these are all, and then each of them.
   * When they are not, those are offered that are admissible, of each queue, lane and priority the least recently served
   * ones, as many as a claim of p_limit places should read. Null when all were known to the caller: p_known, by number.
   */
  CREATE FUNCTION candidates(p_queue text[], p_known bigint[], p_limit int) RETURNS text LANGUAGE plpgsql AS $$
  DECLARE
    most int := ${MOST_CANDIDATES} + ${FEW_PER_QUEUE} * cardinality(p_queue);
    found bigint[] := ARRAY (
      SELECT f.id FROM (SELECT p.id FROM partitions p WHERE p.queue = ANY (p_queue) LIMIT most + 1) f ORDER BY f.id);
    store_now bigint;
  BEGIN
    IF cardinality(found) <= most THEN
      IF found = p_known THEN RETURN NULL; END IF;
      RETURN json_build_array(true, ${asJson(`unnest(found) AS f (id) JOIN partitions c ON ${lookUp('c.id', 'f.id')}`)});
    END IF;
    store_now := now_ms();
    RETURN (WITH RECURSIVE ${GROUPS} SELECT json_build_array(false, ${asJson(`groups g CROSS JOIN LATERAL (
      SELECT p.* FROM partitions p
      WHERE p.queue = g.queue AND p.lane = g.lane AND p.priority = g.priority
        AND p.admissible_at <= store_now
      ORDER BY p.admissible_at LIMIT ${candidatesFor('p_limit')}) c`)}));
  END $$;

  -- Before the transaction that puts jobs into these partitions, which have a resource, ends.
  CREATE FUNCTION admit(p_partition bigint[]) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE store_now bigint := now_ms();
  BEGIN
    PERFORM 1 FROM partitions WHERE id = ANY (p_partition) ORDER BY id FOR KEY SHARE;
    -- A row that another transaction is changing is being taken out of its parking by that one.
    UPDATE partitions SET admissible_at = greatest(held_until, store_now) WHERE id IN (
      SELECT p.id FROM partitions p
      WHERE p.id = ANY (p_partition) AND p.admissible_at > greatest(p.held_until, store_now)
      FOR NO KEY UPDATE SKIP LOCKED);
  END $$;

  -- Parks those of these partitions that have no due job. Answers which ones the next claim should read.
  CREATE FUNCTION park(p_partition bigint[], p_queue text[], p_limit int) RETURNS text LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    locked bigint[];
    store_now bigint;
  BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    locked := ARRAY (SELECT id FROM partitions WHERE id = ANY (p_partition) ORDER BY id FOR UPDATE SKIP LOCKED);
    store_now := now_ms();
    UPDATE partitions p
    SET admissible_at = greatest(p.held_until, least(store_now + ${LONGEST_PARKING_MS}, n.due_at))
    FROM (
      SELECT g.id, (SELECT w.due_at FROM live w WHERE w.partition = g.id AND w.worker IS NULL
        ORDER BY w.due_at LIMIT 1) AS due_at
      FROM unnest(locked) AS g (id) OFFSET 0
    ) n
    WHERE ${lookUp('p.id', 'n.id')} AND (n.due_at IS NULL OR n.due_at > store_now);
    RETURN candidates(p_queue, NULL, p_limit);
  END $$;

  -- Makes, changes or (p_until is null) takes away a hold. Answers whether there was one before.
  CREATE FUNCTION hold(p_scope text, p_name text, p_until bigint) RETURNS boolean LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE was_held boolean;
  BEGIN
    LOCK TABLE holds IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM holds WHERE scope = p_scope AND name = p_name;
    was_held := FOUND;
    IF p_until IS NOT NULL THEN INSERT INTO holds VALUES (p_scope, p_name, p_until); END IF;
    UPDATE partitions p SET held_until = h.until, admissible_at = h.until
    FROM (
      SELECT m.id, ${heldUntil('m.queue', 'm.resource')} AS until
      FROM (
        SELECT * FROM partitions WHERE p_scope = 'queue' AND queue = p_name
        UNION ALL SELECT * FROM partitions WHERE p_scope = 'resource' AND resource = p_name AND resource <> ''
      ) m ORDER BY m.id OFFSET 0
    ) h
    WHERE ${lookUp('p.id', 'h.id')};
    RETURN was_held;
  END $$;
`;
