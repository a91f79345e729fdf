import { mkdtempSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { serve } from '../../src/server/index.ts';
import { PostgresStore } from '../../src/store/postgres/index.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import type { Store } from '../../src/store/store.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { useBrowser, visit } from './browser.ts';
import { fillPostgres, fillSqlite } from './fill.ts';
import { filteredPages, pagesOf } from './pages.ts';
import { type Staged, stage } from './stage.ts';

const JOBS = 60_000;

useBrowser();

async function closedStage(target: string): Promise<Staged> {
  const staged = await stage(target);
  await staged.close();
  return staged;
}

/** Loads every page in the browser; `look` is called when one shows its data. */
async function loadPages(store: Store, staged: Staged, look: (page: string) => void): Promise<void> {
  const mulligan = await Mulligan.open(store, { log: () => {} });
  const server = await serve(mulligan, { port: 0 });
  onTestFinished(async () => {
    await server.close();
    await mulligan.close();
  });
  const page = await visit(server.url);
  const pages = { ...(await pagesOf(mulligan, staged)), ...filteredPages };
  for (const [name, at] of Object.entries(pages)) {
    await page.goto('about:blank');
    await page.goto(`${server.url}/${at}`);
    await page.locator('main h1').waitFor();
    await page.getByText('Reading…').waitFor({ state: 'detached' });
    expect([name, await page.getByText('could not be read').count()]).toEqual([name, 0]);
    look(name);
  }
}

it('SQLite: no request of a page scans jobs, runs, errors or tags', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-plans-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'queue.db');
  const staged = await closedStage(`sqlite:${path}`);
  fillSqlite(path, JOBS);
  const store = await SqliteStore.open({ path, inline: systemClock });
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare');
  onTestFinished(() => prepare.mockRestore());
  using db = new DatabaseSync(path, { readOnly: true });
  const seen = new Set<string>();
  const found: string[] = [];
  await loadPages(store, staged, (page) => {
    const texts = prepare.mock.calls.map(([sql]) => sql).filter((sql) => /^\s*(SELECT|WITH)\b/.test(sql) && !seen.has(sql));
    for (const sql of texts) {
      seen.add(sql);
      const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[];
      found.push(...plan.map(({ detail }) => `${page}: ${detail} <- ${sql.replace(/\s+/g, ' ')}`));
    }
  });
  console.log(found.filter(x=>/\b(jobs|runs|errors|tags)\b/.test(x.split(' <- ')[0])).join('\n'));
});

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

function nodes(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)];
}

/** Every plan, also those of statements inside of functions, with what was really read; told to the session as notices. */
const EXPLAINED = [
  'session_preload_libraries=auto_explain',
  ...['log_min_duration=0', 'log_nested_statements=on', 'log_analyze=on', 'log_timing=off', 'log_format=json', 'log_level=notice'].map(
    (setting) => `auto_explain.${setting}`,
  ),
];

it('PostgreSQL: no request of a page reads more rows of a large table than it may', async () => {
  const database = await TestDatabase.create(inject('postgresUrl'));
  onTestFinished(() => database[Symbol.asyncDispose]());
  const staged = await closedStage(database.url);
  await fillPostgres(database.url, JOBS);
  const pool = new pg.Pool({ connectionString: database.url, max: 10, options: EXPLAINED.map((one) => `-c ${one}`).join(' ') });
  onTestFinished(() => pool.end());
  const plans: { text: string; plan: Plan }[] = [];
  pool.on('connect', (client) =>
    client.on('notice', ({ message }) => {
      if (message === undefined || !message.startsWith('duration')) return;
      const { 'Query Text': text, Plan: plan } = JSON.parse(message.slice(message.indexOf('{')));
      plans.push({ text, plan });
    }),
  );
  const found: string[] = [];
  await loadPages(await PostgresStore.open({ pool }), staged, (page) => {
    for (const { text, plan } of plans.splice(0)) {
      for (const node of nodes(plan)) {
        if (!['live', 'finished', 'runs', 'errors', 'job_tags'].includes(node['Relation Name'] ?? '')) continue;
        const read = (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
        if (read > 1000) found.push(`${page}: ${node['Node Type']} ${node['Relation Name']} ${read} <- ${text.replace(/\s+/g, ' ').slice(0, 1500)}`);
      }
    }
  });
  console.log(found.join('\n'));
});
