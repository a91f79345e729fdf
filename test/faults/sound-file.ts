import { DatabaseSync } from 'node:sqlite';
import { expect } from 'vitest';

/** SQLite itself finds nothing wrong with the file. */
export function expectSoundFile(path: string): void {
  using db = new DatabaseSync(path, { readOnly: true });
  expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
}
