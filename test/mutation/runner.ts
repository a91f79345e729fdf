import { appendFileSync, readFileSync } from 'node:fs';
import { setEnvironmentData } from 'node:worker_threads';
import { type RunnerTask, type RunnerTestCase, type RunnerTestFile, TestRunner } from 'vitest';
import type { Answer, Fate, Session, Trial } from './protocol.ts';
import type { Switch } from './switch.ts';
import { Watchdog } from './watchdog.ts';

const session = JSON.parse(readFileSync(process.env.MUTATION_SESSION as string, 'utf8')) as Session;
const { setTimeout, clearTimeout } = globalThis;
const LONGEST_NAME = 300;
const TIMEOUT = Symbol('timeout');
/** While learning, only to end what hangs. */
const PATIENCE_MS = 60_000;

// Before any source is loaded: they take it then.
const shared: Switch = {
  on: new Int32Array(new SharedArrayBuffer(4)).fill(session.atLoad ?? -1),
  reached: new Uint8Array(new SharedArrayBuffer(session.mutants)),
};
setEnvironmentData('mutants', shared);

/** What nobody caught while a test ran. */
class Stray extends Error {}
const strays: unknown[] = [];
process.on('uncaughtException', (error) => strays.push(error));
process.on('unhandledRejection', (reason) => strays.push(reason));

/**
 * Vitest loads the tests; then they are run here, many times over in one process, with one mutant after the other
 * switched on. The tests have no hooks, so a test is a function.
 */
export default class MutationRunner extends TestRunner {
  readonly #watchdog = new Watchdog();
  #tests: ReadonlyMap<string, RunnerTestCase> = new Map();

  async onBeforeRunFiles(files: RunnerTestFile[]): Promise<void> {
    answer({ kind: 'loaded', reached: takeReached() });
    // Prepares what `expect` needs.
    for (const file of files) await this.onBeforeRunSuite(file);
    this.#tests = new Map(files.flatMap((file) => named(file, '')));
    if (session.trials === null) await this.#learn();
    else await this.#try(session.trials);
    this.#watchdog.rest();
    // Nothing is left for Vitest to do.
    for (const test of this.#tests.values()) test.mode = 'skip';
  }

  async #learn(): Promise<void> {
    for (const [name, test] of this.#tests) {
      const startedAt = performance.now();
      const error = await this.#run(test, PATIENCE_MS);
      const ms = performance.now() - startedAt;
      answer({ kind: 'test', test: name, ms, failed: error === null ? null : said(error), reached: takeReached() });
    }
  }

  async #try(trials: readonly Trial[]): Promise<void> {
    for (const { mutant, tests } of trials) {
      answer({ kind: 'begun', mutant });
      const { fate, test = null, error = '' } = await this.#fate(mutant, tests);
      answer({ kind: 'ended', mutant, fate, test, said: said(error) });
      // What hangs may come back to life, and the tests after it might suffer.
      if (fate === 'timeout' || fate === 'tainted') return;
    }
  }

  async #fate(mutant: number, tests: readonly string[]): Promise<{ fate: Fate; test?: string; error?: unknown }> {
    for (const name of tests) {
      const test = this.#tests.get(name) as RunnerTestCase;
      const timeoutMs = session.testTimeoutMs[name] as number;
      shared.on[0] = mutant;
      const error = await this.#run(test, timeoutMs);
      if (error === null) continue;
      if (error === TIMEOUT) return { fate: 'timeout', test: name };
      if (session.atLoad !== null) return { fate: 'killed', test: name, error };
      // It may as well come from what a mutant before this one has left behind.
      if (error instanceof Stray) return { fate: 'tainted', test: name, error };
      shared.on[0] = -1;
      const without = await this.#run(test, timeoutMs);
      return { fate: without === null ? 'killed' : 'tainted', test: name, error };
    }
    return { fate: 'survived' };
  }

  /** Answers what the test failed with, or null. */
  async #run(test: RunnerTestCase, timeoutMs: number): Promise<unknown> {
    // The watchdog is for what does not even let the timer below run.
    this.#watchdog.expect(timeoutMs + 1_000);
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise((resolve) => {
      timer = setTimeout(() => resolve(TIMEOUT), timeoutMs);
    });
    const error = await Promise.race([timeout, this.#call(test)]);
    clearTimeout(timer);
    return error;
  }

  async #call(test: RunnerTestCase): Promise<unknown> {
    try {
      strays.length = 0;
      test.result = { state: 'run' };
      this.onBeforeTryTask(test, { retry: 0, repeats: 0 });
      await TestRunner.getTestFn(test)();
      this.onAfterTryTask(test);
      await new Promise((resolve) => setImmediate(resolve));
      return strays.length === 0 ? null : new Stray(String(strays[0]));
    } catch (error) {
      return error ?? 'nothing';
    }
  }
}

/** Each test by the names of the suites it is in; the same name again gets a number. */
function named(task: RunnerTask, path: string, seen: Map<string, number> = new Map()): [string, RunnerTestCase][] {
  if (task.mode !== 'run' && task.mode !== 'queued') return [];
  if (task.type === 'suite') {
    const inside = 'filepath' in task ? '' : path === '' ? task.name : `${path} > ${task.name}`;
    return task.tasks.flatMap((child) => named(child, inside, seen));
  }
  const name = `${path} > ${task.name}`.slice(0, LONGEST_NAME);
  const count = (seen.get(name) ?? 0) + 1;
  seen.set(name, count);
  return [[count === 1 ? name : `${name} (${count})`, task]];
}

function takeReached(): number[] {
  const { reached } = shared;
  const ids: number[] = [];
  for (let id = reached.indexOf(1); id !== -1; id = reached.indexOf(1, id + 1)) ids.push(id);
  reached.fill(0);
  return ids;
}

function said(error: unknown): string {
  return String((error as { message?: unknown } | null)?.message ?? error).slice(0, 200);
}

/** At once, because the process may be ended at any moment. */
function answer(line: Answer): void {
  appendFileSync(session.answers, `${JSON.stringify(line)}\n`);
}
