import type { Database } from './postgres.ts';

const PART = 200_000;

/** Completed jobs with their last run, as if the queue had worked them off; only the totals do not know of them. */
export async function fillPostgres(database: Database, count: number): Promise<void> {
  const [row] = await database.query<{ type: string; worker: number }>(`
    WITH type AS (SELECT nextval(pg_get_serial_sequence('mulligan.job_types', 'id')) AS id), added AS (
      INSERT INTO mulligan.job_types (id, counted_as, queue, name, policy) OVERRIDING SYSTEM VALUE
      SELECT id, id, 'default', 'noop', '{"bench":true}' FROM type
    ), worker AS (
      INSERT INTO mulligan.workers (name) VALUES ('bench-worker') RETURNING id
    )
    SELECT type.id AS type, worker.id AS worker FROM type, worker`);
  const { type, worker } = row as { type: string; worker: number };
  for (let done = 0; done < count; done += PART) {
    await database.query(
      `INSERT INTO mulligan.finished (id, seq, finished_at, enqueued_at, due_at, available_at, lane, priority, job_type,
         payload_bytes, runs, attempts, crashes, state, key_life, first_started_at, outcome, attempt, counted, failed,
         worker, started_at, ended_at, decision, queue, resource, payload)
       SELECT uuidv7(), -n, t, t, t, t, 0, 5, $1, 34, 1, 1, 0, 4, 1, t, 0, 1, true, false,
         $2, t, t, '{"kind":"complete","rule":"completed"}', 'default', '', '{"n":-1,"kind":"noop","sentAt":0}'
       FROM generate_series($3::bigint, $4::bigint) AS n, mulligan.now_ms() AS t`,
      [type, worker, done + 1, Math.min(count, done + PART)],
    );
  }
}
