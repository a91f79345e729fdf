import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, inject, it } from 'vitest';
import { Mulligan } from '../../src/index.ts';
import { migrations } from '../../src/store/postgres/schema/tables.ts';
import { TestDatabase } from '../support/postgres-database.ts';

const server = inject('postgresUrl');
const run = promisify(execFile);
const script = fileURLToPath(new URL('./producer-process.ts', import.meta.url));
const PROCESSES = 20;

describe('many processes that open the same new schema at once', () => {
  it.each(['read committed', 'serializable'])(
    'all succeed, one makes it and the others find it made, where transactions are %s',
    async (isolation) => {
      await using database = await TestDatabase.create(server);
      await database.sql(`ALTER DATABASE ${database.name} SET default_transaction_isolation = '${isolation}'`);
      const opened = await openTogether(database);
      expect(opened.map(({ stderr }) => stderr).filter(Boolean)).toEqual([]);
      const ids = opened.map(({ stdout }) => stdout.trim());
      expect(new Set(ids).size).toBe(PROCESSES);
      const versions = await database.sql('SELECT version FROM mulligan.schema_identity');
      expect(versions).toEqual([{ version: migrations.length }]);
      await using mulligan = await Mulligan.open(database.url, { log: () => {} });
      for (const id of ids) expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'ready' });
    },
  );
});

/** None gets on before all of them have found nothing and wait for their turn to make it. */
async function openTogether(database: TestDatabase): Promise<{ stdout: string; stderr: string }[]> {
  const [lock, schema] = ['mulligan: migrate', 'mulligan'];
  const turn = await database.connect();
  await turn.query('SELECT pg_advisory_lock(hashtext($1), hashtext($2))', [lock, schema]);
  const node = ['--disable-warning=ExperimentalWarning', script, database.url, 'exit'];
  const opened = Promise.all(Array.from({ length: PROCESSES }, () => run(process.execPath, node)));
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`;
  await Promise.race([
    opened,
    expect.poll(() => database.sql(waiting), { timeout: 60_000, interval: 100 }).toHaveLength(PROCESSES),
  ]);
  await turn.end();
  return opened;
}
