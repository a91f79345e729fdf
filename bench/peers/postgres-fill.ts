import type { Database } from './postgres.ts';

const PART = 200_000;

/** Completed jobs with their last run, as if the queue had worked them off; only the counts do not know of them. */
export async function fillPostgres(database: Database, count: number): Promise<void> {
  const [row] = await database.query<{ kind: number; worker: number }>(`
    SELECT mulligan.kind_of(mulligan.line_of('default', '', 0::smallint, 5::smallint), 'noop', NULL, '{}') AS kind,
      mulligan.worker_of('bench-worker') AS worker`);
  const { kind, worker } = row as { kind: number; worker: number };
  for (let done = 0; done < count; done += PART) {
    await database.query(
      `INSERT INTO mulligan.finished (id, seq, finished_at, enqueued_at, due_at, available_at, line, kind, runs, attempts,
         crashes, state, key_life, first_started_at, outcome, attempt, counted, failed, worker, started_at, ended_at,
         decision, payload)
       SELECT uuidv7(), -n, t, t, t, t, 1, $1, 1, 1, 0, 4, 1, t, 0, 1, true, false, $2, t, t,
         '{"kind":"complete","rule":"completed"}', '{"n":-1,"kind":"noop","sentAt":0}'
       FROM generate_series($3::bigint, $4::bigint) AS n, mulligan.now_ms() AS t`,
      [kind, worker, done + 1, Math.min(count, done + PART)],
    );
  }
}
