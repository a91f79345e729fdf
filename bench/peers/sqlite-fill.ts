import type { DatabaseSync } from 'node:sqlite';

/** Completed jobs with their ledger rows, as if the queue had worked them off; only the tallies do not know of them. */
export function fillSqlite(db: DatabaseSync, count: number): void {
  db.exec(`
    INSERT OR IGNORE INTO streams (queue, resource) VALUES ('default', '');
    INSERT OR IGNORE INTO words (text) VALUES ('noop'), ('bench-policy'), ('bench-worker');
  `);
  const word = (text: string): number =>
    (db.prepare('SELECT id FROM words WHERE text = ?').get(text) as { id: number }).id;
  const stream = (
    db.prepare("SELECT id FROM streams WHERE queue = 'default' AND resource = ''").get() as { id: number }
  ).id;
  const [name, policy, worker] = [word('noop'), word('bench-policy'), word('bench-worker')];
  const first = ((db.prepare('SELECT max(seq) AS seq FROM jobs').get() as { seq: number | null }).seq ?? 0) + 1;
  const now = Date.now();
  for (let done = 0; done < count; done += 100_000) {
    const from = first + done;
    const to = first + Math.min(count, done + 100_000) - 1;
    db.exec(`
      BEGIN IMMEDIATE;
      INSERT INTO jobs (seq, id, state, stream, lane, priority, due_at, runs, attempts, claimed_at, first_started_at,
        finished_at, available_at, enqueued_at, name, policy, home_stream, key_life, payload)
      WITH RECURSIVE s (seq) AS (SELECT ${from} UNION ALL SELECT seq + 1 FROM s WHERE seq < ${to})
      SELECT seq, printf('%08x-0000-7000-8000-%012x', seq / 65536, seq), 4, ${stream}, 0, 5, ${now}, 1, 1, ${now},
        ${now}, ${now}, ${now}, ${now}, ${name}, ${policy}, ${stream}, 1, '{"n":-1,"kind":"noop","sentAt":0}' FROM s;
      INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, decision)
      WITH RECURSIVE s (seq) AS (SELECT ${from} UNION ALL SELECT seq + 1 FROM s WHERE seq < ${to})
      SELECT seq, 1, 1, 'completed', 1, ${worker}, ${now}, ${now}, '{"kind":"complete","rule":"completed"}' FROM s;
      COMMIT`);
  }
}
