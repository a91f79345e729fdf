import { BY_INDEX, HERE, isAside, LANE, lookUp, queueOf } from './shared.ts';

/*
 * Jobs that wait aside: see ../../aside.ts. A partition under the queue of an `aside` is only read by claims that have found
 * the row of that in the table `asides`, so the row must not go while such a partition comes:
 *
 *   - A transaction that makes such a partition first makes the row or finds it, and locks it FOR KEY SHARE until it ends.
 *   - A transaction that deletes rows locks them FOR UPDATE, which skips those, and then, in a new statement, looks whether
 *     there are partitions.
 */
export const asideSql: string = `
  -- Makes the rows of those of these queues that are for jobs aside, and keeps them from being deleted.
  CREATE FUNCTION keep_asides(p_queue text[]) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    wanted text[] := ARRAY (
      SELECT DISTINCT g.queue FROM unnest(p_queue) AS g (queue) WHERE ${isAside('g.queue')} ORDER BY g.queue);
    kept bigint;
  BEGIN
    WHILE kept IS DISTINCT FROM cardinality(wanted) LOOP
      INSERT INTO asides (queue, aside) SELECT ${queueOf('g.queue')}, g.queue FROM unnest(wanted) AS g (queue)
      ON CONFLICT DO NOTHING;
      SELECT count(*) INTO kept FROM (
        SELECT 1 FROM asides a WHERE a.aside = ANY (wanted) ORDER BY a.id FOR KEY SHARE) k;
    END LOOP;
  END $$;

  -- Deletes rows that no partition needs any more.
  CREATE FUNCTION prune_asides() RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    unused bigint[] := ARRAY (
      SELECT a.id FROM asides a WHERE NOT EXISTS (SELECT 1 FROM partitions p WHERE ${lookUp('p.queue', 'a.aside')})
      ORDER BY a.id FOR UPDATE SKIP LOCKED);
  BEGIN
    IF unused = '{}' THEN RETURN; END IF;
    DELETE FROM asides a
    WHERE a.id = ANY (unused) AND NOT EXISTS (SELECT 1 FROM partitions p WHERE ${lookUp('p.queue', 'a.aside')});
  END $$;

  -- Lets up to p_limit jobs that have been due aside for longer than this wait among all others. Answers where.
  CREATE FUNCTION leave_aside(p_longest bigint, p_limit bigint)
  RETURNS TABLE (partition bigint, due_at bigint, seq bigint) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  #variable_conflict use_column
  DECLARE
    since bigint := now_ms() - p_longest;
    one record;
    chosen uuid[];
    home bigint;
    moved bigint := 0;
  BEGIN
    FOR one IN
      SELECT p.id, p.lane, p.priority, p.resource, a.queue, split_part(a.aside, E'\\x01', 2) AS name
      FROM asides a JOIN partitions p ON ${lookUp('p.queue', 'a.aside')}
    LOOP
      chosen := ARRAY (
        SELECT w.id FROM live w
        WHERE w.partition = one.id AND w.worker IS NULL AND w.due_at <= since AND w.available_at <= since
        ORDER BY w.due_at, w.seq LIMIT p_limit - moved FOR UPDATE SKIP LOCKED);
      CONTINUE WHEN chosen = '{}';
      LOOP
        SELECT p.id INTO home FROM partitions_of(ARRAY[one.queue], ARRAY[one.lane], ARRAY[one.priority],
          ARRAY[one.resource], ARRAY[CASE WHEN one.lane IN (${LANE.retry}, ${LANE.redrive}) THEN one.name ELSE '' END]) p;
        EXIT WHEN home IS NOT NULL AND (one.resource = '' OR admit(ARRAY[home]));
      END LOOP;
      RETURN QUERY UPDATE live l SET partition = home FROM unnest(chosen) AS g (id) WHERE ${lookUp('l.id', 'g.id')}
      RETURNING l.partition, l.due_at, l.seq;
      moved := moved + cardinality(chosen);
      EXIT WHEN moved >= p_limit;
    END LOOP;
  END $$;
`;
