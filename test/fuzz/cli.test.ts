import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, expect } from 'vitest';
import { Mulligan } from '../../src/index.ts';
import { it } from '../support/cli.ts';
import { json, loadedKey, mostly, oddDuration, text } from './arbitraries.ts';
import { hold } from './cases.ts';
import { expectNoRejection, watchRejections } from './rules.ts';
import { inProcess, type Printed } from './terminal.ts';

watchRejections();

const HELD = 'sqlite:held.db';
const home = process.cwd();
let folder = '';
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'mulligan-fuzz-cli-'));
  process.chdir(folder);
  writeFileSync('throws.mjs', 'throw Object.create(null);');
  writeFileSync('nothing.mjs', 'export const nothing = new Proxy({}, { get() { throw new RangeError("hostile"); } });');
  const library = pathToFileURL(join(home, 'src/index.ts'));
  writeFileSync(
    'jobs.mjs',
    `import { defineJob } from '${library}'; export const a = defineJob({ name: 'a', run() {} });`,
  );
  await using mulligan = await Mulligan.open(HELD);
  await mulligan.enqueue('held', { a: 1 });
});
afterAll(() => {
  process.chdir(home);
  rmSync(folder, { recursive: true, force: true });
});

/** What a command line must never do, whatever was typed. */
function expectCivil(args: readonly string[], { code, stdout, stderr }: Printed): void {
  expect([0, 1, 2]).toContain(code);
  expect(stderr).not.toMatch(/something unexpected|UNEXPECTED|TypeError|RangeError|\n +at /);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  if (code !== 0 && stdout === '') expect(stderr.trimEnd().split('\n')).toHaveLength(1);
  const dashes = args.indexOf('--');
  if (!(dashes === -1 ? args : args.slice(0, dashes)).includes('--json')) return;
  if (code === 0) return void (isHelp(stdout) || JSON.parse(stdout));
  if (stdout === '')
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: expect.any(String), message: expect.any(String) } });
}

const isHelp = (stdout: string): boolean => /^Usage: |^\d+\.\d+\.\d+$/m.test(stdout);

const word = fc.oneof(
  text,
  oddDuration.filter((odd) => odd.length < 1_000),
  fc.integer().map(String),
  fc.double().map(String),
  fc.constantFrom(
    '1',
    '5s',
    'dead',
    'poison',
    'reset',
    'default',
    '--',
    '-h',
    '--json',
    '--help',
    '-V',
    '-x',
    '--db',
    '--=',
    '--db=',
  ),
);
/** A command, the options it knows, and what must come last. */
interface Known {
  readonly words: readonly string[];
  readonly options?: readonly string[];
  readonly end?: readonly string[];
}

const selecting = ['name', 'queue', 'reason', 'limit'];
const working = ['queue', 'concurrency', 'retry-share', 'max-retries-in-flight', 'grace'];
const known: readonly Known[] = [
  { words: ['jobs', 'list'], options: ['state', 'queue', 'name', 'key', 'limit', 'after'] },
  { words: ['jobs', 'show'] },
  { words: ['jobs', 'cancel'] },
  { words: ['jobs'] },
  { words: ['dead', 'list'], options: ['name', 'queue', 'limit', 'after'] },
  { words: ['dead', 'redrive'], options: [...selecting, 'attempts', 'dry-run', 'rate', 'canary'] },
  { words: ['dead', 'discard'], options: [...selecting, 'yes'] },
  { words: ['queues', 'list'] },
  { words: ['queues', 'pause'] },
  { words: ['queues', 'resume'] },
  { words: ['retention', 'list'] },
  { words: ['retention', 'set'], options: ['name', 'by'] },
  { words: ['stats'] },
  { words: ['forecast'], options: ['queue'] },
  { words: ['help'] },
  { words: ['enqueue', 'a'], options: ['delay', 'priority', 'key', 'max-attempts', 'queue', 'jobs'] },
  // Without what is wrong at their end, these would go on: for ten seconds, and until they are stopped.
  { words: ['demo'], end: ['--db', 'sqlite:x'] },
  { words: ['work', '--jobs', 'jobs.mjs'], options: working, end: ['--lease', '1ms'] },
  { words: ['work', '--jobs', 'missing.ts'], options: working },
  { words: ['work', '--jobs', 'throws.mjs'] },
  { words: ['work', '--jobs', 'nothing.mjs'] },
];
const command: fc.Arbitrary<Known> = mostly(
  fc.constantFrom(...known),
  fc.oneof(loadedKey, text).map((typed) => ({ words: [typed] })),
);
/** Most databases are missing or make no sense: that is where most commands end. A few are there. */
const database = fc.oneof(
  { weight: 6, arbitrary: fc.constant(['--db', 'sqlite:missing.db']) },
  { weight: 2, arbitrary: word.filter((url) => !url.startsWith('sqlite:')).map((url) => ['--db', url]) },
  { weight: 1, arbitrary: fc.constant(['--db', HELD]) },
);

function optionsFor({ options = [] }: Known): fc.Arbitrary<string[]> {
  const option = mostly(fc.constantFrom(...options, 'json'), fc.constantFrom('nonsense', 'constructor', 'db'));
  return fc
    .array(fc.tuple(option, mostly(word, fc.constant(null))), { maxLength: 3 })
    .map((given) => given.flatMap(([name, value]) => (value === null ? [`--${name}`] : [`--${name}`, value])));
}

const line = command
  .chain((one) =>
    fc
      .tuple(fc.array(word, { maxLength: 2 }), optionsFor(one), database, fc.constantFrom([], ['--json']))
      .map((parts) => [...one.words, ...parts.flat(), ...(one.end ?? [])]),
  )
  // Reading standard input would wait for it.
  .filter((args) => !(args[0] === 'enqueue' && args.includes('-')));

const files = (): string[] => readdirSync(folder).filter((name) => !name.startsWith('held.db'));

it('any arguments are done, or refused in one line and with an exit code', async () => {
  await hold(
    'cli: arguments',
    fc.asyncProperty(line, async (args) => {
      const held = files();
      const printed = await inProcess(args, { MULLIGAN_DB: 'sqlite:missing.db' });
      expectNoRejection();
      expectCivil(args, printed);
      // Only an enqueue that was done may make a database.
      if (args[0] === 'enqueue' && printed.code === 0) rmSync('missing.db', { force: true });
      else expect(files()).toEqual(held);
    }),
  );
});

const policyFlag = fc.constantFrom(
  ...['preset', 'backoff', 'base', 'factor', 'max', 'delays', 'jitter', 'max-attempts', 'deadline', 'attempts', 'seed'],
);
const policyWord = fc.oneof(
  { weight: 1, arbitrary: word },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      'standard',
      'patient',
      'oneShot',
      '__proto__',
      'toString',
      'exponential',
      'linear',
      'fixed',
      'fibonacci',
      'table',
    ),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      '0ms',
      '1s',
      '5m',
      '365d',
      '366d',
      '1s,5s',
      ',',
      '1',
      '2.5',
      '1000',
      '1001',
      '0',
      '-1',
      '9'.repeat(30),
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom('none', 'full', 'spread', 'spread:0.2', 'spread=2', 'spread:') },
);

it('any policy is shown, or refused in one line', async () => {
  const args = fc
    .tuple(
      fc.constantFrom('preview', 'explain', 'list'),
      fc.array(fc.tuple(policyFlag, policyWord), { maxLength: 4 }),
      fc.constantFrom([], ['--json']),
    )
    .map(([verb, given, form]) => ['policy', verb, ...given.flatMap(([name, value]) => [`--${name}`, value]), ...form]);
  await hold(
    'cli: policy',
    fc.asyncProperty(args, async (typed) => {
      expectCivil(typed, await inProcess(typed, {}));
      expectNoRejection();
    }),
  );
});

const nonsense = fc.oneof(
  text,
  fc.constantFrom('{', '[1,]', "{'a':1}", 'NaN', '1e999', '0x1', '"\\ud800"', '[['.repeat(600), '\ufeff1'),
);
/** JSON as people type it: true, nearly true, and not at all. */
const payload = fc
  .oneof(
    json.map((value) => JSON.stringify(value)),
    json.map((value) => ` ${JSON.stringify(value, null, 2)}\n`),
    json.map((value) => JSON.stringify({ ['__proto__']: value, constructor: { prototype: value } })),
    nonsense,
  )
  // That alone stands for standard input.
  .filter((typed) => typed !== '-');

it('JSON that is enqueued comes back as it was typed, or is refused', async () => {
  await using mulligan = await Mulligan.open('sqlite:payloads.db');
  await hold(
    'cli: payloads',
    fc.asyncProperty(payload, async (typed) => {
      const args = ['enqueue', '--json', '--db', 'sqlite:payloads.db', '--', 'typed', typed];
      const printed = await inProcess(args, {});
      expectCivil(args, printed);
      if (printed.code !== 0) {
        expect(printed.code).toBe(2);
        return;
      }
      const { id } = JSON.parse(printed.stdout) as { id: string };
      expect(JSON.stringify((await mulligan.jobs.get(id))?.payload)).toBe(JSON.stringify(JSON.parse(typed)));
    }),
  );
});

it('the real process ends as civilly, with a payload on standard input too', async ({ cli }) => {
  await hold(
    'cli: processes',
    // No process takes a NUL in its arguments.
    fc.asyncProperty(
      line.filter((args) => !args.join('').includes('\0')),
      payload,
      async (args, input) => {
        const [other, piped] = await Promise.all([
          cli.run(args.map((arg) => arg.toWellFormed())),
          cli.run(['enqueue', 'piped', '-', '--json', '--db', 'sqlite:piped.db'], { input }),
        ]);
        expectCivil(args, { ...other, code: other.code ?? -1 });
        expectCivil(['--json'], { ...piped, code: piped.code ?? -1 });
      },
    ),
  );
});
