import { BY_INDEX, HERE, isApart, isLimited, limitedUnder, limitNames, lookUp, queueOf } from './shared.ts';

/*
 * Jobs that wait aside: see ../../aside.ts; behind limits: ../../limited-queue.ts. Their partitions are under queues of their own,
 * and are only read by claims that have found the row of such a queue in the table `asides` or `limited_queues`, so the
 * row must not go while such a partition comes:
 *
 *   - A transaction that makes such a partition first makes the row or finds it, and locks it FOR KEY SHARE until it ends.
 *   - A transaction that deletes rows locks them FOR UPDATE, which skips those, and then, in a new statement, looks whether
 *     there are partitions.
 */

const keep = (table: string, column: string, condition: string): string => `
    wanted := ARRAY (
      SELECT DISTINCT g.queue FROM unnest(p_queue) AS g (queue) WHERE ${condition} ORDER BY g.queue);
    kept := NULL;
    WHILE kept IS DISTINCT FROM cardinality(wanted) LOOP
      INSERT INTO ${table} (queue, ${column}) SELECT ${queueOf('g.queue')}, g.queue FROM unnest(wanted) AS g (queue)
      ON CONFLICT DO NOTHING;
      SELECT count(*) INTO kept FROM (
        SELECT 1 FROM ${table} a WHERE a.${column} = ANY (wanted) ORDER BY a.id FOR KEY SHARE) k;
    END LOOP;`;

const prune = (table: string, column: string): string => `
    unused := ARRAY (
      SELECT a.id FROM ${table} a WHERE NOT EXISTS (SELECT 1 FROM partitions p WHERE ${lookUp('p.queue', `a.${column}`)})
      ORDER BY a.id FOR UPDATE SKIP LOCKED);
    IF unused <> '{}' THEN
      DELETE FROM ${table} a
      WHERE a.id = ANY (unused) AND NOT EXISTS (SELECT 1 FROM partitions p WHERE ${lookUp('p.queue', `a.${column}`)});
    END IF;`;

/** All rows of both tables for p_queue. The numbers of limited queues are negative, so that no two are the same. */
export const APART = `(
  SELECT a.id, a.aside AS under FROM asides a WHERE a.queue = ANY (p_queue)
  UNION ALL SELECT -q.id, q.under FROM limited_queues q WHERE q.queue = ANY (p_queue))`;

export const asideSql: string = `
  -- Makes the rows of those of these queues that are for jobs aside or behind limits, and keeps them from being deleted.
  CREATE FUNCTION keep_asides(p_queue text[]) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    wanted text[];
    kept bigint;
  BEGIN
    ${keep('asides', 'aside', `${isApart('g.queue')} AND NOT ${isLimited('g.queue')}`)}
    ${keep('limited_queues', 'under', isLimited('g.queue'))}
  END $$;

  -- Deletes rows that no partition needs any more.
  CREATE FUNCTION prune_asides() RETURNS void LANGUAGE plpgsql AS $$
  DECLARE unused bigint[];
  BEGIN
    ${prune('asides', 'aside')}
    ${prune('limited_queues', 'under')}
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
      SELECT p.id, p.lane, p.priority, p.resource, p.name, a.home
      FROM (
        SELECT queue AS home, aside FROM asides
        UNION ALL SELECT ${limitedUnder('queue', limitNames('under'))}, under FROM limited_queues WHERE split_part(under, E'\\x01', 2) <> ''
      ) a JOIN partitions p ON ${lookUp('p.queue', 'a.aside')}
    LOOP
      chosen := ARRAY (
        SELECT w.id FROM live w
        WHERE w.partition = one.id AND w.worker IS NULL AND w.due_at <= since AND w.available_at <= since
        ORDER BY w.due_at, w.seq LIMIT p_limit - moved FOR UPDATE SKIP LOCKED);
      CONTINUE WHEN chosen = '{}';
      LOOP
        SELECT p.id INTO home FROM partitions_of(ARRAY[one.home], ARRAY[one.lane], ARRAY[one.priority],
          ARRAY[one.resource], ARRAY[one.name]) p;
        EXIT WHEN home IS NOT NULL AND ((one.resource = '' AND NOT ${isLimited('one.home')}) OR admit(ARRAY[home]));
      END LOOP;
      RETURN QUERY UPDATE live l SET partition = home FROM unnest(chosen) AS g (id) WHERE ${lookUp('l.id', 'g.id')}
      RETURNING l.partition, l.due_at, l.seq;
      moved := moved + cardinality(chosen);
      EXIT WHEN moved >= p_limit;
    END LOOP;
  END $$;
`;
