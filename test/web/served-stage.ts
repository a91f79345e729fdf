import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { type RunningServer, type ServeOptions, serve } from '../../src/server/index.ts';
import { type Staged, stage } from './stage.ts';

export interface ServedStage extends Staged {
  readonly url: string;
}

/** The staged queue in a file, served for all tests of a file. */
export function useStage(options: ServeOptions = {}): () => ServedStage {
  let staged: Staged;
  let server: RunningServer;
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-web-'));
  beforeAll(async () => {
    staged = await stage(`sqlite:${join(folder, 'queue.db')}`);
    server = await serve(staged.mulligan, { port: 0, ...options });
  });
  afterAll(async () => {
    await server.close();
    await staged.close();
    rmSync(folder, { recursive: true });
  });
  return () => ({ ...staged, url: server.url });
}
