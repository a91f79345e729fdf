import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { serve } from '../src/server/index.ts';
import { launch } from '../test/web/launch.ts';
import { pagesOf } from '../test/web/pages.ts';
import { past } from '../test/web/past.ts';
import { stage } from '../test/web/stage.ts';

/*
 * Takes a picture of each page, in both themes and on a phone: `npm run web:screenshots -- DIRECTORY`. Without a directory it takes
 * those of the documentation, in docs/images.
 */

const [, , target = 'docs/images'] = process.argv;
/** What docs/dashboard.md and README.md show, and how high each is. */
const documented: Readonly<Record<string, number>> = { overview: 760, job: 705, redrive: 760, 'policy-lab': 1_352 };
const isForDocs = target === 'docs/images';
const sizes = [
  { name: 'light', width: 1_280, colorScheme: 'light' },
  { name: 'dark', width: 1_280, colorScheme: 'dark' },
  { name: 'phone', width: 360, colorScheme: 'light' },
] as const;

const { store, clock } = await past();
const staged = await stage(store, clock);
const server = await serve(staged.mulligan, { port: 0 });
const browser = await launch();
mkdirSync(target, { recursive: true });
const paths = await pagesOf(staged.mulligan, staged);
const pages: Readonly<Record<string, string>> = { ...paths, redrive: paths.group as string };
/** What is done on a page before its picture is taken. */
async function prepare(name: string, page: Page): Promise<void> {
  if (name === 'redrive') {
    await page.getByRole('button', { name: 'Redrive…' }).click();
    await page.getByText('jobs match').waitFor();
  }
  if (name === 'policy-lab') {
    await page.getByRole('button', { name: 'Simulate' }).click();
    await page.getByRole('row', { name: 'no-gate' }).waitFor({ timeout: 60_000 });
  }
}

try {
  for (const { name: size, width, colorScheme } of isForDocs ? sizes.slice(0, 1) : sizes) {
    const context = await browser.newContext({
      viewport: { width, height: 820 },
      colorScheme,
      deviceScaleFactor: 1,
      locale: 'en-GB',
    });
    const page = await context.newPage();
    for (const [name, at] of Object.entries(pages)) {
      const height = documented[name];
      if (isForDocs && height === undefined) continue;
      await page.goto(`${server.url}/${at}`);
      await page.locator('main h1').waitFor();
      if (width > 800) await page.getByText('Live', { exact: true }).waitFor();
      await page.getByText('Reading…').waitFor({ state: 'detached' });
      await prepare(name, page);
      await page.evaluate('scrollTo(0, 0)');
      await page.waitForTimeout(300);
      await page.screenshot(
        isForDocs
          ? { path: join(target, `${name}.png`), fullPage: true, clip: { x: 0, y: 0, width, height: height as number } }
          : // A dialog is over what is seen, and not over the whole page.
            { path: join(target, `${name}-${size}.png`), fullPage: width > 800 && name !== 'redrive' },
      );
    }
    await context.close();
  }
} finally {
  await browser.close();
  await server.close();
  await staged.close();
}

// The clock of the past goes on for ever.
process.exit();
