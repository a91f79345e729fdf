import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build, type Rolldown } from 'vite';

/*
 * Builds the pages, and writes them as a module of src/dashboard/: a program that bundles `mulligan/dashboard` then has the
 * files with it, and nothing is read from disk when they are served.
 */

const target = fileURLToPath(new URL('../src/dashboard/assets.ts', import.meta.url));
const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

const { output } = (await build({
  configFile: fileURLToPath(new URL('vite.config.ts', import.meta.url)),
  logLevel: 'warn',
  build: { write: false },
})) as Rolldown.RolldownOutput;

const files = output
  .map((file) => ({ path: file.fileName, text: textOf(file) }))
  .sort((a, b) => (a.path < b.path ? -1 : 1))
  .map(({ path, text }) => ({ path, type: typeOf(path), isHashed: path.startsWith('assets/'), text }));

writeFileSync(
  target,
  `/* Written by web/build.ts. */
export interface Asset {
  readonly path: string;
  readonly type: string;
  /** Its name changes with its content. */
  readonly isHashed: boolean;
  readonly text: string;
}

export const assets: readonly Asset[] = ${JSON.stringify(files, null, 2)};
`,
);

function textOf(file: Rolldown.OutputChunk | Rolldown.OutputAsset): string {
  if (file.type === 'chunk') return file.code;
  return typeof file.source === 'string' ? file.source : new TextDecoder().decode(file.source);
}

function typeOf(path: string): string {
  const type = types[path.slice(path.lastIndexOf('.') + 1)];
  if (type === undefined) throw new Error(`expected a file of a known type, got ${path}. Add its type here.`);
  return type;
}
