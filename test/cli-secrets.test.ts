import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, vi } from 'vitest';
import { run } from '../src/cli/program.ts';
import { Mulligan } from '../src/mulligan.ts';
import { readTokenFile } from '../src/server/security/tokens.ts';
import { it } from './support/cli.ts';
import { newSchema } from './support/postgres-schema.ts';

/* What the command line does with passwords and tokens. */

/** Runs a command in this process; everything it prints. */
async function printedBy(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ code: number; text: string }> {
  let text = '';
  const spies = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, 'write').mockImplementation((part) => {
      text += String(part);
      return true;
    }),
  );
  try {
    return { code: await run(args, env), text };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

const PASSWORD = 'hunter2';
const mistyped = [
  `sqlite://app:${PASSWORD}@db/app`,
  `sqlite:/app:${PASSWORD}@db/app`,
  `sqlite:app:${PASSWORD}@db/app`,
  `sqlite://${PASSWORD}@db/app`,
  `postgres:/app:${PASSWORD}@db/app`,
  `postgres:app:${PASSWORD}@db/app`,
  `postgres:///app:${PASSWORD}@db/app`,
  `postgres://app:${PASSWORD}/x@db/app`,
  'postgres://app:4711?hunter2@db/app',
  `postgress://app:${PASSWORD}@db/app`,
  `postgres//app:${PASSWORD}@db/app`,
  `postgres;//app:${PASSWORD}@db/app`,
  `https:/app:${PASSWORD}@db/app`,
  `https://app:${PASSWORD}@db/app`,
  `memory:app:${PASSWORD}@db/app`,
  `app:${PASSWORD}@db/app`,
  `mysql://app:${PASSWORD}@db/app`,
];

describe.each(mistyped)('the mistyped address %s', (address) => {
  it('is refused by every command, and its password is not shown', async () => {
    for (const args of [
      ['jobs', 'list'],
      ['migrate'],
      ['serve', '--port', '0'],
      ['enqueue', 'a', '1'],
      ['backup', 'copy.db'],
      ['doctor'],
    ]) {
      for (const more of [[], ['--json']]) {
        const { code, text } = await printedBy([...args, ...more, '--db', address]);
        expect(text, args.join(' ')).not.toMatch(/hunter2|4711/);
        expect([args, code]).toEqual([args, 2]);
        const debugged = await printedBy([...args, ...more], { MULLIGAN_DB: address, MULLIGAN_DEBUG: '1' });
        expect(debugged.text, args.join(' ')).not.toMatch(/hunter2|4711/);
      }
    }
  });

  it('is refused by the library, without its password', async () => {
    const error: Error = await Mulligan.open(address, { log: () => {} }).then(
      () => {
        throw new Error('it was opened');
      },
      (reason) => reason,
    );
    expect(error.message).toMatch(/expected/);
    expect(error.message).not.toMatch(/hunter2|4711/);
  });
});

it('files may have such letters in their names', async ({ cli }) => {
  for (const name of ['backup@2026.db', 'a:b.db', './sub@x.db']) {
    expect(await cli.json('enqueue', 'a', '1', '--db', `sqlite:${name}`)).toMatchObject({ existed: false });
  }
});

it.skipIf(process.platform !== 'linux')(
  'a password in --db is not in the list of processes while a command runs',
  async ({ cli }) => {
    const url = new URL(`${inject('postgresUrl')}?schema=${newSchema()}`);
    url.password = PASSWORD;
    const address = String(url);
    for (const args of [['--db', address], [`--db=${address}`]]) {
      const server = cli.start(['serve', '--port', '0', ...args]);
      await server.printed(/Serving/);
      const shown = readFileSync(`/proc/${server.process.pid}/cmdline`, 'latin1');
      server.process.kill('SIGTERM');
      await server.ended;
      expect(shown).not.toContain(PASSWORD);
      expect(shown).toContain('serve --port 0 --db');
    }
  },
);

it('a token is added on a line of its own, also to a file whose last line does not end', async ({ cli }) => {
  const file = join(cli.folder, 'tokens');
  const make = (name: string) => printedBy(['token', 'create', name, '--scopes', 'read', '--token-file', file]);
  await make('a');
  writeFileSync(file, readFileSync(file, 'utf8').trimEnd());
  await make('b');
  await make('c');
  expect(readTokenFile(file).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  expect(readFileSync(file, 'utf8')).toMatch(/^(\{.*\}\n){3}$/);
});
