import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, inject, it } from 'vitest';
import { Mulligan } from '../../src/index.ts';
import { migrations } from '../../src/store/postgres/schema.ts';
import { newSchema, runSql } from '../support/postgres-schema.ts';

const server = inject('postgresUrl');
const run = promisify(execFile);
const script = fileURLToPath(new URL('./producer-process.ts', import.meta.url));
const PROCESSES = 20;

describe('many processes that open the same new schema at once', () => {
  it('all succeed: one of them makes it, the others find it made', async () => {
    const schema = newSchema();
    const url = `${server}?schema=${schema}`;
    const node = ['--disable-warning=ExperimentalWarning', script, url, 'exit'];
    const opened = await Promise.all(Array.from({ length: PROCESSES }, () => run(process.execPath, node)));
    expect(opened.map(({ stderr }) => stderr).filter(Boolean)).toEqual([]);
    const ids = opened.map(({ stdout }) => stdout.trim());
    expect(new Set(ids).size).toBe(PROCESSES);
    expect(await runSql(url.split('?')[0] as string, `SELECT version FROM ${schema}.schema_version`)).toEqual([
      { version: migrations.length },
    ]);
    await using mulligan = await Mulligan.open(url, { log: () => {} });
    for (const id of ids) expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'ready' });
    await mulligan.close();
    await runSql(server, `DROP SCHEMA ${schema} CASCADE`);
  });
});
