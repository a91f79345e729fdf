import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ConfigError, Mulligan, StoreIncompatibleError, StoreUnavailableError } from '../../src/index.ts';
import { toStoreError } from '../../src/store/postgres/failure.ts';
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
      /authentication failed.*check user, password and pg_hba\.conf/,
    ],
    ['a database that is not there', 'postgres', 'nowhere', /"nowhere" does not exist.*create the database first/],
    ['a role that is not there', `nobody:${SECRET}`, 'postgres', /"nobody" does not exist.*check user, password/],
  ])('%s', async (what, user, database, message) => {
    const wrong = what === 'a wrong password' ? `${user}-not` : user;
    const refusal = await refusalOf(`postgres://${wrong}@127.0.0.1:${strict.port}/${database}`);
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal.message).toMatch(message);
  });

  it('a host that is not there', async () => {
    const refusal = await refusalOf(`postgres://me:${SECRET}@nowhere.invalid/jobs`);
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal.message).toMatch(/^postgres:\/\/nowhere\.invalid\/jobs: .*nowhere\.invalid/);
  });

  it('ports where nobody listens, all of them', async () => {
    const [one, other] = [await freePort(), await freePort()];
    const refusal = await refusalOf(`postgres://me:${SECRET}@127.0.0.1:${one},127.0.0.1:${other}/jobs`);
    expect(refusal).toBeInstanceOf(StoreUnavailableError);
    expect(refusal.message).toContain(`postgres://127.0.0.1:${one},127.0.0.1:${other}/jobs: connect ECONNREFUSED`);
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
    const { message } = toStoreError(both, 'postgres://localhost/jobs');
    expect(message).toBe(`postgres://localhost/jobs: ${refused[0]?.message}, ${refused[1]?.message}`);
  });

  it('the right password opens', async () => {
    await strict.query('GRANT CREATE ON DATABASE postgres TO guarded');
    const mulligan = await Mulligan.open(`postgres://guarded:${SECRET}@127.0.0.1:${strict.port}/postgres?schema=mine`);
    await mulligan.close();
  });
});

describe('a schema that does not fit is refused, and nothing is touched:', () => {
  it('one that a newer version has made', async () => {
    const schema = newSchema();
    await (await PostgresStore.open({ url, schema })).close();
    await runSql(url, `UPDATE ${schema}.schema_version SET version = version + 1`);
    const refusal = await Mulligan.open(`${url}?schema=${schema}`).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreIncompatibleError);
    expect(refusal).toHaveProperty(
      'message',
      expect.stringMatching(/expected version 1 or older, found 2; update mulligan/),
    );
    await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
  });

  it('one that is empty, when migrating is left to somebody else', async () => {
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
