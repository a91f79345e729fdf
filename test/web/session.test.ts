import { expect, it } from 'vitest';
import { createToken } from '../../src/server/index.ts';
import { served } from '../server/served.ts';
import { useBrowser, visit } from './browser.ts';

useBrowser();

const REFUSED = /401/;

it('a person signs in with a token, sees the jobs, and signs out', async () => {
  const { token, stored } = createToken('ops', ['admin']);
  const { url, mulligan } = await served({ server: { tokens: [stored] } });
  await mulligan.enqueue('email.send', { to: 'ada' });
  const page = await visit(url, { at: '#/jobs', allowed: REFUSED });

  await page.getByLabel('Token').fill('mulligan_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('does not know the token').waitFor();

  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('link', { name: 'email.send' }).waitFor();
  expect(page.url()).not.toContain(token);

  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  expect(await page.getByText('email.send').count()).toBe(0);
});

it('a job that is enqueued while the page is open appears by itself', async () => {
  const { url, mulligan } = await served();
  const page = await visit(url, { at: '#/jobs' });
  await page.getByText('Live', { exact: true }).waitFor();
  await mulligan.enqueue('late.one', {});
  await page.getByRole('link', { name: 'late.one' }).waitFor({ timeout: 5_000 });
});
