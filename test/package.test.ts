import { execFile } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'mulligan-package-'));
const packed = join(folder, 'package');

beforeAll(async () => {
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: root });
  const [, archive = ''] = /"version": "([^"]+)"/.exec(readFileSync(join(root, 'package.json'), 'utf8')) ?? [];
  await run('tar', ['-xzf', join(folder, `mulligan-${archive}.tgz`), '-C', folder]);
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true }));

it('the published package runs no script where it is installed', () => {
  const { scripts } = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8')) as { scripts: object };
  const atInstall = ['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare'];
  expect(Object.keys(scripts).filter((name) => atInstall.includes(name))).toEqual([]);
});

it('the published package has all that its manifest points to, and no sources or tests', () => {
  const { bin, exports } = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8')) as {
    bin: Record<string, string>;
    exports: Record<string, string | Record<string, string>>;
  };
  const targets = [...Object.values(bin), ...Object.values(exports).flatMap((one) => Object.values(Object(one)))];
  const files = targets.filter((target) => String(target).length > 1).map(String);
  expect(files.filter((file) => !existsSync(join(packed, file)))).toEqual([]);
  expect(['src', 'test', 'sim', 'bench'].filter((name) => existsSync(join(packed, name)))).toEqual([]);
});

it('links in the published pages lead to files of the package', () => {
  const pages = globSync('**/*.md', { cwd: packed });
  const broken = pages.flatMap((page) => {
    const links = readFileSync(join(packed, page), 'utf8').matchAll(/\]\(([^)\s#]+)[^)]*\)/g);
    const files = [...links].map(([, target = '']) => target).filter((target) => !/^[a-z]+:/.test(target));
    return files
      .filter((target) => !existsSync(join(packed, dirname(page), target)))
      .map((target) => `${page}: ${target}`);
  });
  expect(pages.length).toBeGreaterThan(20);
  expect(broken).toEqual([]);
});

/** What the compiler says of a program that uses these entry points. */
async function compiled(name: string, entries: readonly string[], options: object): Promise<string> {
  const project = join(folder, name);
  mkdirSync(join(project, 'node_modules', '@types'), { recursive: true });
  symlinkSync(packed, join(project, 'node_modules', 'mulligan'));
  const imports = entries.map((entry, index) => `import * as entry${index} from '${join('mulligan', entry)}';`);
  const used = `export const used = [${entries.map((_, index) => `entry${index}`).join(', ')}];`;
  writeFileSync(join(project, 'program.ts'), [...imports, used, ''].join('\n'));
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2023',
    strict: true,
    noEmit: true,
    preserveSymlinks: true,
    ...options,
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }));
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  return run(tsc, ['-p', project]).then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  );
}

it('the published types need what the manifest names, and in a program for browsers not even that', async () => {
  const { peerDependencies } = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8')) as {
    peerDependencies: object;
  };
  expect(peerDependencies).toHaveProperty('@types/node');
  // The dependencies lie beside the package, as where it is installed.
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const all = ['.', 'dashboard', 'postgres', 'server', 'simulate', 'store', 'testing'];
  expect(await compiled('with-node', all, { types: ['node'], typeRoots: [join(root, 'node_modules', '@types')] })).toBe(
    '',
  );
  const lib = ['es2023', 'esnext.disposable', 'dom'];
  const others = all.filter((entry) => entry !== 'server');
  expect(await compiled('without-node', others, { types: [], lib })).toBe('');
}, 60_000);
