import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { Mulligan } from '../../src/index.ts';
import { serve } from '../../src/server/index.ts';
import { TestDatabase } from '../support/postgres-database.ts';

/** A queue that is empty, and where it is. The test that opened it disposes of it. */
export interface Place extends AsyncDisposable {
  readonly url: string;
}

/** What a handler does must be the same on every store, and in an application that reaches it over HTTP. */
export const places: readonly [store: string, open: () => Promise<Place>][] = [
  ['memory', async () => ({ url: 'memory:', async [Symbol.asyncDispose]() {} })],
  [
    'SQLite',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
      return {
        url: `sqlite:${join(folder, 'jobs.db')}`,
        [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true }),
      };
    },
  ],
  ['PostgreSQL', () => TestDatabase.create(inject('postgresUrl'))],
  [
    'HTTP',
    async () => {
      const served = await Mulligan.open('memory:', { log: () => {} });
      const server = await serve(served, { port: 0 });
      return {
        url: server.url,
        async [Symbol.asyncDispose]() {
          await server.close();
          await served.close();
        },
      };
    },
  ],
];
