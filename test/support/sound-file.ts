import { DatabaseSync } from 'node:sqlite';
import { expect } from 'vitest';

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
          WHERE last_error IS NOT NULL AND NOT EXISTS (SELECT 1 FROM errors e WHERE e.id = last_error)) AS dangling`)
    .get();
  expect({ ...found }).toEqual({ orphans: 0, miscounted: 0, dangling: 0 });
}
