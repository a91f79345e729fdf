import { HERE } from './shared.ts';

/** The numbers of what is stored once and pointed at: see names.ts beside this folder. */
export const namesSql: string = `
  CREATE FUNCTION worker_of(p_name text) RETURNS int LANGUAGE plpgsql ${HERE} AS $$
  DECLARE found_id int;
  BEGIN
    INSERT INTO workers (name) SELECT p_name WHERE NOT EXISTS (SELECT 1 FROM workers WHERE name = p_name)
      ON CONFLICT DO NOTHING;
    SELECT id INTO found_id FROM workers WHERE name = p_name;
    RETURN found_id;
  END $$;

  CREATE FUNCTION line_of(p_queue text, p_resource text, p_lane smallint, p_priority smallint) RETURNS int
  LANGUAGE plpgsql ${HERE} AS $$
  DECLARE found_id int;
  BEGIN
    SELECT id INTO found_id FROM lines
      WHERE queue = p_queue AND resource = p_resource AND lane = p_lane AND priority = p_priority;
    IF found_id IS NULL THEN
      -- Numbers become visible in their order: whoever knows the newest knows them all.
      LOCK TABLE lines IN SHARE ROW EXCLUSIVE MODE;
      INSERT INTO lines (queue, resource, lane, priority) VALUES (p_queue, p_resource, p_lane, p_priority)
        ON CONFLICT DO NOTHING;
      SELECT id INTO found_id FROM lines
        WHERE queue = p_queue AND resource = p_resource AND lane = p_lane AND priority = p_priority;
    END IF;
    RETURN found_id;
  END $$;

  CREATE FUNCTION kind_of(p_line int, p_name text, p_retry_queue text, p_policy text) RETURNS int
  LANGUAGE plpgsql ${HERE} AS $$
  DECLARE found_id int;
  BEGIN
    FOR tries IN 1 .. 2 LOOP
      SELECT id INTO found_id FROM kinds WHERE line = p_line AND name = p_name AND md5(policy) = md5(p_policy)
        AND coalesce(retry_queue, '') = coalesce(p_retry_queue, '');
      EXIT WHEN found_id IS NOT NULL;
      INSERT INTO kinds (line, name, retry_queue, policy) VALUES (p_line, p_name, p_retry_queue, p_policy)
        ON CONFLICT DO NOTHING;
    END LOOP;
    RETURN found_id;
  END $$;
`;
