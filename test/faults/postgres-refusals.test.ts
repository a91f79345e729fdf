import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { examine } from '../../src/cli/doctor/examine.ts';
import { ConfigError, Mulligan, StoreIncompatibleError, StoreUnavailableError } from '../../src/index.ts';
import { toStoreError } from '../../src/store/postgres/connection/failure.ts';
import { PostgresStore } from '../../src/store/postgres/index.ts';
import { newSchema, runSql } from '../support/postgres-schema.ts';
import { freePort, PostgresServer } from '../support/postgres-server.ts';

const url = inject('postgresUrl');
const SECRET = 'x7-hunter-2';

let strict: PostgresServer;
beforeAll(async () => {
  strict = await PostgresServer.start();
  await strict.query(`CREATE ROLE guarded LOGIN PASSWORD '${SECRET}'`);
  const rules = join(strict.data, 'pg_hba.conf');
  writeFileSync(rules, `host all guarded 127.0.0.1/32 scram-sha-256\n${readFileSync(rules, 'utf8')}`);
  await strict.query('SELECT pg_reload_conf()');
});
afterAll(() => strict[Symbol.asyncDispose]());

async function refusalOf(address: string): Promise<Error> {
  const refusal = await Mulligan.open(address).then(
    async (mulligan) => {
      await mulligan.close();
      return new Error('it was opened');
    },
    (error: Error) => error,
  );
  // Whatever is wrong, a log that shows it all the way down shows no password.
  for (let error: unknown = refusal; error instanceof Error; error = error.cause) {
    expect(`${error.stack} ${JSON.stringify(error)}`).not.toContain(SECRET);
  }
  return refusal;
}

describe('an address that cannot be opened is refused with one clear error, without its password:', () => {
  it.each([
    [
      'a wrong password',
      `guarded:${SECRET}`,
      'postgres',
      /authentication failed for user "guarded": the user or the password is wrong; both are in the URL .* or in PGUSER, PGPASSWORD/,
    ],
    ['no password', 'guarded', 'postgres', /none was given; one is looked for in the URL .* or in PGUSER, PGPASSWORD/],
    ['a database that is not there', 'postgres', 'nowhere', /"nowhere" does not exist.*create the database first/],
    [
      'a role that is not there',
      `nobody:${SECRET}`,
      'postgres',
      /"nobody" does not exist.*check the user, and that pg_hba/,
    ],
  ])('%s', async (what, user, database, message) => {
    const wrong = what === 'a wrong password' ? `${user}-not` : user;
    const refusal = await refusalOf(`postgres://${wrong}@127.0.0.1:${strict.port}/${database}`);
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal.message).toMatch(message);
  });

  it.each([
    ['a wrong password', ':wrong', /the user or the password is wrong/],
    ['no password', '', /none was given/],
  ])('%s, also by the doctor', async (_, password, message) => {
    const address = `postgres://guarded${password}@127.0.0.1:${strict.port}/postgres`;
    const [check, ...others] = await examine({ url: address, from: '--db' });
    expect(check).toMatchObject({ name: 'connection', health: 'bad', advice: 'mend that and look again' });
    expect(check?.found).toMatch(message);
    expect(others).toEqual([]);
  });

  it('a host that is not there', async () => {
    const refusal = await refusalOf(`postgres://me:${SECRET}@nowhere.invalid/jobs`);
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal.message).toMatch(/^postgres:\/\/nowhere\.invalid\/jobs: .*nowhere\.invalid/);
  });

  it('ports on which no server listens, all of them', async () => {
    const [one, other] = [await freePort(), await freePort()];
    const refusal = await refusalOf(`postgres://me:${SECRET}@127.0.0.1:${one},127.0.0.1:${other}/jobs`);
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal.message).toBe(
      `postgres://127.0.0.1:${one},127.0.0.1:${other}/jobs: none of the hosts can be used: ` +
        `127.0.0.1:${one}: connect ECONNREFUSED 127.0.0.1:${one}; 127.0.0.1:${other}: connect ECONNREFUSED 127.0.0.1:${other}`,
    );
  });

  it('hosts that cannot be used for different reasons, each with its own', async () => {
    const down = await freePort();
    const refusal = await refusalOf(`postgres://guarded:wrong@127.0.0.1:${strict.port},127.0.0.1:${down}/postgres`);
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal.message).toMatch(/:\d+: password authentication failed .*; 127\.0\.0\.1:\d+: connect ECONNREFUSED/);
  });

  it.each([
    ['an @ in the password', `postgres://me:a@${SECRET}@127.0.0.1:1/jobs`],
    ['a / in the password', `postgres://me:a/${SECRET}@127.0.0.1:1/jobs`],
    ['a # in the password', `postgres://me:a#${SECRET}@127.0.0.1:1/jobs`],
    ['a ? in the password', `postgres://me:a?${SECRET}@127.0.0.1:1/jobs`],
    ['a password as a parameter', `postgres://127.0.0.1:1/jobs?user=me&password=${SECRET}`],
  ])('%s', async (_, address) => {
    const refusal = await refusalOf(address);
    expect(refusal).toHaveProperty('code', expect.stringMatching(/^(CONFIG|STORE_UNAVAILABLE)$/));
    expect(refusal.message).not.toBe('');
  });

  it('a name with several addresses, all of which refuse', () => {
    const refused = ['::1', '127.0.0.1'].map((host) => new Error(`connect ECONNREFUSED ${host}:5432`));
    const both = Object.assign(new AggregateError(refused, ''), { code: 'ECONNREFUSED' });
    expect(toStoreError(both, 'postgres://localhost/jobs')).toHaveProperty(
      'message',
      `postgres://localhost/jobs: ${refused[0]?.message}, ${refused[1]?.message}`,
    );
  });

  it('the right password opens', async () => {
    await strict.query('GRANT CREATE ON DATABASE postgres TO guarded');
    const mulligan = await Mulligan.open(`postgres://guarded:${SECRET}@127.0.0.1:${strict.port}/postgres?schema=mine`);
    await mulligan.close();
  });
});

describe('a database that does not fit is refused, and nothing is touched:', () => {
  it('one with an encoding that cannot hold every character, also by the doctor', async () => {
    const name = newSchema();
    await runSql(url, `CREATE DATABASE ${name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`);
    const address = url.replace(/\/postgres$/, `/${name}`);
    const refusal = await refusalOf(address);
    expect(refusal).toBeInstanceOf(StoreIncompatibleError);
    expect(refusal.message).toMatch(/^expected a database with encoding UTF8, got LATIN1. Create another one/);
    const checks = await examine({ url: address, from: '--db' });
    expect(checks.find((check) => check.name === 'encoding')).toMatchObject({
      health: 'bad',
      found: 'LATIN1, expected UTF8',
    });
    expect(await runSql(address, "SELECT 1 FROM pg_namespace WHERE nspname = 'mulligan'")).toEqual([]);
    await runSql(url, `DROP DATABASE ${name}`);
  });

  it('tables that a newer version has made, and that this one cannot use', async () => {
    const schema = newSchema();
    await (await PostgresStore.open({ url, schema })).close();
    await runSql(url, `UPDATE ${schema}.schema_identity SET version = version + 1, minimum_reader = version + 1`);
    const refusal = await Mulligan.open(`${url}?schema=${schema}`).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreIncompatibleError);
    expect(refusal).toHaveProperty(
      'message',
      expect.stringMatching(/expected tables for version \d+, got version \d+, .* update mulligan/),
    );
    await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
  });

  it('an empty schema, when another process migrates', async () => {
    const schema = newSchema();
    const refusal = await PostgresStore.open({ url, schema, migrate: false }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreIncompatibleError);
    expect(refusal).toHaveProperty('message', expect.stringMatching(/found none; run `mulligan migrate`/));
    expect(await runSql(url, 'SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])).toEqual([]);
  });

  it.each(['Mixed', 'with-dash', 'a b', '1st', 'pg_mine', 'x'.repeat(51), '', 'a;drop table jobs', 'ä'])(
    'the name %j',
    async (schema) => {
      await expect(PostgresStore.open({ url, schema })).rejects.toThrow(ConfigError);
      const address = `${url}?schema=${encodeURIComponent(schema)}`;
      await expect(Mulligan.open(address)).rejects.toThrow(ConfigError);
    },
  );
});

describe('the error of a role that may not do something says what, as whom and where to read on:', () => {
  const role = newSchema();
  const schema = newSchema();
  const own = url.replace('postgres@', `${role}@`);
  beforeAll(async () => {
    await (await PostgresStore.open({ url, schema })).close();
    await runSql(url, `CREATE ROLE ${role} LOGIN`);
  });
  afterAll(() => runSql(url, `DROP SCHEMA ${schema} CASCADE; DROP OWNED BY ${role}; DROP ROLE ${role}`));

  const lacks = `: role ${role} lacks a right; GRANT what docs/postgres.md lists under Permissions`;

  it.each([
    ['to create a schema', newSchema(), true, 'permission denied for database postgres'],
    ['to use one', schema, true, `permission denied for schema ${schema}`],
    ['to use one that others migrate', schema, false, `permission denied for schema ${schema}`],
  ])('%s', async (_, chosen, migrate, said) => {
    const refusal = await PostgresStore.open({ url: own, schema: chosen, migrate }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreIncompatibleError);
    expect(refusal).toHaveProperty('message', expect.stringContaining(`${said}${lacks}`));
  });

  it('to write, and it is not sent again as in an outage', async () => {
    await runSql(
      url,
      `GRANT USAGE ON SCHEMA ${schema} TO ${role}; GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${role}`,
    );
    const pool = new pg.Pool({ connectionString: own });
    for (const where of [{ url: own }, { pool }]) {
      const store = await PostgresStore.open({ ...where, schema, migrate: false });
      await using mulligan = await Mulligan.open(store);
      const sends = vi.spyOn(store, 'enqueue');
      const refusal = await mulligan.enqueue('x', 1).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(StoreIncompatibleError);
      expect(refusal).toHaveProperty(
        'message',
        expect.stringMatching(`permission denied for (table|sequence) \\w+${lacks}`),
      );
      expect(sends).toHaveBeenCalledOnce();
    }
    await pool.end();
  });
});

describe('options of a wrong type are refused:', () => {
  it.each<[object, string]>([
    [{ migrate: 'yes' }, 'PostgresStore.open: migrate: expected true or false, got "yes".'],
    [{ wakeUps: 1 }, 'PostgresStore.open: wakeUps: expected true or false, got 1.'],
    [{ clock: Date }, 'PostgresStore.open: clock: expected a clock'],
    [{ url: new URL(url) }, 'PostgreSQL: url: expected a text'],
    [{ poolOptions: 20 }, 'PostgreSQL: poolOptions: expected an object, got 20.'],
    [{ poolOptions: { max: '20' } }, 'PostgreSQL: poolOptions.max: expected a whole number of at least 3, '],
  ])('%j', async (options, message) => {
    const refusal = await PostgresStore.open({ url, schema: newSchema(), ...options }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ConfigError);
    expect(refusal).toHaveProperty('message', expect.stringContaining(message));
  });
});
