import { type SpawnSyncOptions, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));

/** The queues to compare with are not dependencies of Mulligan: they are installed here, when first needed. */
export function installOnce(): void {
  const wanted = readFileSync(`${folder}package.json`, 'utf8');
  const mark = `${folder}node_modules/.installed-for`;
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return;
  console.error('First use: installing what the benchmark compares with into bench/node_modules (npm install)');
  const npm = process.env.npm_execpath;
  const options: SpawnSyncOptions = { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] };
  const { status } =
    npm === undefined
      ? spawnSync('npm', ['install'], { ...options, shell: process.platform === 'win32' })
      : spawnSync(process.execPath, [npm, 'install'], options);
  if (status !== 0) {
    console.error('npm install failed in bench/; see above');
    process.exit(1);
  }
  writeFileSync(mark, wanted);
}

/**
 * What turns TypeScript into JavaScript takes 18 MB in each process that needs it, which is not what is measured. All
 * processes share a cache of what it makes, as if the code had been built.
 */
export function compileOnce(): void {
  process.env.NODE_COMPILE_CACHE = `${folder}node_modules/.compiled`;
  spawnSync(process.execPath, [`${folder}harness/warm.ts`], { stdio: ['ignore', 'ignore', 'inherit'] });
}
