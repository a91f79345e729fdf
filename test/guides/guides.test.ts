import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { writeGuide } from './blocks.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

beforeAll(() => {
  if (existsSync(join(root, 'dist/index.js'))) return;
  throw new Error('expected the built package in dist, got none. Run npm run build first (npm test does).');
});

describe.concurrent('what a guide shows works as it stands', () => {
  it.each([
    ['testing.md', ['--test', 'email.test.mts'], 4],
    ['webhooks.md', ['--test', 'webhooks.test.mts'], 1],
  ])('%s', async (page, args, tests) => {
    const folder = mkdtempSync(join(tmpdir(), 'mulligan-guide-'));
    try {
      mkdirSync(join(folder, 'node_modules'));
      symlinkSync(root, join(folder, 'node_modules/mulligan'), 'dir');
      writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
      writeGuide(page, folder);
      const env = { ...process.env, NODE_TEST_CONTEXT: undefined, NODE_OPTIONS: undefined };
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder, env, timeout: 50_000 });
      expect(stdout).toMatch(new RegExp(`pass ${tests}\\n`));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
