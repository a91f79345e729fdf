import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, inject } from 'vitest';
import { type RunningServer, type ServeOptions, serve } from '../../src/server/index.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { type Staged, stage } from './stage.ts';

export interface ServedStage extends Staged {
  readonly url: string;
}

/** The staged queue, served for all tests of a file: in a SQLite file, or with `npm run web:postgres` in PostgreSQL. */
export function useStage(options: ServeOptions = {}): () => ServedStage {
  let staged: Staged;
  let server: RunningServer;
  let database: TestDatabase | null = null;
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-web-'));
  beforeAll(async () => {
    if (process.env.MULLIGAN_WEB === 'postgres') database = await TestDatabase.create(inject('postgresUrl'));
    staged = await stage(database?.url ?? `sqlite:${join(folder, 'queue.db')}`);
    server = await serve(staged.mulligan, { port: 0, ...options });
  });
  afterAll(async () => {
    await server.close();
    await staged.close();
    await database?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });
  return () => ({ ...staged, url: server.url });
}
