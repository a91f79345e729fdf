import { HERE } from './shared.ts';

/** The numbers of what is stored once and pointed at. New entries are committed before anything points at them. */
export const internedSql: string = `
  CREATE FUNCTION worker_of(p_name text) RETURNS int LANGUAGE plpgsql ${HERE} AS $$
  DECLARE found_id int;
  BEGIN
    INSERT INTO workers (name) SELECT p_name WHERE NOT EXISTS (SELECT 1 FROM workers WHERE name = p_name)
      ON CONFLICT DO NOTHING;
    SELECT id INTO found_id FROM workers WHERE name = p_name;
    RETURN found_id;
  END $$;

  CREATE FUNCTION job_types_of(p_queue text[], p_name text[], p_retry_queue text[], p_policy text[])
  RETURNS TABLE (ord bigint, id int, counted_as int) LANGUAGE plpgsql ${HERE} SET enable_seqscan = off AS $$
  #variable_conflict use_column
  DECLARE
    given record;
    next_id int;
  BEGIN
    FOR given IN
      SELECT g.* FROM unnest(p_queue, p_name, p_retry_queue, p_policy) WITH ORDINALITY
        AS g (queue, name, retry_queue, policy, ord)
      ORDER BY g.name, g.queue, md5(g.policy), g.retry_queue
    LOOP
      ord := given.ord;
      LOOP
        SELECT t.id, t.counted_as INTO id, counted_as FROM job_types t
        WHERE t.name = given.name AND t.queue = given.queue AND md5(t.policy) = md5(given.policy)
          AND coalesce(t.retry_queue, '') = coalesce(given.retry_queue, '');
        EXIT WHEN FOUND;
        next_id := nextval(pg_get_serial_sequence('job_types', 'id'));
        INSERT INTO job_types (id, counted_as, queue, name, retry_queue, policy) OVERRIDING SYSTEM VALUE
        VALUES (next_id,
          coalesce((SELECT t.counted_as FROM job_types t WHERE t.name = given.name AND t.queue = given.queue LIMIT 1), next_id),
          given.queue, given.name, given.retry_queue, given.policy)
        ON CONFLICT DO NOTHING;
      END LOOP;
      RETURN NEXT;
    END LOOP;
  END $$;
`;
