import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { COMPLETE_MANY } from './complete.ts';
import { migrations } from './schema.ts';

it('completions are looked up by their number, also after an ANALYZE at a time when jobs wait and none runs', () => {
  using db = new DatabaseSync(':memory:');
  for (const migration of migrations) db.exec(migration);
  db.exec(`
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
    INSERT INTO jobs (id, state, partition, queue, lane, priority, resource, due_at, available_at, enqueued_at, name, policy, home_queue, key_life, payload)
    SELECT 'job ' || i, 1, 1, 1, 0, 5, 0, i, i, i, 1, 1, 1, 0, '{}' FROM n;
    ANALYZE;
  `);
  const plan = db.prepare(`EXPLAIN QUERY PLAN ${COMPLETE_MANY}`).all() as { detail: string }[];
  const jobs = plan.map(({ detail }) => detail).filter((detail) => detail.includes(' jobs '));
  expect(jobs).toEqual(['SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)']);
});
