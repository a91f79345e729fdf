import { chmodSync, existsSync, readFileSync, statSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject } from 'vitest';
import { defineJob, Mulligan } from '../src/index.ts';
import { it } from './support/cli.ts';
import { expectSoundFile } from './support/sound-file.ts';

const count = defineJob<number>({ name: 'count', run() {} });

it('a backup that is taken while workers write is sound, and goes on where it was taken', async ({ cli }) => {
  const live = await Mulligan.open(`sqlite:${join(cli.folder, 'mulligan.db')}`, { jobs: [count] });
  await live.enqueueMany(
    count,
    Array.from({ length: 500 }, (_, input) => ({ input })),
  );
  live.work({ concurrency: 5 });
  let stops = false;
  const writing = (async () => {
    for (let input = 0; !stops; input++) await live.enqueue(count, input);
  })();
  const answer = await cli.json<{ file: string; jobs: number; bytes: number }>('backup', 'copy.db');
  stops = true;
  await writing;
  await live.close();
  expect(answer).toMatchObject({ file: 'copy.db' });
  expect(answer.jobs).toBeGreaterThanOrEqual(500);
  expect(cli.files.filter((file) => file.startsWith('copy'))).toEqual(['copy.db']);

  const path = join(cli.folder, 'copy.db');
  const restored = await Mulligan.open(`sqlite:${path}`, { jobs: [count], log: () => {} });
  const { states } = await restored.stats();
  expect(Object.values(states).reduce((sum, n) => sum + n, 0)).toBe(answer.jobs);
  const worker = restored.work({ lease: '1s' });
  await worker.whenIdle();
  const after = await restored.stats();
  expect(after.states.ready).toBe(0);
  await restored.close();
  expectSoundFile(path);
});

it('a backup takes the address of a file, too', async ({ cli }) => {
  await cli.run(['enqueue', 'count', '1']);
  expect(await cli.json('backup', 'sqlite:copy.db')).toMatchObject({ file: 'copy.db', jobs: 1 });
  expect(cli.files.filter((file) => file.includes('copy'))).toEqual(['copy.db']);
});

it('a backup never overwrites a file', async ({ cli }) => {
  await cli.run(['enqueue', 'count', '1']);
  writeFileSync(join(cli.folder, 'copy.db'), 'precious');
  const { code, stderr } = await cli.run(['backup', 'copy.db']);
  expect(code).toBe(2);
  expect(stderr).toContain('expected a file that does not exist, got copy.db');
  expect(readFileSync(join(cli.folder, 'copy.db'), 'utf8')).toBe('precious');
});

it('a backup of what is no queue is refused, and leaves nothing behind', async ({ cli }) => {
  expect(await cli.run(['backup', 'copy.db'])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/there is no database/),
  });
  writeFileSync(join(cli.folder, 'mulligan.db'), 'not a database, but long enough to look like one'.repeat(100));
  const foreign = await cli.run(['backup', 'copy.db']);
  expect(foreign).toMatchObject({ code: 1, stderr: expect.stringContaining('a file SQLite cannot read') });
  writeFileSync(join(cli.folder, 'mulligan.db'), '');
  expect(await cli.run(['backup', 'copy.db'])).toMatchObject({ code: 1, stderr: expect.stringMatching(/it is empty/) });
  expect(await cli.run(['backup', 'no/such/folder.db'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/a folder that exists/),
  });
  expect(existsSync(join(cli.folder, 'copy.db'))).toBe(false);
  expect(cli.files).toEqual(['mulligan.db']);
});

it('a PostgreSQL database is left to pg_dump', async ({ cli }) => {
  const { code, stderr } = await cli.run(['backup', 'copy.db', '--db', inject('postgresUrl')]);
  expect(code).toBe(2);
  expect(stderr).toContain('pg_dump');
});

it.for([
  ['0600', 0o600],
  ['0640', 0o640],
  ['0664', 0o664],
] as const)(
  'a backup of a file with mode %s has that mode, and is never readable by more while it is written',
  async ([, mode], { cli }) => {
    await cli.run(['enqueue', 'count', '1']);
    chmodSync(join(cli.folder, 'mulligan.db'), mode);
    const modeOf = (name: string) => statSync(join(cli.folder, name), { throwIfNoEntry: false })?.mode ?? 0;
    let seen = 0;
    const watcher = watch(cli.folder, (_, name) => {
      if (String(name).startsWith('copy.db')) seen |= modeOf(String(name));
    });
    await cli.json('backup', 'copy.db');
    watcher.close();
    expect(modeOf('copy.db') & 0o777).toBe(mode);
    expect(seen & 0o777 & ~mode).toBe(0);
  },
);
