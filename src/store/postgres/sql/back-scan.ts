import { BY_INDEX, HERE } from './shared.ts';

/** See scan/scan-cursor.ts. */
export const backScanSql: string = `
  /*
   * The first waiting job of each partition that fell due before p_below (null: up to now). Goes back in steps, which are
   * long where there is little to walk over, dead rows included, and stops after p_ms. Answers how far it got, and the end
   * of the latest step in which it found a job.
   */
  CREATE FUNCTION back_scan(p_partition bigint[], p_below bigint[], p_ms double precision)
  RETURNS TABLE (partition bigint, scanned_to bigint, store_now bigint, due_at bigint, seq bigint, until bigint)
  LANGUAGE plpgsql ${HERE} ${BY_INDEX} AS $$
  DECLARE
    began double precision := extract(epoch FROM clock_timestamp());
    step_began double precision := began;
    step_ended double precision;
    step bigint := 4000;
    first record;
  BEGIN
    store_now := now_ms();
    FOR i IN 1 .. cardinality(p_partition) LOOP
      partition := p_partition[i];
      scanned_to := coalesce(p_below[i], store_now + 1);
      due_at := NULL;
      seq := NULL;
      until := NULL;
      WHILE scanned_to > 0 AND (step_began - began) * 1000 < p_ms LOOP
        SELECT w.due_at, w.seq INTO first FROM live w
        WHERE w.partition = p_partition[i] AND w.worker IS NULL AND w.due_at >= scanned_to - step AND w.due_at < scanned_to
        ORDER BY w.due_at, w.seq LIMIT 1;
        IF FOUND THEN
          due_at := first.due_at;
          seq := first.seq;
          until := coalesce(until, scanned_to);
        END IF;
        scanned_to := greatest(0, scanned_to - step);
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
