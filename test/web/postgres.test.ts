import { expect, inject, it, onTestFinished } from 'vitest';
import { defineJob } from '../../src/definition.ts';
import { Mulligan } from '../../src/mulligan.ts';
import { serve } from '../../src/server/index.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { useBrowser, visit } from './browser.ts';

useBrowser();

it('PostgreSQL: an error group is redriven and drains, a limit is changed, and a gate is pinned, as with SQLite', async () => {
  let isBroken = true;
  const job = defineJob<{ shop: string }>({
    name: 'order.sync',
    resource: 'shop-api',
    limit: { name: 'shop', key: ({ shop }) => shop, concurrency: 4 },
    retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: '20ms' } },
    async run({ shop }) {
      if (isBroken) throw new RangeError(`the price list of ${shop} has no prices`);
    },
  });
  const database = await TestDatabase.create(inject('postgresUrl'));
  const mulligan = await Mulligan.open(database.url, { jobs: [job], log: () => {} });
  const server = await serve(mulligan, { port: 0 });
  onTestFinished(async () => {
    await server.close();
    await mulligan.close();
    await database[Symbol.asyncDispose]();
  });
  await mulligan.enqueueMany(
    job,
    Array.from({ length: 12 }, (_, index) => ({ input: { shop: `shop-${index % 3}` } })),
  );
  mulligan.work({ poll: '50ms' });
  await expect.poll(async () => (await mulligan.stats()).states.dead, { timeout: 20_000 }).toBe(12);
  isBroken = false;

  const page = await visit(server.url, { at: '#/failures' });
  await page.getByRole('link', { name: 'RangeError' }).click();
  await page.getByRole('button', { name: 'Redrive…' }).click();
  await page.getByRole('button', { name: 'Redrive 12 jobs' }).click();
  const dead = page.locator('.tile', { hasText: 'until redriven' }).locator('.value');
  await expect.poll(() => dead.textContent(), { timeout: 20_000 }).toBe('0');
  await expect.poll(async () => (await mulligan.stats()).states.completed, { timeout: 20_000 }).toBe(12);

  await page.goto(`${server.url}/#/limits/shop`);
  await page.getByRole('button', { name: 'Change…' }).first().click();
  await page.getByLabel('At once, per key').fill('9');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect.poll(async () => (await mulligan.limits.show('shop'))?.limit.settings.concurrency).toBe(9);

  await page.goto(`${server.url}/#/gates/shop-api`);
  await page.getByRole('button', { name: 'Pin open' }).click();
  await page.locator('main .state', { hasText: 'pinned open' }).waitFor();

  const [newest] = await mulligan.jobs.list({ limit: 1 });
  const revealed = await fetch(`${server.url}/api/v1/jobs/${newest?.id}/reveal`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  expect(await revealed.json()).toMatchObject({ payload: { shop: expect.stringMatching(/^shop-/) } });

  for (const at of ['overview', 'jobs', 'queues', 'schedules', 'workers', 'audit']) {
    await page.goto(`${server.url}/#/${at}`);
    await page.getByText('Reading…').waitFor({ state: 'detached' });
    expect([at, await page.getByText('This could not be read').count()]).toEqual([at, 0]);
  }
});
