import type { DatabaseSync } from 'node:sqlite';

const PART = 100_000;

/** Completed jobs with their ledger rows, as if the queue had worked them off; only the totals do not know of them. */
export function fillSqlite(db: DatabaseSync, count: number): void {
  const intern = (text: string): number => {
    db.prepare('INSERT OR IGNORE INTO strings (text) VALUES (?)').run(text);
    return (db.prepare('SELECT id FROM strings WHERE text = ?').get(text) as { id: number }).id;
  };
  const [queue, name, policy, worker] = ['default', 'noop', 'bench-policy', 'bench-worker'].map(intern);
  const first = ((db.prepare('SELECT max(seq) AS seq FROM jobs').get() as { seq: number | null }).seq ?? 0) + 1;
  const now = Date.now();
  for (let done = 0; done < count; done += PART) {
    const numbers = `WITH RECURSIVE s (seq) AS (SELECT ${first + done} UNION ALL
      SELECT seq + 1 FROM s WHERE seq < ${first + Math.min(count, done + PART) - 1})`;
    db.exec(`
      BEGIN IMMEDIATE;
      INSERT INTO jobs (seq, id, state, queue, lane, priority, resource, due_at, runs, attempts, claimed_at,
        first_started_at, finished_at, available_at, enqueued_at, name, policy, home_queue, key_life, payload)
      ${numbers} SELECT seq, printf('%08x-0000-7000-8000-%012x', seq / 65536, seq), 4, ${queue}, 0, 5, 0, ${now}, 1, 1, ${now},
        ${now}, ${now}, ${now}, ${now}, ${name}, ${policy}, ${queue}, 1, '{"n":-1,"kind":"noop","sentAt":0}' FROM s;
      INSERT INTO runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, decision)
      ${numbers} SELECT seq, 1, 1, 'completed', 1, ${worker}, ${now}, ${now}, '{"kind":"complete","rule":"completed"}' FROM s;
      COMMIT`);
  }
}
