import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'vite';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The thread of the conformance tests as one file. Hundreds of threads are started, and each would read a hundred modules. */
    movableThread: string;
  }
}

export default async function setup(project: TestProject): Promise<() => void> {
  const outDir = mkdtempSync(join(tmpdir(), 'mulligan-thread-'));
  await build({
    configFile: false,
    logLevel: 'warn',
    ssr: { noExternal: true },
    build: {
      ssr: fileURLToPath(new URL('movable-thread.ts', import.meta.url)),
      outDir,
      emptyOutDir: false,
      minify: false,
      rollupOptions: { output: { entryFileNames: 'thread.mjs' } },
    },
  });
  project.provide('movableThread', `${pathToFileURL(outDir)}/thread.mjs`);
  return () => rmSync(outDir, { recursive: true, force: true });
}
