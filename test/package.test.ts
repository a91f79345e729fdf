import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
