import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Browser } from 'playwright-core';
import { systemClock } from '../../src/clock.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { serve } from '../../src/server/index.ts';
import { openStore } from '../../src/store/open.ts';
import { PostgresServer } from '../support/postgres-server.ts';
import { type Filled, fillPostgres, fillSqlite, recountHistory } from './fill.ts';
import { launch } from './launch.ts';
import { filteredPages, pagesOf, searchedPages } from './pages.ts';
import { stage } from './stage.ts';

/*
 * How long each page takes to show its first data among 1,000,000 jobs: `npm run web:million -- [sqlite|postgres] [JOBS]`. In the real
 * browser, from the start of the navigation, with all files of the page: the best, the middle and the worst of some rounds, and the
 * slowest request of the middle one. A page is above the bar when its middle round is.
 */

const [, , only = '', jobs = '1000000'] = process.argv;
const BAR_MS = 500;
const ROUNDS = 5;

/** Runs in the page before its own scripts: notes when data was first shown, in ms since the navigation began. */
const NOTE_SHOWN = `new MutationObserver((_, observer) => {
  if (document.querySelector('main h1') === null || document.querySelector('main .reading') !== null) return;
  window.shownMs = performance.now();
  observer.disconnect();
}).observe(document, { childList: true, subtree: true })`;
const SLOWEST = `performance.getEntriesByType('resource')
  .filter(({ name, responseEnd }) => name.includes('/api/') && responseEnd > 0)
  .map(({ name, duration }) => [duration, name.slice(name.indexOf('/api/v1') + 7)])
  .sort(([a], [b]) => b - a)[0] ?? [0, 'none']`;

interface Timing {
  readonly shownMs: number;
  readonly slowestMs: number;
  readonly slowest: string;
}

async function load(browser: Browser, url: string): Promise<Timing> {
  const context = await browser.newContext({ viewport: { width: 1_280, height: 900 }, locale: 'en-GB' });
  try {
    const page = await context.newPage();
    await page.addInitScript(NOTE_SHOWN);
    await page.goto(url, { waitUntil: 'commit' });
    await page.locator('main h1').waitFor();
    await page.locator('main .reading').waitFor({ state: 'detached' });
    const [slowestMs, slowest] = await page.evaluate<[number, string]>(SLOWEST);
    return { shownMs: await page.evaluate<number>('window.shownMs'), slowestMs, slowest };
  } finally {
    await context.close();
  }
}

async function measure(kind: string, target: string, fill: () => Filled | Promise<Filled>): Promise<void> {
  const staged = await stage(target);
  await staged.close();
  const startedAt = performance.now();
  const filled = await fill();
  const store = await openStore(target, systemClock);
  while (!(await store.rollUp()).isDone);
  console.log(`\n${kind}: ${filled.jobs} jobs, made in ${Math.round((performance.now() - startedAt) / 1_000)} s\n`);
  const mulligan = await Mulligan.open(store, { log: () => {} });
  const server = await serve(mulligan, { port: 0 });
  const browser = await launch();
  try {
    await load(browser, server.url);
    console.log('| page | first data: best | middle | worst | slowest request |\n| --- | ---: | ---: | ---: | --- |');
    for (const [name, at] of Object.entries({
      ...(await pagesOf(mulligan, staged)),
      ...filteredPages,
      ...searchedPages,
    })) {
      const rounds: Timing[] = [];
      for (let round = 0; round < ROUNDS; round++) rounds.push(await load(browser, `${server.url}/${at}`));
      rounds.sort((a, b) => a.shownMs - b.shownMs);
      const middle = rounds[(ROUNDS - 1) / 2] as Timing;
      const times = [rounds[0], middle, rounds.at(-1)].map((timing) => `${Math.round(timing?.shownMs ?? 0)} ms`);
      if (middle.shownMs > BAR_MS) times[1] += ' (above the bar)';
      console.log(`| ${name} | ${times.join(' | ')} | ${Math.round(middle.slowestMs)} ms ${middle.slowest} |`);
    }
  } finally {
    await browser.close();
    await server.close();
    await mulligan.close();
    await store.close();
  }
}

if (only !== 'postgres') {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-million-'));
  const path = join(folder, 'queue.db');
  try {
    await measure('SQLite', `sqlite:${path}`, () => {
      using db = new DatabaseSync(path);
      db.exec(recountHistory());
      return fillSqlite(path, Number(jobs));
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}
if (only !== 'sqlite') {
  await using postgres = await PostgresServer.start();
  await measure('PostgreSQL', postgres.url, async () => {
    await postgres.query(recountHistory('mulligan.'));
    return fillPostgres(postgres.url, Number(jobs));
  });
}
