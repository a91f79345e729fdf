import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { serve } from '../../src/server/index.ts';
import { PostgresStore } from '../../src/store/postgres/index.ts';
import { ARRIVED, ENDED, LANES, UPCOMING } from '../../src/store/postgres/sql/forecast.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import type { Store } from '../../src/store/store.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { useBrowser, visit } from './browser.ts';
import { fillPostgres, fillSqlite } from './fill.ts';
import { filteredPages, pagesOf } from './pages.ts';
import { type Staged, stage } from './stage.ts';

/*
 * Every page is loaded in the browser, and the database tells how it carries out each statement that this brings about. What reads
 * more than a page of rows has to be stated here, and in docs/dashboard.md.
 */

const JOBS = 60_000;

useBrowser();

async function closedStage(target: string): Promise<Staged> {
  const staged = await stage(target);
  await staged.close();
  return staged;
}

/** `look` is called when a page shows its data. */
async function loadPages(store: Store, staged: Staged, look: () => void): Promise<void> {
  const mulligan = await Mulligan.open(store, { log: () => {} });
  const server = await serve(mulligan, { port: 0 });
  onTestFinished(async () => {
    await server.close();
    await mulligan.close();
    await store.close();
  });
  const page = await visit(server.url);
  for (const [name, at] of Object.entries({ ...(await pagesOf(mulligan, staged)), ...filteredPages })) {
    await page.goto('about:blank');
    await page.goto(`${server.url}/${at}`);
    await page.locator('main h1').waitFor();
    await page.getByText('Reading…').waitFor({ state: 'detached' });
    expect([name, await page.getByText('could not be read').count()]).toEqual([name, 0]);
    look();
  }
}

const spaced = (sql: string): string => sql.replace(/\s+/g, ' ').trim();

/** Which of the stated parts of statements no statement had: a list of them that is out of date hides the next scan. */
function unmet(stated: Readonly<Record<string, string>>, met: ReadonlySet<string>): string[] {
  return Object.keys(stated).filter((part) => !met.has(part));
}

/** By a part of the statement. */
const statedOfSqlite = {
  'FROM jobs WHERE partition IN (SELECT id FROM partitions WHERE resource = ?)': 'an index of the jobs behind one gate',
  'FROM jobs WHERE partition IN (SELECT id FROM partitions WHERE queue = ?)': 'an index of the jobs behind limits',
  'FROM partitions CROSS JOIN jobs ON jobs.partition = partitions.id WHERE partitions.queue = ?1':
    'an index of the jobs behind limits',
};

/** Why this step of a plan may read more rows than are asked for; null when it cannot. */
function complaintOf(detail: string, sql: string, plan: readonly string[]): string | null {
  if (!/^(SCAN|SEARCH) (jobs|runs|errors|tags)\b/.test(detail)) return null;
  // One row, the runs of one job, or what runs, which has an index of its own.
  if (/\((id|rowid|seq|job)=\?|INDEX jobs_running\b/.test(detail)) return null;
  // The first entry of an index is one row, too.
  if (/^SELECT min\(due_at\)/.test(sql)) return null;
  if (!/\bLIMIT\b/.test(sql)) return 'has no limit';
  if (plan.some((step) => /TEMP B-TREE FOR ORDER BY/.test(step))) return 'reads all to sort them';
  if (detail.includes('(partition>?')) return 'reads all that wait';
  return detail.startsWith('SCAN') && /\bWHERE\b/.test(sql.split('FROM jobs').at(-1) as string)
    ? 'reads on until enough are found'
    : null;
}

it('SQLite: a page reads no table and no index of jobs, runs, errors or tags from end to end', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-plans-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'queue.db');
  const staged = await closedStage(`sqlite:${path}`);
  fillSqlite(path, JOBS);
  const store = await SqliteStore.open({ path, inline: systemClock });
  const statements = new Set<string>();
  const prepare = DatabaseSync.prototype.prepare;
  const spy = vi.spyOn(DatabaseSync.prototype, 'prepare').mockImplementation(function (this: DatabaseSync, sql) {
    statements.add(sql);
    return prepare.call(this, sql);
  });
  try {
    await loadPages(store, staged, () => {});
  } finally {
    spy.mockRestore();
  }
  using db = new DatabaseSync(path, { readOnly: true });
  const met = new Set<string>();
  const complaints: string[] = [];
  for (const sql of statements) {
    if (!/^\s*(SELECT|WITH)\b/.test(sql)) continue;
    const plan = (db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]).map(({ detail }) => detail);
    for (const detail of plan) {
      const complaint = complaintOf(detail, spaced(sql), plan);
      const stated = Object.keys(statedOfSqlite).find((part) => spaced(sql).includes(part));
      if (complaint !== null && stated !== undefined) met.add(stated);
      else if (complaint !== null) complaints.push(`${detail} ${complaint}: ${spaced(sql)}`);
    }
  }
  expect(complaints).toEqual([]);
  expect(unmet(statedOfSqlite, met)).toEqual([]);
});

/** A list shows 50 jobs, and a count stops here. */
const MOST_ROWS = 1_001;

const statedOfPostgres = {
  [spaced(LANES)]: 'about 100,000 rows, over all lanes',
  [spaced(UPCOMING)]: 'the same',
  [spaced(ENDED)]: '10,000 rows of each state',
  [spaced(ARRIVED)]: '10,000 rows of each table',
  'JOIN "mulligan".live w ON w.partition = p.id WHERE p.resource <>': 'an index of the jobs behind one gate',
  'FROM "mulligan".limit_slots s CROSS JOIN LATERAL unnest(s.jobs, s.runs)': 'an index of the jobs behind limits',
  "error::json ->> 'message'": 'a search of 100,000 jobs',
};

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

/** `table: rows` for each scan of a large table that has read more than MOST_ROWS. */
function largeReads(plan: Plan): string[] {
  const table = plan['Relation Name'] ?? '';
  const read = (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops'];
  const isLarge = ['live', 'finished', 'runs', 'errors', 'job_tags'].includes(table) && read > MOST_ROWS;
  return [
    ...(isLarge ? [`${plan['Node Type']} of ${table}: ${read} rows`] : []),
    ...(plan.Plans ?? []).flatMap(largeReads),
  ];
}

/** The session is told the plan of each statement, also of those inside of functions, with the rows that were really read. */
const TELL_PLANS = `-c session_preload_libraries=auto_explain ${[
  ...['log_min_duration=0', 'log_nested_statements=on', 'log_analyze=on', 'log_timing=off'],
  ...['log_format=json', 'log_level=notice'],
]
  .map((setting) => `-c auto_explain.${setting}`)
  .join(' ')}`;

it('PostgreSQL: a page reads no more rows of jobs, runs, errors or tags than is stated', async () => {
  const database = await TestDatabase.create(inject('postgresUrl'));
  onTestFinished(() => database[Symbol.asyncDispose]());
  const staged = await closedStage(database.url);
  await fillPostgres(database.url, JOBS);
  const pool = new pg.Pool({ connectionString: database.url, max: 10, options: TELL_PLANS });
  onTestFinished(() => pool.end());
  const plans: { 'Query Text': string; Plan: Plan }[] = [];
  pool.on('connect', (client) =>
    client.on('notice', ({ message = '' }) => {
      if (message.startsWith('duration')) plans.push(JSON.parse(message.slice(message.indexOf('{'))));
    }),
  );
  const met = new Set<string>();
  const complaints: string[] = [];
  await loadPages(await PostgresStore.open({ pool }), staged, () => {
    for (const { 'Query Text': text, Plan: plan } of plans.splice(0)) {
      const reads = largeReads(plan);
      const stated = Object.keys(statedOfPostgres).find((part) => spaced(text).includes(part));
      if (reads.length > 0 && stated !== undefined) met.add(stated);
      else complaints.push(...reads.map((read) => `${read}: ${spaced(text)}`));
    }
  });
  expect(complaints).toEqual([]);
  expect(unmet(statedOfPostgres, met)).toEqual([]);
});
