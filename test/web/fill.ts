import { DatabaseSync } from 'node:sqlite';
import { STATE } from '../../src/store/codes.ts';
import { counters } from '../../src/store/error-groups.ts';
import { countColumns } from '../../src/store/postgres/counts.ts';
import { runSql } from '../support/postgres-schema.ts';

/*
 * Many jobs for the pages: copies of those that a stage has left, with their runs, tags and counts, made by SQL. Copies ended over the
 * last two days; those that wait are due from an hour ago until in an hour. Running jobs are not copied, since no worker has them.
 */

const DAYS_MS = 2 * 86_400_000;
const HOURS_MS = 2 * 3_600_000;
/** Spreads the copies evenly: it has no divisor in common with either of the two. */
const STRIDE = 7_919;

const ended = (column: string): string => `${column} - i * ${STRIDE} % ${DAYS_MS}`;
const due = (column: string): string => `${column} + i * ${STRIDE} % ${HOURS_MS} - ${HOURS_MS / 2}`;

/** How each changed column is written; `i` is the number of the copy. */
type Columns = Readonly<Record<string, string>>;

/** `INSERT` of a copy of each row of a table for each `i`, with some columns changed. */
function copies(table: string, columns: readonly string[], changed: Columns, series: string, which = 'true'): string {
  const values = columns.map((column) => changed[column] ?? `t.${column}`);
  return `INSERT INTO ${table} (${columns.join(', ')}) SELECT ${values.join(', ')} FROM ${table} t, ${series} WHERE ${which}`;
}

function multiplied(table: string, columns: readonly string[], by: number): string {
  return `UPDATE ${table} SET ${columns.map((column) => `${column} = ${column} * ${by}`).join(', ')}`;
}

/** Lets the next roll-up count the copies as well. `prefix`: the schema and a dot. */
export function recountHistory(prefix = ''): string {
  return `DELETE FROM ${prefix}history; UPDATE ${prefix}history_mark SET counted_to = 0`;
}

export interface Filled {
  readonly jobs: number;
}

/** The file must not be in use. */
export function fillSqlite(path: string, jobs: number): Filled {
  using db = new DatabaseSync(path);
  db.exec('PRAGMA synchronous = off; PRAGMA cache_size = -500000; BEGIN IMMEDIATE');
  const isCopied = `state <> ${STATE.running}`;
  const { n, step } = db
    .prepare(`SELECT count(*) FILTER (WHERE ${isCopied}) AS n, max(seq) AS step FROM jobs`)
    .get() as { n: number; step: number };
  const times = Math.ceil(jobs / n);
  const columnsOf = (table: string): string[] =>
    (db.prepare(`PRAGMA table_info(${table})`).all() as { name: string }[]).map(({ name }) => name);
  const series = `(WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < ${times}) SELECT i FROM s) s`;
  const copy = (table: string, changed: Columns, which?: string): void =>
    db.exec(copies(table, columnsOf(table), changed, series, which));
  const seq = (column: string): string => `${column} + i * ${step}`;
  const ofCopied = (column: string): string =>
    `${column} IN (SELECT seq FROM jobs WHERE ${isCopied} AND seq <= ${step})`;
  copy('runs', { job: seq('job'), settled_at: ended('settled_at') }, ofCopied('job'));
  copy('tags', { seq: seq('seq') }, ofCopied('seq'));
  copy(
    'jobs',
    {
      seq: seq('seq'),
      id: "substr(id, 1, 24) || printf('%012x', i * 1000000 + t.seq)",
      due_at: `CASE WHEN partition IS NULL THEN due_at ELSE ${due('due_at')} END`,
      finished_at: ended('finished_at'),
      held_key: 'NULL',
    },
    isCopied,
  );
  db.exec(`
    ${multiplied('tallies', ['amount'], times + 1)};
    ${multiplied('error_counts', counters, times + 1)};
    COMMIT`);
  return { jobs: (db.prepare('SELECT count(*) AS jobs FROM jobs').get() as { jobs: number }).jobs };
}

/** No process may work on it meanwhile. */
export async function fillPostgres(url: string, jobs: number, schema = 'mulligan'): Promise<Filled> {
  const sql = async <Row>(text: string, values: unknown[] = []): Promise<Row[]> =>
    (await runSql(url, text, values)) as Row[];
  const [{ n } = { n: 0 }] = await sql<{ n: number }>(
    `SELECT ((SELECT count(*) FROM ${schema}.live WHERE worker IS NULL) + (SELECT count(*) FROM ${schema}.finished))::int AS n`,
  );
  const times = Math.ceil(jobs / n);
  // The copies of a job keep the time at the start of its id, in whose order jobs are listed.
  const id = (column: string): string =>
    `overlay(${column}::text PLACING substr(md5(${column}::text || i), 1, 12) FROM 25)::uuid`;
  const copy = async (table: string, changed: Columns, which?: string): Promise<void> => {
    const columns = await sql<{ name: string }>(
      `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2
        AND is_generated = 'NEVER' AND is_identity = 'NO'`,
      [schema, table],
    );
    const names = columns.map(({ name }) => name);
    await sql(copies(`${schema}.${table}`, names, changed, `generate_series(1, ${times}::bigint) s (i)`, which));
  };
  const isCopied = (column: string): string =>
    `NOT EXISTS (SELECT 1 FROM ${schema}.live l WHERE l.id = ${column} AND l.worker IS NOT NULL)`;
  await copy('runs', { job: id('job'), settled_at: ended('settled_at') }, isCopied('job'));
  await copy('job_tags', { job: id('job') }, isCopied('job'));
  await copy('live', { id: id('id'), due_at: due('due_at') }, 'worker IS NULL');
  await copy('finished', { id: id('id'), finished_at: ended('finished_at') });
  await sql(`
    ${multiplied(`${schema}.counts`, countColumns, times + 1)};
    ${multiplied(`${schema}.error_counts`, counters, times + 1)}`);
  await sql('VACUUM ANALYZE');
  const [found] = await sql<Filled>(
    `SELECT ((SELECT count(*) FROM ${schema}.live) + (SELECT count(*) FROM ${schema}.finished))::int AS jobs`,
  );
  return found as Filled;
}
