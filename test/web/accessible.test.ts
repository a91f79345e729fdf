import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { createToken } from '../../src/server/index.ts';
import { overflows, useBrowser, visit } from './browser.ts';
import { pagesOf } from './pages.ts';
import { useStage } from './served-stage.ts';

useBrowser();
const reader = createToken('reader', ['read']);
const stage = useStage({ tokens: [reader.stored] });

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe calls serious or critical, as `rule: element`. */
async function issues(page: Page): Promise<string[]> {
  // Evaluated by the browser's own tools, so the content security policy of the page does not concern it.
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(axe);
  return page.evaluate(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.slice(0, 3).map(({ html }) => id + ': ' + html.slice(0, 200))))`);
}

async function open(page: Page, at: string): Promise<void> {
  await page.goto(`${stage().url}/${at}`);
  await page.locator('main h1').waitFor();
  await page.getByText('Reading…').waitFor({ state: 'detached' });
}

it('no page has a serious issue for people who use other senses, in either theme', async () => {
  const page = await visit(stage().url, { token: reader.token });
  for (const [name, at] of Object.entries(await pagesOf(stage().mulligan, stage()))) {
    await open(page, at);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect([name, colorScheme, await issues(page)]).toEqual([name, colorScheme, []]);
    }
  }
});

it('on a phone nothing is wider than the page, and the menu leads everywhere', async () => {
  const page = await visit(stage().url, { token: reader.token, width: 360 });
  for (const [name, at] of Object.entries(await pagesOf(stage().mulligan, stage()))) {
    await open(page, at);
    expect([name, await overflows(page)]).toEqual([name, false]);
  }
  await page.getByRole('button', { name: 'Menu' }).click();
  await page.getByRole('link', { name: 'Gates' }).click();
  await page.getByRole('heading', { name: 'Gates' }).waitFor();
  await expect.poll(() => page.getByRole('link', { name: 'Workers' }).isVisible()).toBe(false);
});

it('the keyboard goes to pages, to the search, to a job and to help', async () => {
  const page = await visit(stage().url, { token: reader.token });
  await page.locator('main h1').waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('j');
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('declined');
  await page.keyboard.press('Enter');
  await page.getByText('30 jobs match.').waitFor();
  await page.keyboard.press('?');
  expect(await page.getByRole('dialog').count()).toBe(0);
  await page.locator('main').focus();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'card.charge' }).first().focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Timeline' }).waitFor();
});

it('with a read-only token every action is refused: by the page, and by the server behind it', async () => {
  const { url, dead, mulligan } = stage();
  const page = await visit(url, { token: reader.token, at: `#/jobs/${dead}`, allowed: /403/ });
  const redrive = page.getByRole('button', { name: 'Redrive', exact: true });
  await redrive.waitFor();
  expect(await redrive.isDisabled()).toBe(true);
  expect(await redrive.getAttribute('title')).toBe('This needs a token with the scope admin.');
  await page.getByText('reader, read-only').waitFor();
  const refused = await page.evaluate(`fetch('api/v1/dead/redrive', { method: 'POST', body: '{"ids":["${dead}"]}',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + sessionStorage.getItem('mulligan.token') } })
    .then(({ status }) => status)`);
  expect(refused).toBe(403);
  expect((await mulligan.jobs.get(dead))?.state).toBe('dead');
});
