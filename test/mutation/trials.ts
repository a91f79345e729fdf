import { dirname } from 'node:path';
import type { Answer, Fate, Trial } from './protocol.ts';
import { LAST_RESORT, type Mutation, type Workshop } from './workshop.ts';

/** What the tests of a mutant may take, by how far they are from it: its own file, its folder, elsewhere, the simulation. */
const BUDGETS_MS = [3_000, 8_000, 2_000, 1_500] as const;
/** A test this slow is not worth its time: it waits for processes, or looks for rare inputs. */
const SLOWEST_TEST_MS = 2_500;
/** A test that takes this much longer than usual hangs. */
const SLACK_MS = 2_000;
const TIMES_SLOWER = 5;

interface Test {
  readonly name: string;
  readonly file: string;
  readonly ms: number;
}

export interface Verdict {
  readonly mutant: Mutation;
  readonly fate: Fate;
  /** The test that noticed it, and what it said. */
  readonly test: string | null;
  readonly said: string;
}

/** Tries mutants, file by file, in as few processes as it takes. */
export class Trials {
  readonly #workshop: Workshop;
  readonly #mutants: readonly Mutation[];
  readonly #tests: Map<string, Test> = new Map();
  readonly #reachedBy: Map<number, Set<string>> = new Map();
  #atLoad: ReadonlySet<number> = new Set();

  constructor(workshop: Workshop, mutants: readonly Mutation[]) {
    this.#workshop = workshop;
    this.#mutants = mutants;
  }

  /** Runs all tests with nothing switched on, and learns which of them reach what. Answers those that fail. */
  async learn(): Promise<string[]> {
    const files = this.#workshop.tests;
    const failed: string[] = [];
    for (const answer of await this.#workshop.session({ files, trials: null, atLoad: null, testTimeoutMs: {} })) {
      if (answer.kind === 'loaded') this.#atLoad = new Set(answer.reached);
      if (answer.kind !== 'test') continue;
      if (answer.failed !== null) failed.push(`${answer.test}: ${answer.failed}`);
      if (answer.ms <= SLOWEST_TEST_MS) this.#keep(answer);
    }
    return failed;
  }

  #keep({ test: name, ms, reached }: Answer & { kind: 'test' }): void {
    this.#tests.set(name, { name, ms, file: name.slice(0, name.indexOf(' > ')) });
    for (const id of reached) this.#reachedBy.set(id, (this.#reachedBy.get(id) ?? new Set()).add(name));
  }

  async *run(mutants: readonly Mutation[]): AsyncGenerator<Verdict> {
    const { alone = [], together = [] } = Object.groupBy(mutants, ({ id }) =>
      this.#isAtLoad(id) ? 'alone' : 'together',
    );
    for (const own of Map.groupBy(together, ({ file }) => file).values()) yield* this.#together(own);
    for (const mutant of alone) yield await this.#alone(mutant);
  }

  #isAtLoad(id: number): boolean {
    return this.#atLoad.has(id);
  }

  async *#together(mutants: readonly Mutation[]): AsyncGenerator<Verdict> {
    let left = mutants;
    while (left.length > 0) {
      const trials = left.map((mutant) => ({ mutant: mutant.id, tests: this.#testsOf(mutant) }));
      const verdicts = verdictsOf(await this.#session(trials, null), left);
      for (const verdict of verdicts) {
        yield verdict.fate === 'tainted' ? await this.#alone(verdict.mutant) : verdict;
      }
      left = left.slice(verdicts.length);
    }
  }

  /** In a process of its own, which loads the tests that are further away only if those nearby notice nothing. */
  async #alone(mutant: Mutation): Promise<Verdict> {
    const tests = this.#testsOf(mutant);
    const isNear = (name: string): boolean => distance(this.#tests.get(name) as Test, mutant.file) < 2;
    const { near = [], far = [] } = Object.groupBy(tests, (name) => (isNear(name) ? 'near' : 'far'));
    const verdict = await this.#tryAlone(mutant, near);
    return verdict.fate === 'killed' || verdict.fate === 'timeout' || far.length === 0
      ? verdict
      : this.#tryAlone(mutant, far);
  }

  /** One that cannot even load its tests was noticed. */
  async #tryAlone(mutant: Mutation, tests: readonly string[]): Promise<Verdict> {
    const [verdict] = verdictsOf(await this.#session([{ mutant: mutant.id, tests }], mutant.id), [mutant]);
    return verdict ?? { mutant, fate: 'killed', test: null, said: 'the tests could not be loaded' };
  }

  #session(trials: readonly Trial[], atLoad: number | null): Promise<Answer[]> {
    const tests = [...new Set(trials.flatMap((trial) => trial.tests))].map((name) => this.#tests.get(name) as Test);
    const limits = tests.map(({ name, ms }) => [name, Math.round(SLACK_MS + TIMES_SLOWER * ms)] as const);
    const files = [...new Set(tests.map(({ file }) => file))];
    if (files.length === 0) {
      const unreached = ({ mutant }: Trial): Answer => ({
        kind: 'ended',
        mutant,
        fate: 'unreached',
        test: null,
        said: '',
      });
      return Promise.resolve(trials.map(unreached));
    }
    return this.#workshop.session({ files, trials, atLoad, testTimeoutMs: Object.fromEntries(limits) });
  }

  /** What runs when a file is loaded is tried by all who use that file. */
  #testsOf({ id, file }: Mutation): string[] {
    const names = new Set(this.#reachedBy.get(id));
    if (this.#isAtLoad(id)) for (const name of this.#usersOf(file)) names.add(name);
    const tests = [...names].map((name) => this.#tests.get(name) as Test);
    const byDistance = Map.groupBy(tests, (test) => distance(test, file));
    return BUDGETS_MS.flatMap((budgetMs, far) => affordable(byDistance.get(far) ?? [], budgetMs));
  }

  #usersOf(file: string): Set<string> {
    const users = new Set<string>();
    for (const mutant of this.#mutants) {
      if (mutant.file === file) for (const name of this.#reachedBy.get(mutant.id) ?? []) users.add(name);
    }
    if (users.size > 0) return users;
    const near = [...this.#tests.values()].filter((test) => dirname(test.file) === dirname(file));
    return new Set(near.map(({ name }) => name));
  }
}

/** Most mutants are noticed nearby. */
function distance(test: Test, file: string): number {
  if (test.file === LAST_RESORT) return 3;
  if (test.file === file.replace(/\.ts$/, '.test.ts')) return 0;
  return dirname(test.file) === dirname(file) ? 1 : 2;
}

/** The quickest tests of each file, none of them spending much more than the others: one file tests what another does not. */
function affordable(tests: readonly Test[], budgetMs: number): string[] {
  const files = [...Map.groupBy(tests, ({ file }) => file).values()].map((own) => ({
    waiting: own.toSorted((a, b) => a.ms - b.ms),
    spentMs: 0,
  }));
  const chosen: string[] = [];
  for (let leftMs = budgetMs; leftMs > 0; ) {
    const [next] = files.filter(({ waiting }) => waiting.length > 0).sort((a, b) => a.spentMs - b.spentMs);
    const test = next?.waiting.shift();
    if (next === undefined || test === undefined) break;
    next.spentMs += test.ms;
    leftMs -= test.ms;
    chosen.push(test.name);
  }
  return chosen;
}

/** In the order of the trials. One that was begun and never ended hung so that its process had to be ended. */
function verdictsOf(answers: readonly Answer[], mutants: readonly Mutation[]): Verdict[] {
  const verdicts: Verdict[] = [];
  const ended = new Map(answers.flatMap((one) => (one.kind === 'ended' ? [[one.mutant, one] as const] : [])));
  const begun = new Set(answers.flatMap((one) => (one.kind === 'begun' ? [one.mutant] : [])));
  for (const mutant of mutants) {
    const end = ended.get(mutant.id);
    if (end !== undefined) verdicts.push({ mutant, fate: end.fate, test: end.test, said: end.said });
    else if (begun.has(mutant.id)) verdicts.push({ mutant, fate: 'timeout', test: null, said: 'the process hung' });
  }
  return verdicts;
}
