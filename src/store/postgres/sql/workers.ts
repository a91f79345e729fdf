import { FORGOTTEN_AFTER_MS } from '../../workers.ts';
import { HERE } from './shared.ts';

export const workersSql: string = `
  -- p_description is null for a worker that has stopped.
  CREATE FUNCTION register_worker(p_id text, p_description text) RETURNS void LANGUAGE plpgsql ${HERE} AS $$
  DECLARE store_now bigint := now_ms();
  BEGIN
    IF p_description IS NULL THEN
      DELETE FROM worker_registry WHERE id = p_id;
    ELSE
      INSERT INTO worker_registry (id, started_at, seen_at, description)
      VALUES (p_id, store_now, store_now, p_description)
      ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, description = excluded.description;
    END IF;
    -- Many workers may do this at once: each takes the rows that no other has locked.
    DELETE FROM worker_registry WHERE id IN (
      SELECT r.id FROM worker_registry r WHERE r.seen_at <= store_now - ${FORGOTTEN_AFTER_MS} FOR UPDATE SKIP LOCKED);
  END $$;
`;
