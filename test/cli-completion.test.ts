import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect } from 'vitest';
import { Cli, it } from './support/cli.ts';

const scripts = new Map<string, string>();

beforeAll(async () => {
  const cli = new Cli();
  try {
    for (const shell of ['bash', 'zsh', 'fish']) scripts.set(shell, (await cli.run(['completion', shell])).stdout);
  } finally {
    await cli.cleanUp();
  }
});

function isMissing(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return false;
  } catch {
    console.warn(`skipped, completion in ${program}: it is not installed`);
    return true;
  }
}

/** What bash offers for the last of these words. */
async function offered(folder: string, words: readonly string[]): Promise<string[]> {
  const script = `${scripts.get('bash')}
    COMP_WORDS=(mulligan "$@"); COMP_CWORD=$#; _mulligan; printf '%s\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await promisify(execFile)('bash', ['-c', script, 'bash', ...words], { cwd: folder });
  return stdout.split('\n').filter((line) => line !== '');
}

describe.skipIf(isMissing('bash'))('completion in bash', () => {
  it('offers commands, options and files where they belong', async ({ cli }) => {
    writeFileSync(join(cli.folder, 'my-jobs.ts'), '');
    const cases: [words: string[], expected: unknown][] = [
      [['jo'], ['jobs']],
      [['jobs', ''], expect.arrayContaining(['list', 'show', 'cancel', '--db'])],
      [['jobs', 'list', '--st'], ['--state']],
      [['--db', 'jobs', 'gates', 'un'], ['unpin']],
      [['jobs', 'list', '--limit', '5', '--af'], ['--after']],
      [['jobs', 'list', '--limit', ''], []],
      [['work', '--jobs', 'my-'], ['my-jobs.ts']],
      [['gates', 'list', 'jobs', 'sh'], []],
    ];
    const found = await Promise.all(cases.map(([words]) => offered(cli.folder, words)));
    expect(found).toEqual(cases.map(([, expected]) => expected));
  });
});

describe.skipIf(isMissing('zsh'))('completion in zsh', () => {
  it('is a script that zsh can read', () => {
    execFileSync('zsh', ['-n', '-c', scripts.get('zsh') as string]);
  });
});

describe.skipIf(isMissing('fish'))('completion in fish', () => {
  it('is a script that fish can read', () => {
    execFileSync('fish', ['-n', '-c', scripts.get('fish') as string]);
  });
});

describe('completion', () => {
  it('in zsh and fish has every command and option with what it is for, quoted', () => {
    expect(scripts.get('zsh')).toContain("'list:Jobs, newest first.'");
    expect(scripts.get('zsh')).toContain("'--state:");
    expect(scripts.get('fish')).toContain(
      `complete -c mulligan -n '__mulligan_at "jobs"' -a list -d 'Jobs, newest first.'`,
    );
    expect(scripts.get('fish')).toMatch(/__mulligan_at "work"' -l jobs -r -F -d '/);
  });

  it('of another shell is refused, and says which there are', async ({ cli }) => {
    const { code, stderr } = await cli.run(['completion', 'tcsh']);
    expect(code).toBe(2);
    expect(stderr).toContain('completion: shell: expected one of bash, zsh, fish, got "tcsh"');
  });
});
