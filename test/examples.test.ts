import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, inject, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const examples = readdirSync(new URL('../examples/', import.meta.url)).filter((file) => /\.m?[jt]s$/.test(file));

beforeAll(() => {
  if (existsSync(new URL('../dist/index.js', import.meta.url))) return;
  throw new Error('examples import the built package, but there is no dist: run npm run build first (npm test does).');
});

describe.concurrent('each example ends by itself, says something and complains about nothing', () => {
  it.each(examples)('%s', async (file) => {
    // Rejects, with what was printed, when the exit code is not 0.
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [`examples/${file}`], {
      cwd: root,
      env: { ...process.env, DATABASE_URL: inject('postgresUrl') },
      timeout: 50_000,
      killSignal: 'SIGKILL',
    });
    expect(stdout.trim()).not.toBe('');
    expect(stderr).toBe('');
  });
});
