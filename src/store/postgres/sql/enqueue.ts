import { KEY_LIFE, STATE } from '../../codes.ts';
import { LOCK_FULL_KEYS } from './on-limit.ts';
import { BY_INDEX, CHECK_IDENTITY, HERE, LARGEST_CALL, lookUp, STARTED } from './shared.ts';

const JOB_ARRAYS = [
  'p_id',
  'p_job_type',
  'p_partition',
  'p_delay',
  'p_due',
  'p_key_life',
  'p_key',
  'p_tags',
  'p_limits',
  'p_trace',
] as const;

/** `of` gives the part of an array that is inserted, `ord` the number of a job in the call. */
const insertJobs = (of: (array: string) => string, payloads: string, ord: string): string => `
      INSERT INTO live (id, seq, enqueued_at, due_at, available_at, partition, job_type, payload_bytes, runs, attempts,
        crashes, state, key_life, key, tags, limits, trace, payload)
      SELECT g.id, first_seq + ${ord}, store_now, g.due_at, greatest(g.due_at, store_now), g.partition, g.job_type,
        octet_length(g.payload), 0, 0, 0, CASE WHEN g.due_at > store_now THEN ${STATE.scheduled} ELSE ${STATE.ready} END,
        coalesce(g.key_life, ${KEY_LIFE.finished}), g.key, g.tags::text[], g.limits, g.trace, g.payload
      FROM (
        -- Scans begin at 0: a job that was due before 1970 is due then.
        SELECT g.*, greatest(0, coalesce(g.due, store_now + coalesce(g.delay, 0))) AS due_at
        FROM unnest(${JOB_ARRAYS.map(of).join(', ')}, ${payloads})
          WITH ORDINALITY AS g (id, job_type, partition, delay, due, key_life, key, tags, limits, trace, payload, ord)
        WHERE refused = '{}' OR NOT ${ord} = ANY (refused)
      ) g`;
const INSERT_JOBS = insertJobs((array) => array, "string_to_array(p_payload, E'\\n')", 'g.ord');
const insertCounted = (insert: string): string => `
      WITH added AS (${insert} ON CONFLICT DO NOTHING RETURNING job_type)
      INSERT INTO counts (job_type, enqueued) SELECT a.job_type, count(*) FROM added a GROUP BY a.job_type;`;
/** Those from the first that is not stored yet up to \`upto\`. */
const INSERT_PART = insertCounted(
  insertJobs((array) => `${array}[stored + 1 : upto]`, 'payloads[stored + 1 : upto]', '(g.ord + stored)'),
);

/** Also of functions that enqueue as a part of something else, and hand these on. */
export const ENQUEUE_PARAMETERS: string = `
    p_identity uuid, p_id uuid[], p_job_type int[], p_counted int[], p_counter int[], p_partition bigint[], p_delay bigint[],
    p_due bigint[], p_key_life smallint[], p_name text[], p_key text[], p_payload text, p_tags text[], p_keyed bigint[], p_notice text,
    p_again boolean, p_admitted boolean, p_debounce bigint[], p_limits text[], p_window bigint[],
    p_on_limit text[], p_trace text[], p_on_dead text[]`;

export const enqueueSql: string = `
  -- Gives a job its key, with p_window for so long. Taken when it has it now; else the job that holds it, or null when this
  -- very job was sent before.
  CREATE FUNCTION take_key(p_id uuid, p_name text, p_key text, p_window bigint, OUT holder uuid, OUT taken boolean)
  LANGUAGE plpgsql ${HERE} AS $$
  DECLARE
    store_now bigint := now_ms();
    until bigint;
  BEGIN
    LOOP
      taken := false;
      holder := NULL;
      -- Sent again: whatever happened to it since, it is no second job.
      IF EXISTS (SELECT 1 FROM live WHERE id = p_id) OR EXISTS (SELECT 1 FROM finished WHERE id = p_id) THEN RETURN; END IF;
      INSERT INTO keys (name, key, job, held_until) VALUES (p_name, p_key, p_id, store_now + p_window) ON CONFLICT DO NOTHING;
      taken := FOUND;
      IF taken THEN RETURN; END IF;
      SELECT k.job, k.held_until INTO holder, until FROM keys k WHERE k.name = p_name AND k.key = p_key;
      -- It ended meanwhile.
      CONTINUE WHEN NOT FOUND;
      IF holder = p_id THEN
        holder := NULL;
        RETURN;
      END IF;
      -- Its time is over; or it is held until the first start, and so was given up by a job that has started.
      IF until <= store_now OR EXISTS (SELECT 1 FROM live WHERE id = holder AND runs > 0 AND key_life = ${STARTED}) THEN
        UPDATE keys k SET job = p_id, held_until = store_now + p_window
        WHERE k.name = p_name AND k.key = p_key AND k.job = holder AND k.held_until IS NOT DISTINCT FROM until;
        taken := FOUND;
        CONTINUE WHEN NOT taken;
        holder := NULL;
      END IF;
      RETURN;
    END LOOP;
  END $$;

  /*
   * Payloads are JSON, which has no line breaks, so they come joined by them. p_counter is the job type under which
   * those of p_counted are counted. p_name and p_key are null when no job has a key; p_delay, p_due and p_key_life are null
   * when no job has a delay, a due time, or a key life other than \`finished\`; p_tags, array literals, when none has tags; p_limits when none has limits; p_trace when none has a trace; p_on_dead when none has a reaction. p_keyed are those of the partitions that
   * have a resource; p_admitted is null, except in a caller's transaction (is_admitted). Answers only the jobs whose key was
   * taken; or a row with the number 0, and has written nothing, when the partitions are to be looked up again. p_notice is
   * sent to all who listen, once this is committed. p_debounce are the longest waits of debounced jobs, p_window for how long keys
   * are held by time, p_on_limit the rules of on-limit.ts as JSON; each is null when no job has any.
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
    limited record;
    by_whom uuid;
    is_taken boolean;
    -- Debounced jobs that have just taken their key.
    debounced bigint[] := '{}';
    -- Of a call with p_on_limit: how many of its jobs were looked at and inserted, and how many are to be next.
    stored int := 0;
    upto int;
    payloads text[];
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
          SELECT t.holder, t.taken INTO by_whom, is_taken FROM take_key(keyed.id, keyed.name, keyed.key, p_window[keyed.ord]) t;
          replaced := false;
          EXIT WHEN by_whom IS NULL OR keyed.debounce IS NULL;
          replaced := replace_job(by_whom, p_partition[keyed.ord], p_job_type[keyed.ord],
            coalesce(p_due[keyed.ord], store_now + coalesce(p_delay[keyed.ord], 0)), keyed.debounce, p_tags[keyed.ord]::text[],
            p_limits[keyed.ord], p_trace[keyed.ord], split_part(p_payload, E'\\n', keyed.ord::int));
          EXIT WHEN replaced IS NOT NULL;
        END LOOP;
        IF replaced THEN
          DELETE FROM reactions WHERE job = by_whom;
          INSERT INTO reactions (job, reaction)
          SELECT by_whom, p_on_dead[keyed.ord] WHERE p_on_dead[keyed.ord] IS NOT NULL ON CONFLICT DO NOTHING;
        END IF;
        IF is_taken AND keyed.debounce IS NOT NULL THEN debounced := debounced || keyed.ord; END IF;
        CONTINUE WHEN by_whom IS NULL;
        refused := refused || keyed.ord;
        ord := keyed.ord;
        holder := by_whom;
        RETURN NEXT;
      END LOOP;
    END IF;

    IF p_on_limit IS NOT NULL THEN
      payloads := string_to_array(p_payload, E'\\n');
      ${LOCK_FULL_KEYS}
      FOR limited IN
        SELECT g.* FROM unnest(p_id, p_on_limit) WITH ORDINALITY AS g (id, rules, ord)
        WHERE g.rules IS NOT NULL AND NOT g.ord = ANY (refused) ORDER BY g.ord
      LOOP
        CONTINUE WHEN EXISTS (SELECT 1 FROM live WHERE id = limited.id) OR EXISTS (SELECT 1 FROM finished WHERE id = limited.id);
        -- Jobs before it count, and may be what it cancels.
        IF (limited.rules::json ->> 0)::boolean THEN
          upto := limited.ord - 1;
          ${INSERT_PART}
          stored := upto;
        END IF;
        by_whom := make_room(limited.rules);
        CONTINUE WHEN by_whom IS NULL;
        DELETE FROM keys WHERE job = limited.id;
        refused := refused || limited.ord;
        ord := limited.ord;
        holder := by_whom;
        replaced := false;
        RETURN NEXT;
      END LOOP;
      upto := cardinality(p_id);
      ${INSERT_PART}
    ELSIF p_again THEN
      ${insertCounted(INSERT_JOBS)}
    ELSE
      -- Asking row by row whether it is the first would cost a quarter more.
      ${INSERT_JOBS};
      INSERT INTO counts (job_type, enqueued)
      SELECT p_counter[array_position(p_counted, g.job_type)], count(*)
      FROM unnest(p_job_type) WITH ORDINALITY AS g (job_type, ord)
      WHERE refused = '{}' OR NOT g.ord = ANY (refused) GROUP BY 1;
    END IF;

    IF debounced <> '{}' THEN
      PERFORM supersede(p_name[g.ord], p_key[g.ord]) FROM unnest(debounced) AS g (ord) WHERE NOT g.ord = ANY (refused);
    END IF;

    IF p_tags IS NOT NULL THEN
      INSERT INTO job_tags (tag, job)
      SELECT DISTINCT t.tag, g.id FROM unnest(p_id, p_tags) WITH ORDINALITY AS g (id, tags, ord), unnest(g.tags::text[]) AS t (tag)
      WHERE refused = '{}' OR NOT g.ord = ANY (refused)
      ON CONFLICT DO NOTHING;
    END IF;

    IF p_on_dead IS NOT NULL THEN
      INSERT INTO reactions (job, reaction)
      SELECT g.id, g.reaction FROM unnest(p_id, p_on_dead) WITH ORDINALITY AS g (id, reaction, ord)
      WHERE g.reaction IS NOT NULL AND (refused = '{}' OR NOT g.ord = ANY (refused))
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
