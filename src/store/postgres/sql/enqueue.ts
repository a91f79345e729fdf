import { KEY_LIFE, STATE } from '../../codes.ts';
import { BY_INDEX, CHECK_IDENTITY, HERE, LARGEST_CALL, lookUp, STARTED } from './shared.ts';

const INSERT_JOBS = `
      INSERT INTO live (id, seq, enqueued_at, due_at, available_at, partition, job_type, payload_bytes, runs, attempts,
        crashes, state, key_life, key, tags, payload)
      SELECT g.id, first_seq + g.ord, store_now, g.due_at, greatest(g.due_at, store_now), g.partition, g.job_type,
        octet_length(g.payload), 0, 0, 0, CASE WHEN g.due_at > store_now THEN ${STATE.scheduled} ELSE ${STATE.ready} END,
        coalesce(g.key_life, ${KEY_LIFE.finished}), g.key, g.tags::text[], g.payload
      FROM (
        -- Scans begin at 0: a job that was due before 1970 is due then.
        SELECT g.*, greatest(0, coalesce(g.due, store_now + coalesce(g.delay, 0))) AS due_at
        FROM unnest(p_id, p_job_type, p_partition, p_delay, p_due, p_key_life, p_key, p_tags, string_to_array(p_payload, E'\\n'))
          WITH ORDINALITY AS g (id, job_type, partition, delay, due, key_life, key, tags, payload, ord)
        WHERE refused = '{}' OR NOT g.ord = ANY (refused)
      ) g`;

/** Also of functions that enqueue as a part of something else, and hand these on. */
export const ENQUEUE_PARAMETERS: string = `
    p_identity uuid, p_id uuid[], p_job_type int[], p_counted int[], p_counter int[], p_partition bigint[], p_delay bigint[],
    p_due bigint[], p_key_life smallint[], p_name text[], p_key text[], p_payload text, p_tags text[], p_keyed bigint[], p_notice text,
    p_again boolean, p_admitted boolean, p_debounce bigint[]`;

export const enqueueSql: string = `
  -- Gives a job its key. Null when it has it now, else the job that holds it. A debounced one takes the place of older ones.
  CREATE FUNCTION take_key(p_id uuid, p_name text, p_key text, p_debounced boolean)
  RETURNS uuid LANGUAGE plpgsql ${HERE} AS $$
  DECLARE holder uuid;
  BEGIN
    LOOP
      -- Sent again: whatever happened to it since, it is no second job.
      IF EXISTS (SELECT 1 FROM live WHERE id = p_id) OR EXISTS (SELECT 1 FROM finished WHERE id = p_id) THEN
        RETURN NULL;
      END IF;
      INSERT INTO keys (name, key, job) VALUES (p_name, p_key, p_id) ON CONFLICT DO NOTHING;
      IF FOUND THEN
        IF p_debounced THEN PERFORM supersede(p_name, p_key); END IF;
        RETURN NULL;
      END IF;
      SELECT job INTO holder FROM keys WHERE name = p_name AND key = p_key;
      -- It ended meanwhile.
      CONTINUE WHEN NOT FOUND;
      IF holder = p_id THEN RETURN NULL; END IF;
      -- A key that is held until the first start is given up by a job that has started.
      IF EXISTS (SELECT 1 FROM live WHERE id = holder AND runs > 0 AND key_life = ${STARTED}) THEN
        UPDATE keys SET job = p_id WHERE name = p_name AND key = p_key AND job = holder;
        CONTINUE WHEN NOT FOUND;
        IF p_debounced THEN PERFORM supersede(p_name, p_key); END IF;
        RETURN NULL;
      END IF;
      RETURN holder;
    END LOOP;
  END $$;

  /*
   * Payloads are JSON, which has no line breaks, so they come joined by them. p_counter is the job type under which
   * those of p_counted are counted. p_name and p_key are null when no job has a key; p_delay, p_due and p_key_life are null
   * when no job has a delay, a due time, or a key life other than \`finished\`; p_tags, array literals, when none has tags. p_keyed are those of the partitions that
   * have a resource; p_admitted is null, except in a caller's transaction (is_admitted). Answers only the jobs whose key was
   * taken; or a row with the number 0, and has written nothing, when the partitions are to be looked up again. p_notice is
   * sent to all who listen, once this is committed. p_debounce are the longest waits of debounced jobs, or null when there are none.
   * Without p_again, a job that was sent before is a unique violation.
   */
  CREATE FUNCTION enqueue(${ENQUEUE_PARAMETERS}
  ) RETURNS TABLE (ord bigint, holder uuid, replaced boolean) LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    store_now bigint := now_ms();
    -- One number per call, and room for its jobs after it.
    first_seq bigint := nextval('acceptance') * ${LARGEST_CALL};
    may_write boolean := true;
    refused bigint[] := '{}';
    keyed record;
    by_whom uuid;
    again record;
  BEGIN
    ${CHECK_IDENTITY}
    IF p_keyed <> '{}' THEN
      IF p_admitted IS NULL THEN may_write := admit(p_keyed); ELSE may_write := is_admitted(p_keyed, p_admitted); END IF;
    END IF;
    IF NOT may_write THEN
      ord := 0;
      RETURN NEXT;
      RETURN;
    END IF;

    IF p_key IS NOT NULL THEN
      FOR keyed IN
        SELECT g.* FROM unnest(p_id, p_name, p_key, p_debounce) WITH ORDINALITY AS g (id, name, key, debounce, ord)
        WHERE g.key IS NOT NULL ORDER BY g.name, g.key, g.ord
      LOOP
        LOOP
          by_whom := take_key(keyed.id, keyed.name, keyed.key, keyed.debounce IS NOT NULL);
          replaced := false;
          EXIT WHEN by_whom IS NULL OR keyed.debounce IS NULL;
          replaced := replace_job(by_whom, p_partition[keyed.ord], p_job_type[keyed.ord],
            coalesce(p_due[keyed.ord], store_now + coalesce(p_delay[keyed.ord], 0)), keyed.debounce, p_tags[keyed.ord]::text[],
            split_part(p_payload, E'\\n', keyed.ord::int));
          EXIT WHEN replaced IS NOT NULL;
        END LOOP;
        CONTINUE WHEN by_whom IS NULL;
        refused := refused || keyed.ord;
        ord := keyed.ord;
        holder := by_whom;
        RETURN NEXT;
      END LOOP;
    END IF;

    IF p_again THEN
      WITH added AS (${INSERT_JOBS} ON CONFLICT DO NOTHING RETURNING job_type)
      INSERT INTO counts (job_type, enqueued) SELECT a.job_type, count(*) FROM added a GROUP BY a.job_type;
    ELSE
      -- Asking row by row whether it is the first would cost a quarter more.
      ${INSERT_JOBS};
      INSERT INTO counts (job_type, enqueued)
      SELECT p_counter[array_position(p_counted, g.job_type)], count(*)
      FROM unnest(p_job_type) WITH ORDINALITY AS g (job_type, ord)
      WHERE refused = '{}' OR NOT g.ord = ANY (refused) GROUP BY 1;
    END IF;

    IF p_tags IS NOT NULL THEN
      INSERT INTO job_tags (tag, job)
      SELECT DISTINCT t.tag, g.id FROM unnest(p_id, p_tags) WITH ORDINALITY AS g (id, tags, ord), unnest(g.tags::text[]) AS t (tag)
      WHERE refused = '{}' OR NOT g.ord = ANY (refused)
      ON CONFLICT DO NOTHING;
    END IF;

    -- Sent again after it had ended. Its row had left this table before ours could come in, so by now the other table
    -- shows it, and this statement sees what the one before could not.
    IF EXISTS (SELECT 1 FROM finished WHERE id = ANY (p_id)) THEN
      FOR again IN
        DELETE FROM live USING unnest(p_id) AS g (id), finished f
        WHERE ${lookUp('f.id', 'g.id')} AND ${lookUp('live.id', 'f.id')} RETURNING live.job_type
      LOOP
        INSERT INTO counts (job_type, enqueued) VALUES (again.job_type, -1);
      END LOOP;
    END IF;
    IF p_notice IS NOT NULL THEN PERFORM pg_notify('mulligan_' || current_schema(), p_notice); END IF;
  END $$;
`;
