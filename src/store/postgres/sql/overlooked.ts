import { BY_INDEX, HERE } from './shared.ts';

/** Looking for what claims have passed by. */
export const overlookedSql: string = `
  /*
   * The first waiting job of each line that fell due before p_below (null: up to now). Goes back in steps, which are
   * long where there is little to walk over, dead rows included; after p_ms it stops where it is. Answers how far it
   * looked, and the end of the latest step in which something was found.
   */
  CREATE FUNCTION overlooked(p_line int[], p_below bigint[], p_ms int)
  RETURNS TABLE (line int, looked_to bigint, store_now bigint, due_at bigint, seq bigint, until bigint)
  LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    began double precision := extract(epoch FROM clock_timestamp());
    step_began double precision := began;
    step_ended double precision;
    step bigint := 4000;
    first record;
  BEGIN
    store_now := now_ms();
    FOR i IN 1 .. cardinality(p_line) LOOP
      line := p_line[i];
      looked_to := coalesce(p_below[i], store_now + 1);
      due_at := NULL;
      seq := NULL;
      until := NULL;
      WHILE looked_to > 0 AND (step_began - began) * 1000 < p_ms LOOP
        SELECT w.due_at, w.seq INTO first FROM live w
        WHERE w.line = p_line[i] AND w.worker IS NULL AND w.due_at >= looked_to - step AND w.due_at < looked_to
        ORDER BY w.due_at, w.seq LIMIT 1;
        IF FOUND THEN
          due_at := first.due_at;
          seq := first.seq;
          until := coalesce(until, looked_to);
        END IF;
        looked_to := greatest(0, looked_to - step);
        step_ended := extract(epoch FROM clock_timestamp());
        step := CASE
          WHEN step_ended - step_began < 0.005 THEN step * 16
          WHEN step_ended - step_began < 0.05 THEN step * 2
          ELSE greatest(step / 2, 1) END;
        step_began := step_ended;
      END LOOP;
      step := least(step, 4000);
      RETURN NEXT;
    END LOOP;
  END $$;
`;
