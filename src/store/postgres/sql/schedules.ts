import { ENQUEUE_PARAMETERS } from './enqueue.ts';
import { BY_INDEX, HERE } from './shared.ts';

const ENQUEUE_VALUES = ENQUEUE_PARAMETERS.split(',').map((parameter) => parameter.trim().split(' ')[0]);

export const schedulesSql: string = `
  /*
   * Writes a schedule, or removes it when p_to is null, and stores its jobs. The row is locked before its version is
   * compared, so that of two that fire the same tick, the second finds another version. A lock is not waited for: the
   * process that has it writes another version, or gives it back soon. Answers one row that says whether
   * it was written, and one for each job whose key was taken; or one with the number 0, and has written nothing, when the
   * partitions are to be looked up again.
   */
  CREATE FUNCTION write_schedule(${ENQUEUE_PARAMETERS},
    p_schedule text, p_from text, p_to text, p_next_at bigint, p_json text
  ) RETURNS TABLE (written boolean, ord bigint, holder uuid) LANGUAGE plpgsql ${HERE} ${BY_INDEX}
  SET lock_timeout = '250ms' AS $$
  DECLARE
    present text;
    taken record;
  BEGIN
    -- A row that is not there yet cannot be locked.
    written := p_from IS NOT NULL OR
      pg_try_advisory_xact_lock(hashtext(current_schema()), hashtext('mulligan: new schedules'));
    IF written THEN
      SELECT version INTO present FROM schedules WHERE name = p_schedule FOR UPDATE SKIP LOCKED;
      -- A row that is there, but was skipped, is locked.
      written := FOUND OR NOT EXISTS (SELECT 1 FROM schedules WHERE name = p_schedule);
    END IF;
    -- Already in the new version: the answer to this very write was lost.
    written := written AND (present IS NOT DISTINCT FROM p_from OR present IS NOT DISTINCT FROM p_to);
    IF NOT written THEN
      RETURN NEXT;
      RETURN;
    END IF;
    IF p_id <> '{}' THEN
      FOR taken IN SELECT * FROM enqueue(${ENQUEUE_VALUES.join(', ')}) LOOP
        ord := taken.ord;
        holder := taken.holder;
        RETURN NEXT;
        IF taken.ord = 0 THEN RETURN; END IF;
      END LOOP;
    END IF;
    IF p_to IS NULL THEN
      DELETE FROM schedules WHERE name = p_schedule;
    ELSE
      INSERT INTO schedules (name, version, next_at, schedule) VALUES (p_schedule, p_to, p_next_at, p_json)
      ON CONFLICT (name) DO UPDATE
        SET version = excluded.version, next_at = excluded.next_at, schedule = excluded.schedule;
    END IF;
    ord := NULL;
    holder := NULL;
    RETURN NEXT;
  END $$;
`;
