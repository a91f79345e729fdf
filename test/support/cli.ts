import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type TestAPI, test } from 'vitest';

/** The sources, not dist: what runs here can never be stale. */
const main: string = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CallOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
  /** Another file than the command line itself, and what Node.js gets before it. */
  readonly entry?: string;
  readonly execArgv?: readonly string[];
}

export interface Running {
  readonly process: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves with the first match in what was printed on standard output, now or later. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
}

/** The command line, in a folder of its own. */
export class Cli {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'mulligan-cli-test-'));
  readonly #started: ChildProcess[] = [];

  /** Runs `mulligan ...args` to its end. */
  run(args: readonly string[], options: CallOptions = {}): Promise<Ended> {
    return this.start(args, options).ended;
  }

  /** The answer of a `--json` call that must succeed. */
  async json<T>(...args: readonly string[]): Promise<T> {
    const { code, stdout, stderr } = await this.run([...args, '--json']);
    if (code !== 0) throw new Error(`mulligan ${args.join(' ')} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout) as T;
  }

  start(args: readonly string[], { env, input = '', entry = main, execArgv = [] }: CallOptions = {}): Running {
    const child = spawn(process.execPath, [...execArgv, entry, ...args], {
      cwd: this.folder,
      env: { ...process.env, MULLIGAN_DB: '', MULLIGAN_DEBUG: '', FORCE_COLOR: undefined, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#started.push(child);
    const text = { stdout: '', stderr: '' };
    const waiting = new Set<() => void>();
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8').on('data', (chunk: string) => {
        text[stream] += chunk;
        for (const look of waiting) look();
      });
    }
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...text }));
    const printed = (pattern: RegExp): Promise<RegExpExecArray> =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(text.stdout);
          if (match !== null) resolve(match);
        };
        waiting.add(look);
        look();
        ended.then(() => reject(new Error(`ended without printing ${pattern}: ${text.stdout}${text.stderr}`)), reject);
      });
    return { process: child, ended, printed };
  }

  get files(): string[] {
    return readdirSync(this.folder).sort();
  }

  async cleanUp(): Promise<void> {
    for (const child of this.#started) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A test with a command line, of which nothing is left when it is over. */
export const it: TestAPI<{ cli: Cli }> = test.extend<{ cli: Cli }>({
  cli: async ({ task: _ }, use) => {
    const cli = new Cli();
    await use(cli);
    await cli.cleanUp();
  },
});

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
