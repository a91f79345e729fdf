import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, describe, expect, inject } from 'vitest';
import { functions } from '../src/store/postgres/schema/functions.ts';
import { migrations } from '../src/store/postgres/schema/tables.ts';
import { PostgresStore } from '../src/store/postgres/store.ts';
import { type Ended, it } from './support/cli.ts';
import { newSchema, runSql } from './support/postgres-schema.ts';

const PASSWORD = 'n0b0dy-kn0ws';
const server = inject('postgresUrl');
const made: string[] = [];
const own = functions.version;
const TABLES = migrations.length;

/** The server asks for no password, so any will do; it must not be seen again. */
function address(schema: string = newSchema()): { url: string; schema: string } {
  made.push(schema);
  return { url: `${server.replace('postgres@', `postgres:${PASSWORD}@`)}?schema=${schema}`, schema };
}

afterAll(async () => {
  for (const schema of made) await runSql(server, `DROP SCHEMA IF EXISTS ${schema} CASCADE`);
});

function expectDiscreet({ stdout, stderr }: Ended): void {
  expect(stdout + stderr).not.toContain(PASSWORD);
}

async function schemasLike(schema: string): Promise<unknown[]> {
  return runSql(server, 'SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]);
}

describe.concurrent('mulligan on PostgreSQL', () => {
  it('does all that it does on a file, by --db and by MULLIGAN_DB', async ({ cli }) => {
    const { url } = address();
    const { id } = await cli.json<{ id: string }>('enqueue', 'a', '{"n":1}', '--queue', 'q', '--db', url);
    await cli.json('gates', 'open', 'smtp', '--force', '--by', 'ana', '--db', url);
    const env = { MULLIGAN_DB: url };
    for (const [args, said] of [
      [['jobs', 'list'], id],
      [['jobs', 'show', id], '{"n":1}'],
      [['queues', 'pause', 'q'], 'Queue q is paused.'],
      [['queues', 'list'], 'paused'],
      [['queues', 'resume', 'q'], 'Queue q is resumed.'],
      [['stats'], '1 ready'],
      [['stats'], 'smtp (open, pinned)'],
      [['gates', 'list'], 'pinned by ana'],
      [['gates', 'show', 'smtp'], 'It is pinned open: nothing starts, not even probes. 0 jobs wait behind it.'],
      [['gates', 'unpin', 'smtp'], 'Gate smtp follows its rules again; it is open now: probes come first'],
      [['jobs', 'cancel', id], 'cancelled'],
      [['dead', 'list'], 'No dead job matches.'],
      [['dead', 'redrive', '--name', 'a', '--dry-run'], 'Would redrive 0 dead jobs.'],
    ] as const) {
      const ended = await cli.run(args, { env });
      expect(ended).toMatchObject({ code: 0, stderr: '' });
      expect(ended.stdout).toContain(said);
      expectDiscreet(ended);
    }
    expect(cli.files).toEqual([]);
  });

  it('says which server it works on, without the password', async ({ cli }) => {
    const { url } = address();
    const source = new URL('../src/index.ts', import.meta.url).href;
    writeFileSync(
      join(cli.folder, 'jobs.ts'),
      `import { defineJob } from '${source}'; export const a = defineJob({ name: 'a', run() {} });`,
    );
    await cli.json('enqueue', 'a', '1', '--db', url);
    const working = cli.start(['work', '--jobs', 'jobs.ts', '--db', url]);
    await working.printed(/Working on default in postgres:\/\/127\.0\.0\.1:\d+\/postgres: a\./);
    await working.printed(/completed/);
    working.process.kill('SIGTERM');
    const ended = await working.ended;
    expect(ended.code).toBe(0);
    expectDiscreet(ended);
  });

  it('makes no schema for a command that only reads', async ({ cli }) => {
    const { url, schema } = address();
    const ended = await cli.run(['stats', '--db', url]);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(
      new RegExp(`schema ${schema}: expected version ${TABLES}, found none; run .mulligan migrate.`),
    );
    expectDiscreet(ended);
    expect(await schemasLike(schema)).toEqual([]);
  });

  it.for([
    [['stats', '--db', `postgres://me:${PASSWORD}@127.0.0.1:1/db`], 1],
    [['stats', '--db', `postgres://me:${PASSWORD}/x@host/db`], 2],
    [['stats', '--db', `postgres://me:12/${PASSWORD}@host/db`], 2],
    [['stats', '--db', `postgres://me:x@${PASSWORD}@127.0.0.1:1/db`], 1],
    [['stats', '--db', `mysql://me:${PASSWORD}@host/${'d'.repeat(100)}`], 2],
    [['stats', '--db', `mysql://me:${'x'.repeat(70)}${PASSWORD}@host/db`], 2],
    [['stats', '--db', `host=x password=${PASSWORD}`], 2],
    [['stats', `postgres://me:${PASSWORD}@host/db`], 2],
    [['stats', `--bd=postgres://me:${PASSWORD}@host/db`], 2],
    [['doctor', '--db', `postgres://me:${PASSWORD}@127.0.0.1:1/db`], 1],
    [['migrate', '--db', `postgres://me:${PASSWORD}@127.0.0.1:1/db`], 1],
  ] as const)('does not repeat the password of %j', async ([args, code], { cli }) => {
    for (const env of [{}, { MULLIGAN_DEBUG: '1' }]) {
      const ended = await cli.run(args, { env });
      expect(ended.code).toBe(code);
      expectDiscreet(ended);
    }
  });
});

describe.concurrent('mulligan migrate', () => {
  it('makes the schema, says so, and does nothing the second time', async ({ cli }) => {
    const { url, schema } = address();
    const first = await cli.run(['migrate', '--db', url]);
    expect(first).toEqual({
      code: 0,
      stdout: `schema ${schema}: version 0 -> ${TABLES}, functions ${own}\n`,
      stderr: '',
    });
    const second = await cli.run(['migrate', '--db', url]);
    expect(second).toEqual({ code: 0, stdout: `schema ${schema}: version ${TABLES}, nothing to do\n`, stderr: '' });
    expect(await cli.json('migrate', '--db', url)).toEqual({
      schema,
      from: TABLES,
      to: TABLES,
      functions: own,
      installed: false,
    });
    const dry = await cli.run(['migrate', '--dry-run', '--db', url]);
    expect(dry).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('nothing to do') });
  });

  it('can be called by many at once', async ({ cli }) => {
    const { url, schema } = address();
    const all = await Promise.all(Array.from({ length: 4 }, () => cli.run(['migrate', '--db', url])));
    const done = all.filter(({ stdout }) => stdout.startsWith(`schema ${schema}: version 0 -> ${TABLES}, `));
    expect(all.map(({ stderr }) => stderr).join('')).toBe('');
    expect([all.map(({ code }) => code), done.length]).toEqual([[0, 0, 0, 0], 1]);
  });

  it('prints with --dry-run what makes the schema when it is applied by hand, and changes nothing', async ({ cli }) => {
    const { url, schema } = address();
    const { code, stdout, stderr } = await cli.run(['migrate', '--dry-run', '--db', url]);
    const noted = `-- schema ${schema}: version 0 -> ${TABLES}, functions ${own}; nothing was touched\n`;
    expect({ code, stderr }).toEqual({ code: 0, stderr: noted });
    expect(await schemasLike(schema)).toEqual([]);
    await expect(PostgresStore.open({ url, migrate: false })).rejects.toThrow('run `mulligan migrate`');

    const client = new pg.Client({ connectionString: server });
    await client.connect();
    await client.query(stdout);
    await client.end();
    const store = await PostgresStore.open({ url, migrate: false });
    expect(await store.queues()).toEqual([]);
    await store.close();
    expect((await cli.run(['migrate', '--db', url])).stdout).toContain('nothing to do');
  });

  it('refuses a newer schema in one line', async ({ cli }) => {
    const { url, schema } = address();
    await cli.run(['migrate', '--db', url]);
    await runSql(server, `UPDATE ${schema}.schema_identity SET version = 99, minimum_reader = 99`);
    for (const flags of [[], ['--dry-run']]) {
      const ended = await cli.run(['migrate', ...flags, '--db', url]);
      expect(ended).toMatchObject({ code: 1, stdout: '' });
      expect(ended.stderr).toBe(
        `mulligan: schema ${schema}: expected tables for version ${TABLES}, got version 99, which needs a mulligan that knows version 99; update mulligan. Nothing was touched\n`,
      );
    }
  });

  it('drops the functions of another version when it is told to', async ({ cli }) => {
    const { url, schema } = address();
    await cli.run(['migrate', '--db', url]);
    await runSql(
      server,
      `INSERT INTO ${schema}.function_sets (version) VALUES ('0badcafe');
       CREATE FUNCTION ${schema}.older_0badcafe() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
    );
    const listed = (await cli.run(['doctor', '--db', url])).stdout;
    expect(listed).toMatch(new RegExp(`^ok +functions +${own}, of this program; of other versions: 0badcafe \\(`, 'm'));
    const drop = ['migrate', '--drop-functions', '0badcafe', '--db', url];
    expect(await cli.run(drop)).toMatchObject({ code: 0, stdout: `schema ${schema}: functions 0badcafe dropped\n` });
    expect(await cli.run(drop)).toMatchObject({ code: 0, stdout: `schema ${schema}: no functions 0badcafe\n` });
    expect(await cli.run(['migrate', '--drop-functions', own, '--db', url])).toMatchObject({ code: 1, stdout: '' });
  });

  it('says of a file that it is migrated when it is opened', async ({ cli }) => {
    const ended = await cli.run(['migrate', '--db', 'sqlite:jobs.db']);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toBe('jobs.db: nothing to do here: a SQLite file is migrated when it is opened.\n');
    expect(await cli.run(['migrate', '--dry-run'])).toMatchObject({ code: 0, stdout: '' });
    expect(cli.files).toEqual([]);
  });
});

describe.concurrent('mulligan doctor', () => {
  it('ends with 1 when something is bad: the server of these tests does not sync', async ({ cli }) => {
    const { url } = address();
    await cli.run(['migrate', '--db', url]);
    const ended = await cli.run(['doctor', '--db', url]);
    expect(ended).toMatchObject({ code: 1, stderr: '' });
    expect(ended.stdout).toMatch(/^bad +durability +fsync is off\n +-> set fsync = on/m);
    expect(ended.stdout).toMatch(/^\d+ ok, \d+ warnings?, 1 bad\.$/m);
    expectDiscreet(ended);
    const json = await cli.run(['doctor', '--json', '--db', url]);
    expect(json.code).toBe(1);
    expectDiscreet(json);
    const { database, health, checks } = JSON.parse(json.stdout);
    expect({ database, health }).toEqual({ database: expect.stringMatching(/^postgres:\/\/127/), health: 'bad' });
    expect(checks).toContainEqual({ name: 'autovacuum', health: 'ok', found: 'on', advice: null });
  });

  it('ends with 0 when nothing is bad', async ({ cli }) => {
    await cli.json('enqueue', 'a', '1', '--db', 'sqlite:jobs.db');
    const ended = await cli.run(['doctor', '--db', 'sqlite:jobs.db']);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toMatch(/^ok +jobs +1 ready$/m);
    expect(ended.stdout).toMatch(/, 0 bad\.$/m);
  });

  it('does not create a file that does not exist', async ({ cli }) => {
    const ended = await cli.run(['doctor', '--db', 'sqlite:none.db']);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/^mulligan: there is no database none\.db/);
    expect(cli.files).toEqual([]);
  });
});
