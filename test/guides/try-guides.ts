/* Tries the guides that need packages of others, with the packed Mulligan: `npm run guides`. It needs the registry. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeGuide } from './blocks.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Guide {
  readonly page: string;
  readonly packages: readonly string[];
  readonly manifest: Record<string, unknown>;
  readonly commands: readonly (readonly string[])[];
}

const guides: readonly Guide[] = [
  {
    page: 'nestjs.md',
    packages: ['@nestjs/core@11', '@nestjs/common@11', 'reflect-metadata', 'rxjs', 'typescript@5.9', '@types/node@24'],
    manifest: { type: 'module' },
    commands: [
      [process.execPath, 'node_modules/typescript/bin/tsc', '-p', '.'],
      [process.execPath, 'out/main.js'],
    ],
  },
  {
    page: 'commonjs-and-jest.md',
    packages: ['jest@30'],
    manifest: { jest: { testMatch: ['**/*.test.cjs'] } },
    commands: [[process.execPath, '--experimental-vm-modules', 'node_modules/jest/bin/jest.js']],
  },
  {
    page: 'bun.md',
    packages: ['bun@1.4'],
    manifest: { type: 'module', allowScripts: { bun: true } },
    commands: [
      ['node_modules/.bin/bun', 'hello.ts'],
      ['node_modules/.bin/bun', 'hello.ts', 'sqlite:mulligan.db'],
      ['node_modules/.bin/bun', 'test'],
    ],
  },
];

const folder = mkdtempSync(join(tmpdir(), 'mulligan-guides-'));
try {
  const call = (cwd: string, [program = '', ...args]: readonly string[]): void =>
    void execFileSync(program, args, { cwd, stdio: 'inherit' });
  call(root, ['npm', 'pack', '--ignore-scripts', '--silent', '--pack-destination', folder]);
  const archive = join(folder, 'mulligan-0.1.0.tgz');
  for (const { page, packages, manifest, commands } of guides) {
    console.log(`\n${page}`);
    const project = mkdtempSync(join(folder, 'project-'));
    writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'guide', private: true, ...manifest }));
    writeGuide(page, project);
    try {
      call(project, ['npm', 'install', '--silent', archive, ...packages]);
    } catch {
      console.log(`skipped: ${packages.join(', ')} cannot be installed here`);
      continue;
    }
    for (const command of commands) call(project, command);
  }
} finally {
  rmSync(folder, { recursive: true });
}
