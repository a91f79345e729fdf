import { DatabaseSync } from 'node:sqlite';
import { expect } from 'vitest';
import { STATE, WAITING } from '../../src/store/codes.ts';

/** SQLite itself finds nothing wrong with the file, and its tables agree with one another. */
export function expectSoundFile(path: string): void {
  using db = new DatabaseSync(path, { readOnly: true });
  expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  const found = db
    .prepare(`
      SELECT
        (SELECT count(*) FROM runs r WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.seq = r.job)) AS orphans,
        (SELECT count(*) FROM errors e LEFT JOIN (SELECT error, count(*) AS uses FROM runs GROUP BY error) r
          ON r.error = e.id WHERE e.uses <> coalesce(r.uses, 0)) AS miscounted,
        (SELECT count(*) FROM (SELECT last_error FROM jobs UNION ALL SELECT error FROM runs) p
          WHERE last_error IS NOT NULL AND NOT EXISTS (SELECT 1 FROM errors e WHERE e.id = last_error)) AS dangling,
        (SELECT count(*) FROM jobs j WHERE (j.state IN (${WAITING})) <> (j.partition IS NOT NULL)) AS misplaced,
        (SELECT count(*) FROM jobs j WHERE j.partition IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM partitions p WHERE p.id = j.partition AND (p.queue = j.queue OR (j.queue, p.queue) IN (SELECT queue, aside FROM asides)) AND p.lane = j.lane
            AND p.priority = j.priority AND p.resource = j.resource AND p.name IN (0, j.name))) AS lost,
        (SELECT count(*) FROM partitions p WHERE NOT EXISTS (SELECT 1 FROM jobs j WHERE j.partition = p.id)) AS empty,
        (SELECT count(*) FROM (
          SELECT fingerprint, home_queue, name, sum(failing) AS failing, sum(dead) AS dead FROM (
            SELECT fingerprint, queue AS home_queue, name, failing, dead FROM error_counts
            UNION ALL
            SELECT fingerprint, home_queue, name, -(finished_at IS NULL), -(state = ${STATE.dead}) FROM jobs
            WHERE fingerprint IS NOT NULL)
          GROUP BY 1, 2, 3) WHERE failing <> 0 OR dead <> 0) AS misgrouped`)
    .get();
  expect({ ...found }).toEqual({
    orphans: 0,
    miscounted: 0,
    dangling: 0,
    misplaced: 0,
    lost: 0,
    empty: 0,
    misgrouped: 0,
  });
}
