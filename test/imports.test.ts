import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

/*
 * The import graph of src/, type imports included: a module that needs another's types cannot be understood without it
 * either. Tests are left out, and so are dynamic imports when cycles are looked for: those load a store on demand.
 */

const root = join(import.meta.dirname, '..', 'src');

interface Module {
  /** Relative to src/, as `store/memory/store.ts`. */
  readonly path: string;
  /** Modules of src/ that it imports. */
  readonly imports: readonly string[];
  /** Everything else that it imports: `node:util`, `pg`. */
  readonly packages: readonly string[];
}

const statement = /^(?:import|export)\s(?:[^'"]*?\sfrom\s)?['"]([^'"]+)['"]/gm;

function readModule(file: string): Module {
  const text = readFileSync(file, 'utf8');
  const specifiers = [...text.matchAll(statement)].map(([, specifier]) => specifier as string);
  return {
    path: relative(root, file),
    imports: specifiers.filter(isRelative).map((specifier) => relative(root, join(dirname(file), specifier))),
    packages: specifiers.filter((specifier) => !isRelative(specifier)),
  };
}

function isRelative(specifier: string): boolean {
  return specifier.startsWith('.');
}

const modules = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  .sort()
  .map((path) => readModule(join(root, path)));
const byPath = new Map(modules.map((module) => [module.path, module]));

/** Each cycle once, as `a.ts -> b.ts -> a.ts`. */
function cycles(): string[] {
  const found = new Map<string, string>();
  const done = new Set<string>();
  const visit = (path: string, above: readonly string[]): void => {
    const at = above.indexOf(path);
    if (at >= 0) {
      const members = above.slice(at);
      const first = members.indexOf([...members].sort()[0] as string);
      const turned = [...members.slice(first), ...members.slice(0, first)];
      found.set(turned.join(), [...turned, turned[0]].join(' -> '));
      return;
    }
    if (done.has(path)) return;
    for (const next of byPath.get(path)?.imports ?? []) visit(next, [...above, path]);
    done.add(path);
  };
  for (const { path } of modules) visit(path, []);
  return [...found.values()].sort();
}

/** What the modules of a folder import that `isAllowed` does not name, as `retry/a.ts imports store/b.ts`. */
function violations(folder: string, isAllowed: (imported: string) => boolean): string[] {
  return modules
    .filter(({ path }) => path.startsWith(folder))
    .flatMap(({ path, imports, packages }) =>
      [...imports, ...packages]
        .filter((imported) => !imported.startsWith(folder) && !isAllowed(imported))
        .map((imported) => `${path} imports ${imported}`),
    );
}

describe('the modules of src', () => {
  it('are all read: every relative import names a module', () => {
    expect(modules.length).toBeGreaterThan(50);
    const unknown = modules.flatMap(({ imports }) => imports.filter((path) => !byPath.has(path)));
    expect(unknown).toEqual([]);
  });

  it('do not import each other in a circle', () => {
    expect(cycles()).toEqual([]);
  });
});

describe('the folder', () => {
  const anywhere = ['config.ts', 'duration.ts', 'errors.ts', 'lane.ts'];

  it('retry/ is pure: it imports no store, no worker and no clock', () => {
    const allowed = new Set([...anywhere, 'brand.ts']);
    expect(violations('retry/', (path) => allowed.has(path) || path.startsWith('untrusted/'))).toEqual([]);
  });

  it('untrusted/ imports only the rendering of values and durations, and a hash', () => {
    const allowed = ['bytes.ts', 'config.ts', 'duration.ts'];
    expect(violations('untrusted/', (path) => allowed.includes(path))).toEqual([]);
  });

  it('store/ does not know of workers, of the queue in front of it, or of the command line', () => {
    const inFront = ['worker/', 'observe/', 'cli/', 'testing/', 'mulligan.ts', 'enqueue.ts', 'operate.ts'];
    expect(violations('store/', (path) => !inFront.some((one) => path.startsWith(one)))).toEqual([]);
  });

  it('worker/ uses stores only by their contract', () => {
    const contract = ['store.ts', 'verbs.ts', 'forwarding.ts', 'fill.ts'].map((file) => `store/${file}`);
    const isContract = (path: string): boolean => contract.includes(path);
    expect(violations('worker/', (path) => !path.startsWith('store/') || isContract(path))).toEqual([]);
  });

  it.each(['memory', 'sqlite', 'postgres'])('store/%s/ does not import another store', (kind) => {
    const others = ['memory', 'sqlite', 'postgres'].filter((one) => one !== kind).map((one) => `store/${one}/`);
    expect(violations(`store/${kind}/`, (path) => !others.some((other) => path.startsWith(other)))).toEqual([]);
  });
});
