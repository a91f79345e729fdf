import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';
import { TestDatabase } from '../support/postgres-database.ts';

/** The stores that a server may stand before: an empty one of the kind, until the test ends. */
export const storeKinds = ['memory', 'sqlite', 'postgres'] as const;
export type StoreKind = (typeof storeKinds)[number];

export async function emptyStore(kind: StoreKind): Promise<string> {
  if (kind === 'memory') return 'memory:';
  if (kind === 'postgres') {
    const database = await TestDatabase.create(inject('postgresUrl'));
    onTestFinished(() => database[Symbol.asyncDispose]());
    return database.url;
  }
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-served-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return `sqlite:${join(folder, 'jobs.db')}`;
}
