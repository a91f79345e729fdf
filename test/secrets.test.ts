import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { defineJob, Mulligan } from '../src/index.ts';
import { it as itWithCli } from './support/cli.ts';
import { newSchema } from './support/postgres-schema.ts';

/*
 * What handlers throw and log, looked for everywhere that it goes: ledger, jobs, groups of errors, events, the log of the process, and the
 * bytes of the file. Each `S` is one secret.
 */

const S = 'hunter2hunter2';
const PEM = `-----BEGIN RSA PRIVATE KEY-----\n${S}\n${S}\n-----END RSA PRIVATE KEY-----`;
const with_ = (error: Error, more: object): Error => Object.assign(error, more);

const errors: Readonly<Record<string, () => unknown>> = {
  'an address of a database': () =>
    new Error(`cannot connect to postgres://app:${S}@db/jobs or redis://:${S}@cache:6379`),
  'a password with / and @ in an address': () => new Error(`bad URL "postgres://app:${S}/x@${S}@db/jobs"`),
  'a URL with tokens': () => new Error(`GET https://example.com/x?access_token=${S}&api_key=${S}&sig=${S} 403`),
  headers: () => new Error(`sent ${inspect({ authorization: `Bearer ${S}`, cookie: `sid=${S}`, 'x-api-key': S })}`),
  'lines of headers': () =>
    new Error(`POST / HTTP/1.1\nAuthorization: Basic ${S}\nX-Auth-Token: ${S}\nSet-Cookie: sid=${S}`),
  'pairs of headers': () =>
    new Error(
      `sent ${JSON.stringify([
        ['Authorization', `Bearer ${S}`],
        ['cookie', S],
      ])}`,
    ),
  'named values': () =>
    new Error(
      `env ${inspect([
        { name: 'DB_PASSWORD', value: S },
        { name: 'API_TOKEN', value: S },
      ])}`,
    ),
  JSON: () => new Error(JSON.stringify({ user: 'ada', password: `${S}"${S}`, nested: { secretKey: S } })),
  'JSON in JSON': () => new Error(JSON.stringify({ body: JSON.stringify({ apiKey: S, tokens: [S, S] }) })),
  'settings of Django and Rails': () => new Error(`SECRET_KEY = '${S}'\nsecret_key_base: ${S}\nsecret_key: ${S}`),
  'settings of AWS': () => new Error(`aws_secret_access_key = ${S}, AWS_SESSION_TOKEN=${S}`),
  'settings of a mailer': () => new Error(inspect({ auth: { user: 'ada', pass: S }, smtpPass: S })),
  'environment variables': () => new Error(`PGPASSWORD=${S} DB_PASS=${S} JWT=${S} node app.js`),
  'a connection string': () => new Error(`Server=db;User Id=a;Password=${S};AccountKey=${S};Encrypt=true`),
  'a private key': () => new Error(`expected a public key, got ${PEM}`),
  'a private key in JSON': () => new Error(JSON.stringify({ key: PEM })),
  'a code': () => with_(new Error('refused'), { code: `token=${S}` }),
  'a code of a cause': () =>
    new Error('failed', { cause: with_(new Error(`password: ${S}`), { code: `password=${S}` }) }),
  'several errors': () => new AggregateError([new Error(`pwd=${S}`), new Error(`passphrase: "${S}"`)], 'all failed'),
  'a name and a stack': () =>
    with_(new Error('x'), { name: `token=${S}`, stack: `Error: secret: ${S}\n    at a (https://u:${S}@h/a.js:1:2)` }),
  'look-alike letters': () =>
    new Error(`ｐａｓｓｗｏｒｄ: ${S}, pass\u200bword=${S}, p\u0430ssword: ${S}, password：${S}`),
  'a Map': () =>
    new Error(
      inspect(
        new Map([
          ['password', S],
          ['api-key', S],
        ]),
      ),
    ),
  'a text': () => `refused: client_secret=${S}`,
};

const fields = {
  password: S,
  headers: [['authorization', S]],
  env: { name: 'API_KEY', value: S },
  body: JSON.stringify({ pwd: S }),
  url: `https://u:${S}@h`,
};
const fail = defineJob<string>({
  name: 'fail',
  retry: { maxAttempts: 1 },
  run(which, { log }) {
    log.info(`calling with token=${S}`, fields);
    log.warn('a pair', { name: 'cookie', value: S, error: new Error(`secret: ${S}`) });
    throw errors[which]?.();
  },
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-secrets-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

const stores: Readonly<Record<string, (folder: string) => string>> = {
  memory: () => 'memory:',
  sqlite: (folder) => `sqlite:${join(folder, 'jobs.db')}`,
  postgres: () => `${inject('postgresUrl')}?schema=${newSchema()}`,
};

describe.each(Object.keys(stores))('on %s', (kind) => {
  it('no secret of an error or of a log stays anywhere', async () => {
    const folder = newFolder();
    const printed: string[] = [];
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => printed.push(String(text)) > 0);
    onTestFinished(() => void vi.restoreAllMocks());
    const told: unknown[] = [];
    const seen: Record<string, unknown> = {};
    {
      await using mulligan = await Mulligan.open(stores[kind]?.(folder) ?? '', { jobs: [fail] });
      mulligan.on('dead', (event) => told.push(event));
      const ids = new Map<string, string>();
      for (const which of Object.keys(errors)) ids.set(which, (await mulligan.enqueue(fail, which)).id);
      const worker = mulligan.work({ concurrency: 5 });
      await worker.whenIdle();
      for (const [which, id] of ids) {
        seen[which] = await Promise.all([mulligan.jobs.get(id), mulligan.jobs.runs(id), mulligan.jobs.logs(id)]);
        expect(seen[which], which).toMatchObject([{ state: 'dead' }, [{ run: 1 }], [{ lines: [{}, {}] }]]);
      }
      seen.groups = await mulligan.errors.list();
    }
    for (const [which, data] of Object.entries(seen)) expect(JSON.stringify(data), which).not.toContain('hunter2');
    expect(told).toHaveLength(Object.keys(errors).length);
    expect(JSON.stringify(told)).not.toContain('hunter2');
    expect(printed.join('')).toContain('a pair');
    expect(printed.filter((line) => line.includes('hunter2'))).toEqual([]);
    for (const file of readdirSync(folder))
      expect(readFileSync(join(folder, file), 'latin1'), file).not.toContain('hunter2');
  });
});

itWithCli('mulligan work prints no secret of a log, as text or as JSON', async ({ cli }) => {
  const source = new URL('../src/index.ts', import.meta.url).pathname;
  writeFileSync(
    join(cli.folder, 'jobs.ts'),
    `import { defineJob } from ${JSON.stringify(source)};
    export const report = defineJob({ name: 'report', run(_, { log }) { log.info('token=${S} seen', ${JSON.stringify(fields)}); } });`,
  );
  for (const flags of [[], ['--json']]) {
    const worker = cli.start(['work', '--jobs', 'jobs.ts', ...flags]);
    await cli.json('enqueue', 'report', '{}', '--wait', '30s');
    worker.process.kill('SIGTERM');
    const { stdout, stderr } = await worker.ended;
    expect(stdout + stderr).toContain('seen');
    expect(stdout + stderr).not.toContain('hunter2');
  }
});
