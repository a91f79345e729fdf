import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { Agent, get } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { storeConformance } from '../src/store/conformance/index.ts';
import { type NamedTest, testNamesIn } from './support/test-names.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);

/** A TypeScript block with a file name after its language is a whole file; without one it is a fragment. */
interface NamedBlock {
  readonly file: string;
  readonly text: string;
}

function namedBlocks(page: string): NamedBlock[] {
  const blocks = readFileSync(join(root, page), 'utf8').matchAll(/^```ts (\S+)\n(.*?)^```$/gms);
  return [...blocks].map(([, file = '', text = '']) => ({ file, text }));
}

/** A project that has the package installed. */
class Project implements Disposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'mulligan-readme-'));

  constructor(blocks: readonly NamedBlock[]) {
    const modules = join(this.folder, 'node_modules');
    mkdirSync(modules);
    symlinkSync(root, join(modules, 'mulligan'), 'dir');
    symlinkSync(join(root, 'node_modules', '@types'), join(modules, '@types'), 'dir');
    writeFileSync(join(this.folder, 'package.json'), '{ "type": "module" }');
    for (const { file, text } of blocks) writeFileSync(join(this.folder, file), text);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true });
  }
}

const pages = ['README.md', 'CONTRIBUTING.md', ...readdirSync(join(root, 'docs')).map((file) => `docs/${file}`)].filter(
  (page) => page.endsWith('.md') && namedBlocks(page).length > 0,
);

function needBuild(): void {
  if (existsSync(join(root, 'dist/index.js'))) return;
  throw new Error('expected the built package in dist, got none. Run npm run build first (npm test does).');
}

describe('the program in the README', () => {
  beforeAll(needBuild);
  const [program] = namedBlocks('README.md').filter(({ file }) => file === 'hello.mts');

  it('works when it is pasted, again and again, and prints what the README says', async () => {
    if (program === undefined) throw new Error('expected a block ```ts hello.mts in README.md');
    using project = new Project([program]);
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    for (const _ of [1, 2, 3]) {
      const { stdout, stderr } = await run(process.execPath, [program.file], { cwd: project.folder, timeout: 30_000 });
      expect(stderr).toBe('');
      expect(readme).toContain(`\n\`\`\`\n${stdout}\`\`\`\n`);
    }
  });

  it('is no longer than 15 lines, three of them empty', () => {
    expect(program?.text.trimEnd().split('\n').length).toBeLessThanOrEqual(15);
  });
});

describe('the server in the README', () => {
  beforeAll(needBuild);

  it('ends cleanly on SIGTERM under load from keep-alive connections', async () => {
    const port = await freePort();
    const blocks = namedBlocks('README.md')
      .filter(({ file }) => file === 'server.ts' || file === 'jobs.ts')
      .map(({ file, text }) => ({
        file,
        text: text
          .replace('.listen(3000)', `.listen(${port}, '127.0.0.1')`)
          .replace(/https:\/\/mail[\w.]+/, 'http://127.0.0.1:1'),
      }));
    using project = new Project(blocks);
    const child = spawn(process.execPath, ['server.ts'], { cwd: project.folder });
    let stderr = '';
    child.stderr.on('data', (text) => (stderr += text));
    const ended = once(child, 'exit');
    const agent = new Agent({ keepAlive: true, maxSockets: 20 });
    const ask = (): Promise<number> =>
      new Promise((resolve, reject) => {
        const request = get({ port, host: '127.0.0.1', agent }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode ?? 0));
        });
        request.on('error', reject);
      });
    while ((await ask().catch(() => 0)) === 0) expect(child.exitCode, stderr).toBe(null);
    const answers: number[] = [];
    let stopped = false;
    const clients = Array.from({ length: 20 }, async () => {
      while (!stopped)
        await ask().then(
          (status) => answers.push(status),
          () => new Promise(setImmediate),
        );
    });
    await vi.waitFor(() => expect(answers.length).toBeGreaterThan(100), 10_000);
    child.kill('SIGTERM');
    const [code, signal] = await ended;
    stopped = true;
    await Promise.all(clients);
    agent.destroy();
    expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
    expect(new Set(answers)).toEqual(new Set([200]));
  }, 30_000);
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

describe.concurrent('the TypeScript files shown on a page compile', () => {
  beforeAll(needBuild);
  it.each(pages)('%s', async (page) => {
    const blocks = namedBlocks(page);
    using project = new Project(blocks);
    const options = ['--noEmit', '--strict', '--target', 'esnext', '--module', 'nodenext', '--types', 'node'];
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const files = blocks.map(({ file }) => file);
    const flags = [...options, '--allowImportingTsExtensions', '--skipLibCheck'];
    // What tsc complains about is on standard output; show it.
    await run(process.execPath, [tsc, ...flags, ...files], { cwd: project.folder }).catch(
      (error: Error & { stdout: string }) => expect.fail(error.stdout || error.message),
    );
  });
});

describe('the README', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');

  it('has at most 900 words on 170 lines', () => {
    expect(readme.split(/\s+/).filter((word) => word !== '').length).toBeLessThanOrEqual(900);
    expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(170);
  });

  it('links only what is in the package', () => {
    const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { files: string[] };
    const links = [...readme.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
    expect(links.length).toBeGreaterThan(5);
    expect(links.filter((link) => !files.includes(link.split('/')[0] ?? ''))).toEqual([]);
  });
});

describe('the map of the docs', () => {
  it('links every page and every guide', () => {
    const map = readFileSync(join(root, 'docs/README.md'), 'utf8');
    const all = globSync(['*.md', 'guides/*.md', 'internals/*.md'], { cwd: join(root, 'docs') });
    expect(all.length).toBeGreaterThan(20);
    expect(all.filter((page) => page !== 'README.md' && !map.includes(`](${page})`))).toEqual([]);
  });
});

describe('the page about the command line', () => {
  it('names every command', async () => {
    const rows = readFileSync(join(root, 'docs/command-line.md'), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('| `mulligan '));
    const named = (words: readonly string[]): boolean =>
      rows.some((row) => words.every((word) => new RegExp(`[ \`]${word}[ \`]`).test(row.split(' | ')[0] ?? '')));
    const missing: string[] = [];
    for (const command of await commandsOf([])) {
      const below = await commandsOf([command]);
      const each = below.length === 0 ? [[command]] : below.map((one) => [command, one]);
      missing.push(...each.filter((words) => !named(words)).map((words) => words.join(' ')));
    }
    expect(missing).toEqual([]);
  });
});

/** The commands that the help of a command lists, but `help` itself. */
async function commandsOf(command: readonly string[]): Promise<string[]> {
  const { stdout } = await run(process.execPath, ['bin/mulligan.js', ...command, '--help'], { cwd: root });
  const [, listed = ''] = stdout.split('\nCommands:\n');
  const names = [...(listed.split('\n\n')[0] ?? '').matchAll(/^ {2}([a-z-]+)/gm)].map(([, name = '']) => name);
  return names.filter((name) => name !== 'help');
}

describe('every link of a page', () => {
  const all = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...globSync('docs/**/*.md', { cwd: root })];
  const textOf = (page: string): string => readFileSync(join(root, page), 'utf8').replaceAll(/^```.*?^```$/gms, '');
  /** As GitHub makes them of headings. */
  const anchorsOf = (page: string): Set<string> =>
    new Set(
      [...textOf(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
        heading
          .toLowerCase()
          .replaceAll(/[^\w\- ]/g, '')
          .replaceAll(' ', '-'),
      ),
    );

  it('leads to a file, and to a heading of it', () => {
    const broken = all.flatMap((page) =>
      [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, link = '']) => link)
        .filter((link) => {
          if (link.startsWith('https:')) return false;
          const [path = '', anchor] = link.split('#');
          const file = path === '' ? page : join(page, '..', path);
          if (!existsSync(join(root, file))) return true;
          return anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).has(anchor);
        })
        .map((link) => `${page}: ${link}`),
    );
    expect(broken).toEqual([]);
  });
});

describe('a page about the code', () => {
  const pages = ['CONTRIBUTING.md', ...globSync('docs/internals/*.md', { cwd: root })];
  const files = globSync('{src,sim,test,web}/**/*.ts', { cwd: root });
  /** By file: the names in it. Those that it only imports are left out. */
  const namesIn = new Map(
    files.map((file) => {
      const text = readFileSync(join(root, file), 'utf8').replaceAll(/^import .*?;$/gms, '');
      return [file, new Set(text.match(/#?\w+/g))];
    }),
  );
  const endingWith = (path: string): string[] => files.filter((file) => `/${file}`.endsWith(`/${path}`));
  const isName = (text: string): boolean => /^#?\w+$/.test(text) && /[a-z][A-Z]|_|#/.test(text);
  /** Of the worked example, which is not in the code. */
  const isOfExample = (name: string): boolean => name === 'skipAboveBytes';

  it.each(pages)('%s names files and names that exist, and a name in the file that has it', (page) => {
    const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```.*?^```$/gms, '');
    const quoted = new Set([...text.matchAll(/`([^`\n]+)`/g)].map(([, one = '']) => one));
    const noFile = [...quoted].filter((one) => /^[\w./-]+\.ts$/.test(one) && endingWith(one).length === 0);
    const known = new Set([...namesIn].flatMap(([file, names]) => (file.startsWith('test/') ? [] : [...names])));
    const noName = [...quoted].filter((one) => isName(one) && !isOfExample(one) && !known.has(one));
    const elsewhere = [...text.matchAll(/`(#?\w+)` in\s+`([\w./-]+\.ts)`/g)]
      .filter(([, name = '', path = '']) => !endingWith(path).some((file) => namesIn.get(file)?.has(name)))
      .map(([match]) => match);
    expect({ noFile, noName, elsewhere }).toEqual({ noFile: [], noName: [], elsewhere: [] });
  });
});

describe('CONTRIBUTING.md', () => {
  const page = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');

  it('lists every folder of the sources', () => {
    const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => `src/${name}/`).filter((folder) => !page.includes(`\n${folder} `))).toEqual([]);
  });

  it('says where the verbs of a store are listed', () => {
    const [, text = ''] = page.split('\n## Adding a store\n');
    expect(text).toContain('src/store/verbs.ts');
  });
});

describe('docs/guarantees.md', () => {
  const page = readFileSync(join(root, 'docs/guarantees.md'), 'utf8');
  /** - `file`: "name of the test" (where ...), the last part where a test needs what some machines do not have. */
  const named = [...page.matchAll(/`((?:src|test)\/[\w./-]+)`: "([^"]+)"( \(where [^)]+\))?/g)].map(
    ([text, file = '', name = '', where = '']) => ({ text, file, name, where }),
  );
  const files = new Set(named.map(({ file }) => file).filter((file) => existsSync(join(root, file))));
  const tests = new Map([...files].map((file) => [file, testNamesIn(readFileSync(join(root, file), 'utf8'))]));
  const testsOf = ({ file, name }: { file: string; name: string }): NamedTest[] =>
    tests.get(file)?.filter((test) => test.name === name) ?? [];
  const conformance = named.filter(({ file }) => file.startsWith('src/store/conformance/'));

  it('names at least 30 tests', () => {
    expect(named.length).toBeGreaterThan(30);
  });

  it('names each test by its whole name', () => {
    expect(named.filter((one) => testsOf(one).length === 0).map(({ text }) => text)).toEqual([]);
  });

  it('names no test that is skipped, and says "(where ...)" beside one that some machines skip', () => {
    const runs = (one: (typeof named)[number]): boolean =>
      testsOf(one).every(({ runs }) => runs === 'always' || (runs === 'sometimes' && one.where !== ''));
    expect(named.filter((one) => !runs(one)).map(({ text }) => text)).toEqual([]);
  });

  it('names conformance cases that the suite holds and that no store skips', () => {
    const suite = new Set(storeConformance(() => Promise.reject()).map(({ name }) => name));
    const storeTests = globSync('src/store/{memory,sqlite,postgres}/**/*.test.ts', { cwd: root });
    const sources = storeTests.map((file) => readFileSync(join(root, file), 'utf8'));
    const runs = ({ name }: { name: string }): boolean =>
      suite.has(name) && !sources.some((source) => /storeConformance/.test(source) && source.includes(name));
    expect(conformance.filter((one) => !runs(one)).map(({ text }) => text)).toEqual([]);
  });
});

describe('the names of tests in a file', () => {
  it.each<[string, NamedTest[]]>([
    ["it('a', f)", [{ name: 'a', runs: 'always' }]],
    ["it.skip('a', f)", [{ name: 'a', runs: 'never' }]],
    ["it.todo('a')", [{ name: 'a', runs: 'never' }]],
    ["it('a', { skip: true }, f)", [{ name: 'a', runs: 'never' }]],
    ["it.skipIf(b)('a', f)", [{ name: 'a', runs: 'sometimes' }]],
    ["it.skipIf(b).each(c)('a %s', f)", [{ name: 'a %s', runs: 'sometimes' }]],
    ["it('a', (context) => { if (b) context.skip(); })", [{ name: 'a', runs: 'sometimes' }]],
    ["it('a ' + b, f)", []],
    [`it(\`a \${b}\`, f)`, [{ name: `a \${b}`, runs: 'always' }]],
    ["cases('claim', { 'a case': f, b: g })", ['a case', 'b'].map((name) => ({ name, runs: 'always' }))],
    ["describe.skip('g', () => { it('a', f); })", ['g', 'a'].map((name) => ({ name, runs: 'never' }))],
    ["describe.skipIf(b).each(c)('g', () => { it('a', f); })", ['g', 'a'].map((name) => ({ name, runs: 'sometimes' }))],
    [
      "it.only('a', f); it('b', f)",
      [
        { name: 'a', runs: 'always' },
        { name: 'b', runs: 'never' },
      ],
    ],
  ])('%s', (source, tests) => {
    expect(testNamesIn(source)).toEqual(tests);
  });
});
