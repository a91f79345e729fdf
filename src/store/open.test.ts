import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { openStore, sqlitePath } from './open.ts';

it.each([
  ['sqlite:jobs.db', 'jobs.db'],
  ['sqlite:./jobs.db', './jobs.db'],
  ['sqlite:queues/jobs.db', 'queues/jobs.db'],
  ['sqlite://jobs.db', 'jobs.db'],
  ['sqlite://queues/jobs.db', 'queues/jobs.db'],
  ['sqlite:/var/jobs.db', '/var/jobs.db'],
  ['sqlite:///var/jobs.db', '/var/jobs.db'],
  ['sqlite:a:b.db', 'a:b.db'],
])('%s is the file %s', (address, path) => {
  expect(sqlitePath(address)).toBe(path);
});

it('an address with slashes opens that file: relative with two, absolute with three', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
  const before = process.cwd();
  try {
    process.chdir(folder);
    for (const [address, name] of [
      ['sqlite://relative.db', 'relative.db'],
      [`sqlite://${folder}/absolute.db`, 'absolute.db'],
    ] as const) {
      const store = await openStore(address, systemClock);
      await store.close();
      expect(existsSync(join(folder, name))).toBe(true);
    }
  } finally {
    process.chdir(before);
    rmSync(folder, { recursive: true });
  }
});
