import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { matchesGlob } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { EquivalentList } from './equivalent-list.ts';
import { mutantsOf } from './mutants.ts';
import { printReport, type Tried } from './report.ts';
import { Trials } from './trials.ts';
import { type Mutation, Workshop } from './workshop.ts';

const MUTATED = ['src/{retry,worker,store/memory,store/sqlite}/*.ts', 'src/store/{fill,totals}.ts', 'src/job.ts'];

const usage = `npm run mutation -- [--file GLOB] [--sample N] [--seed S] [--save FILE] [--again FILE]

  --file GLOB   only mutants of these sources
  --sample N    only N of them, chosen by --seed (default 1)
  --save FILE   write what became of each to a file
  --again FILE  only those that survived in such a file`;

function readArguments() {
  try {
    return parseArgs({
      options: {
        file: { type: 'string', default: '**' },
        sample: { type: 'string' },
        seed: { type: 'string', default: '1' },
        save: { type: 'string' },
        again: { type: 'string' },
      },
    }).values;
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

const root = fileURLToPath(new URL('../../', import.meta.url));
process.chdir(root);
const { file: wanted, sample, seed, save, again } = readArguments();

const sources = new Map<string, string[]>();

function sourceOf({ file, line }: Mutation): string {
  return (sources.get(file)?.[line - 1] ?? '').trim();
}

function findMutants(): Mutation[] {
  const files = globSync(MUTATED).filter((file) => !file.endsWith('.test.ts'));
  let id = 0;
  return files.sort().flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    sources.set(file, text.split('\n'));
    return mutantsOf(text, { sql: file.startsWith('src/store/sqlite/') }).map((mutant) => {
      const line = text.slice(0, mutant.at).split('\n').length;
      return { ...mutant, id: id++, file, line };
    });
  });
}

/** The same for the same seed and the same sources. */
function choose<T>(all: readonly T[], count: number, from: number): T[] {
  const rest = [...all];
  let state = from >>> 0;
  return Array.from({ length: Math.min(count, all.length) }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return rest.splice(Math.floor((state / 2 ** 32) * rest.length), 1)[0] as T;
  });
}

const mutants = findMutants();
const before = again === undefined ? null : (JSON.parse(readFileSync(again, 'utf8')) as Tried[]);
const survived = before && new Set(before.filter(({ fate }) => fate === 'survived' || fate === 'unreached').map(keyOf));

function keyOf({ file, source, change }: Pick<Tried, 'file' | 'source' | 'change'>): string {
  return `${file}: ${source}: ${change}`;
}

const listed = new EquivalentList();
let chosen = mutants.filter((one) => !listed.has(one, sourceOf(one)) && matchesGlob(one.file, wanted));
for (const text of listed.unused()) console.log(`equivalent.ts lists what is no mutant any more: ${text}`);
if (survived) chosen = chosen.filter((one) => survived.has(keyOf({ ...one, source: sourceOf(one) })));
if (sample !== undefined) chosen = choose(chosen, Number(sample), Number(seed));

const workshop = new Workshop(root, mutants, chosen);
process.on('SIGINT', () => void workshop.close().finally(() => process.exit(130)));
try {
  console.log(`${mutants.length} mutants, ${chosen.length} of them to be tried; first the tests without any`);
  const trials = new Trials(workshop, mutants);
  const failed = await trials.learn();
  if (failed.length > 0)
    throw new Error(`tests fail before anything is mutated:\n  ${failed.slice(0, 20).join('\n  ')}`);
  console.log(`they took ${Math.round(performance.now() / 1_000)} s`);
  const tried: Tried[] = [];
  const startedAt = performance.now();
  for await (const { mutant, fate, test, said } of trials.run(chosen)) {
    const { id, file, line, change } = mutant;
    tried.push({ id, file, line, source: sourceOf(mutant), change, fate, test, said });
    if (fate === 'survived' || fate === 'unreached') console.log(`${fate}: ${file}:${line}  ${change}`);
    if (save !== undefined) writeFileSync(save, JSON.stringify(tried, null, 1));
    if (tried.length % 50 === 0) progress(tried.length, startedAt);
  }
  printReport(tried);
} finally {
  await workshop.close();
}

function progress(done: number, startedAt: number): void {
  const minutes = (performance.now() - startedAt) / 60_000;
  const left = (minutes / done) * (chosen.length - done);
  console.log(`${done} of ${chosen.length} tried, about ${Math.ceil(left)} min left`);
}
