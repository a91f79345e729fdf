import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { withMistake } from './mistake.ts';
import { type Mutant, mutants } from './mutants.ts';

/** Enough for the slowest of them, with a margin; see docs/simulation.md for how many each needed. */
const SEEDS = { memory: 1_500, sqlite: 200 };

/** Every n-th is hunted by `npm test`; `npm run mutants` hunts them all and prints how many seeds each took. */
const EVERY = process.env.MULLIGAN_MUTANTS === undefined ? 20 : 1;

interface Caught {
  readonly seeds: number;
  readonly output: string;
}

/** Runs seeds on a copy of the sources with one mistake in it, until a promise is broken. */
function hunt(mutant: Mutant): Promise<Caught | null> {
  const { engine = 'memory', from = 1 } = mutant;
  const seeds = ['--first', '--engine', engine, '--from', String(from), '--count', String(SEEDS[engine])];
  return withMistake(mutant, ['src', 'sim'], (folder) =>
    promisify(execFile)(process.execPath, ['--disable-warning=ExperimentalWarning', 'sim/main.ts', ...seeds], {
      cwd: folder,
    }).then(
      () => null,
      ({ stdout, stderr }: { stdout: string; stderr: string }) => {
        const seeds = /^(\d+) seeds on/m.exec(stdout)?.[1];
        // A mutant that crashes the simulator is caught too, but must have reported why.
        return { seeds: seeds === undefined ? 1 : Number(seeds), output: stdout + stderr };
      },
    ),
  );
}

describe('each mistake', () => {
  it.each(mutants)('can still be made: $name', ({ file, find }) => {
    const text = readFileSync(new URL(`../../src/${file}`, import.meta.url), 'utf8');
    expect(text.split(find)).toHaveLength(2);
  });
});

describe.concurrent('the simulation notices when', () => {
  for (const mutant of mutants.filter((_, index) => index % EVERY === 0)) {
    it(mutant.name, async () => {
      const caught = await hunt(mutant);
      if (process.env.MULLIGAN_MUTANTS) console.log(`${mutant.name}: ${caught?.seeds ?? 'not caught'}`);
      expect(caught?.output).toMatch(/broke \d+ promises/);
    });
  }
});
