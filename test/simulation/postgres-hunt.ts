import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Mistake, withMistake } from './mistake.ts';

/** What may notice a mistake in the PostgreSQL store, the quickest first. */
export const watchers = ['concurrency', 'conformance', 'unit', 'simulation'] as const;
export type Watcher = (typeof watchers)[number];

export interface Noticed {
  readonly by: Watcher;
  /** The failed test, or the broken promise. */
  readonly how: string;
}

/** Seeds of the simulation with overlapping statements. */
const SEEDS = 12;
const LIMIT_MS = 600_000;
const vitestBin = join('node_modules', 'vitest', 'vitest.mjs');
const store = 'src/store/postgres';

/** The command that each runs in the copy. A mistake that makes it hang counts as noticed. */
const commands: Readonly<Record<Watcher, (url: string) => readonly string[]>> = {
  concurrency: () => [vitestBin, 'run', '--bail=1', `${store}/concurrency.test.ts`],
  conformance: () => [vitestBin, 'run', '--bail=1', `${store}/postgres.test.ts`, '-t', 'keeps the contract'],
  unit: () => [
    vitestBin,
    'run',
    '--bail=1',
    `${store}/scan`,
    `${store}/postgres.test.ts`,
    '-t',
    '^(?!.*keeps the contract)',
  ],
  simulation: (url) => [
    '--disable-warning=ExperimentalWarning',
    'sim/main.ts',
    ...['--first', '--engine', 'postgres-interleaved', '--postgres', url, '--count', String(SEEDS)],
  ],
};

/** Makes the mistake in a copy and runs the watchers on it until one notices. `more` goes to each of their commands. */
export function hunt(
  mistake: Mistake,
  url: string,
  by: readonly Watcher[] = watchers,
  more: readonly string[] = [],
): Promise<Noticed | null> {
  return withMistake(mistake, ['src', 'sim', 'test'], async (folder) => {
    writeFileSync(join(folder, 'vitest.config.ts'), configFor(url));
    for (const watcher of by) {
      const how = await run([...commands[watcher](url), ...more], folder);
      if (how !== null) return { by: watcher, how };
    }
    return null;
  });
}

/** Without the set-up that would start another server. */
function configFor(url: string): string {
  const test = { include: ['src/**/*.test.ts'], pool: 'forks', testTimeout: 15_000, provide: { postgresUrl: url } };
  return `export default ${JSON.stringify({ test })};\n`;
}

async function run(args: readonly string[], cwd: string): Promise<string | null> {
  try {
    await promisify(execFile)(process.execPath, args, {
      cwd,
      timeout: LIMIT_MS,
      env: { ...process.env, NO_COLOR: '1' },
    });
    return null;
  } catch (error) {
    const { stdout = '', stderr = '', killed } = error as { stdout?: string; stderr?: string; killed?: boolean };
    if (killed) return `no end after ${LIMIT_MS} ms`;
    const lines = (stdout + stderr).split('\n');
    const telling =
      lines.find((line) => /^ *(FAIL|×|guarantee \d)/.test(line)) ?? lines.find((line) => /rror/.test(line));
    return (telling ?? 'it failed').trim();
  }
}
