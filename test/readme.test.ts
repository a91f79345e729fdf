import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);

/** A TypeScript block with a file name after its language is a whole file; without one it is a fragment. */
interface NamedBlock {
  readonly file: string;
  readonly text: string;
}

function namedBlocks(page: string): NamedBlock[] {
  const blocks = readFileSync(join(root, page), 'utf8').matchAll(/^```ts (\S+)\n(.*?)^```$/gms);
  return [...blocks].map(([, file = '', text = '']) => ({ file, text }));
}

/** A project that has the package installed. */
class Project implements Disposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'mulligan-readme-'));

  constructor(blocks: readonly NamedBlock[]) {
    const modules = join(this.folder, 'node_modules');
    mkdirSync(modules);
    symlinkSync(root, join(modules, 'mulligan'), 'dir');
    symlinkSync(join(root, 'node_modules', '@types'), join(modules, '@types'), 'dir');
    writeFileSync(join(this.folder, 'package.json'), '{ "type": "module" }');
    for (const { file, text } of blocks) writeFileSync(join(this.folder, file), text);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true });
  }
}

const pages = ['README.md', 'CONTRIBUTING.md', ...readdirSync(join(root, 'docs')).map((file) => `docs/${file}`)].filter(
  (page) => page.endsWith('.md') && namedBlocks(page).length > 0,
);

beforeAll(() => {
  if (existsSync(join(root, 'dist/index.js'))) return;
  throw new Error('the pages use the built package, but there is no dist: run npm run build first (npm test does).');
});

describe('the program in the README', () => {
  const [program] = namedBlocks('README.md').filter(({ file }) => file === 'hello.mts');

  it('works when it is pasted, again and again, and prints what the README says', async () => {
    if (program === undefined) throw new Error('expected a block ```ts hello.mts in README.md');
    using project = new Project([program]);
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    for (const _ of ['a new file', 'the same file']) {
      const { stdout, stderr } = await run(process.execPath, [program.file], { cwd: project.folder, timeout: 30_000 });
      expect(stderr).toBe('');
      expect(readme).toContain(`\n\`\`\`\n${stdout}\`\`\`\n`);
    }
  });

  it('is no longer than 20 lines', () => {
    expect(program?.text.trimEnd().split('\n').length).toBeLessThanOrEqual(20);
  });
});

describe.concurrent('the TypeScript files shown on a page compile', () => {
  it.each(pages)('%s', async (page) => {
    const blocks = namedBlocks(page);
    using project = new Project(blocks);
    const options = ['--noEmit', '--strict', '--target', 'esnext', '--module', 'nodenext', '--types', 'node'];
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const files = blocks.map(({ file }) => file);
    const flags = [...options, '--allowImportingTsExtensions', '--skipLibCheck'];
    // What tsc complains about is on standard output; show it.
    await run(process.execPath, [tsc, ...flags, ...files], { cwd: project.folder }).catch(
      (error: Error & { stdout: string }) => expect.fail(error.stdout || error.message),
    );
  });
});

describe('docs/guarantees.md', () => {
  const page = readFileSync(join(root, 'docs/guarantees.md'), 'utf8');
  const named = [...page.matchAll(/`((?:src|test)\/[\w./-]+)`: "([^"]+)"/g)];

  it('names tests that exist', () => {
    expect(named.length).toBeGreaterThan(30);
    const missing = named.filter(([, file = '', name = '']) => !readFileSync(join(root, file), 'utf8').includes(name));
    expect(missing.map(([text]) => text)).toEqual([]);
  });
});
