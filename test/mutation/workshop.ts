import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { createVitest, type Vitest } from 'vitest/node';
import { instrument, type Numbered } from './instrument.ts';
import type { Answer, Session } from './protocol.ts';

export interface Mutation extends Numbered {
  readonly file: string;
  readonly line: number;
}

/** Without those that need hooks or a process of their own. */
const TESTS = ['src/*.test.ts', 'src/{retry,worker,store,testing,observe}/**/*.test.ts', 'test/fuzz/retry.test.ts'];
const EXCLUDED = ['src/clock.test.ts', 'src/observe/log.test.ts'];
const SQLITE = 'src/store/sqlite/';
/** A few seeds of the simulation. */
export const LAST_RESORT = 'test/mutation/seeds.mutation.ts';
/** Vitest remembers every run; it is made anew now and then. */
const SESSIONS_PER_VITEST = 100;

/** A copy of the tree in which every mutant is a switch away, and a Vitest that is kept warm. */
export class Workshop {
  readonly tests: readonly string[];
  readonly #root: string;
  readonly #mutants: number;
  #vitest: Vitest | null = null;
  #sessions = 0;

  /** `chosen`: the mutants that will be tried. */
  constructor(source: string, mutants: readonly Mutation[], chosen: readonly Mutation[]) {
    this.#mutants = mutants.length;
    this.#root = mkdtempSync(join(tmpdir(), 'mulligan-mutation-'));
    for (const part of ['src', 'test', 'package.json', 'tsconfig.json']) {
      cpSync(join(source, part), join(this.#root, part), { recursive: true });
    }
    symlinkSync(join(source, 'node_modules'), join(this.#root, 'node_modules'));
    for (const [file, own] of Map.groupBy(mutants, (mutant) => mutant.file)) {
      const path = join(this.#root, file);
      const toSwitch = relative(dirname(path), join(this.#root, 'test/mutation/switch.ts'));
      writeFileSync(path, instrument(readFileSync(path, 'utf8'), own, toSwitch));
    }
    const found = globSync(TESTS, { cwd: this.#root }).filter((file) => !EXCLUDED.includes(file));
    // The slowest to learn from, and of use to nobody else.
    const needsSqlite = chosen.some(({ file }) => file.startsWith(SQLITE));
    this.tests = [...found.filter((file) => needsSqlite || !file.startsWith(SQLITE)).sort(), LAST_RESORT];
    process.env.NODE_COMPILE_CACHE = join(this.#root, '.compiled');
  }

  /** One process. It may end before all is done; the answers say how far it came. */
  async session(task: Omit<Session, 'mutants' | 'answers'>): Promise<Answer[]> {
    const path = join(this.#root, 'session.json');
    const answers = join(this.#root, 'answers.jsonl');
    rmSync(answers, { force: true });
    writeFileSync(path, JSON.stringify({ ...task, mutants: this.#mutants, answers } satisfies Session));
    process.env.MUTATION_SESSION = path;
    const vitest = await this.#open();
    const { unhandledErrors, testModules } = await vitest.runTestSpecifications(await vitest.globTestSpecifications());
    if (++this.#sessions % SESSIONS_PER_VITEST === 0) await this.#rest();
    if (!existsSync(answers)) {
      const errors = [...unhandledErrors, ...testModules.flatMap((module) => module.errors())];
      return task.atLoad === null ? fail(errors) : [];
    }
    const lines = readFileSync(answers, 'utf8').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line) as Answer);
  }

  async #open(): Promise<Vitest> {
    this.#vitest ??= await createVitest('test', {
      root: this.#root,
      config: false,
      watch: false,
      include: ['test/mutation/session.mutation.ts'],
      runner: join(this.#root, 'test/mutation/runner.ts'),
      pool: 'forks',
      maxWorkers: 1,
      testTimeout: 120_000,
      teardownTimeout: 1_000,
      reporters: [{}],
      silent: true,
    });
    return this.#vitest;
  }

  async #rest(): Promise<void> {
    await this.#vitest?.close();
    this.#vitest = null;
  }

  async close(): Promise<void> {
    await this.#rest();
    rmSync(this.#root, { recursive: true, force: true });
  }
}

function fail(errors: readonly unknown[]): never {
  throw new Error('the tests could not be loaded', { cause: new AggregateError(errors) });
}
