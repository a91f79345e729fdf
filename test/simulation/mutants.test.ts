import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type Mutant, mutants } from './mutants.ts';

const root = new URL('../../', import.meta.url).pathname;
/** Enough for the slowest of them, with a margin; see docs/guarantees.md for how many each needed. */
const SEEDS = { memory: 1_500, sqlite: 200 };

interface Caught {
  readonly seeds: number;
  readonly output: string;
}

/** Runs seeds on a copy of the sources with one mistake in it, until a promise is broken. */
async function hunt({ file, find, replace, engine = 'memory' }: Mutant): Promise<Caught | null> {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-mutant-'));
  try {
    for (const part of ['src', 'sim']) cpSync(join(root, part), join(folder, part), { recursive: true });
    const path = join(folder, 'src', file);
    const text = readFileSync(path, 'utf8');
    if (text.split(find).length !== 2) throw new Error(`expected ${JSON.stringify(find)} exactly once in src/${file}`);
    writeFileSync(
      path,
      text.replace(find, () => replace),
    );
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    const args = ['--disable-warning=ExperimentalWarning', 'sim/main.ts', '--first', '--engine', engine];
    const run = promisify(execFile)(process.execPath, [...args, '--count', String(SEEDS[engine])], { cwd: folder });
    return await run.then(
      () => null,
      ({ stdout, stderr }: { stdout: string; stderr: string }) => {
        const seeds = /^(\d+) seeds on/m.exec(stdout)?.[1];
        // A mutant that crashes the simulator is caught too, but must have said why.
        return { seeds: seeds === undefined ? 1 : Number(seeds), output: stdout + stderr };
      },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe.concurrent('the simulation notices when', () => {
  for (const mutant of mutants) {
    it(mutant.name, async () => {
      const caught = await hunt(mutant);
      if (process.env.MULLIGAN_MUTANTS) console.log(`${mutant.name}: ${caught?.seeds ?? 'not caught'}`);
      expect(caught?.output).toMatch(/broke \d+ promises/);
    });
  }
});
