import { expect, it } from 'vitest';
import { defineJob } from '../../src/definition.ts';
import { served } from '../server/served.ts';
import { overflows, useBrowser, visit } from './browser.ts';

/* Whatever is in a queue is text on the page: it runs nothing, breaks no layout, and makes the browser report nothing. */

useBrowser();

const markup = '<img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>';
const rtl = '\u202egnp.exe\u2066 \u05d0\u05d1\u05d2 \u{1f469}\u200d\u{1f680}\u{1f9e8}';
const long = 'x'.repeat(100_000);
const word = 'W'.repeat(100);

it.each([1_280, 360])(
  'hostile names, keys, tags, payloads, results, logs and errors are text, %s pixels wide',
  async (width) => {
    const resource = `${word}${markup}`.replaceAll('/', '').slice(0, 190);
    const name = `${markup}${rtl}`.slice(0, 190);
    const failing = defineJob<{ evil: string }>({
      name,
      queue: word,
      resource,
      retry: { maxAttempts: 1 },
      tags: [markup, rtl, word],
      limit: { name: 'javascript:alert(1)', key: () => markup, concurrency: 1 },
      async run(_, { log }) {
        for (let n = 0; n < 60; n++) log.info(`${n}${markup}\n${rtl}`, { [markup]: rtl, [word]: n });
        log.error(`${word}${markup}`, { evil: long, nested: { [markup]: markup } });
        throw Object.assign(new Error(`${markup}${rtl}${long}`), { name: markup, code: word });
      },
    });
    const working = defineJob<{ evil: string }>({
      name: `${rtl}${word}`,
      queue: markup,
      run: async () => ({ [markup]: long }),
    });
    const { url, mulligan } = await served({ queue: { jobs: [failing, working] } });
    const payload = { evil: `${long}${markup}`, [markup]: rtl, word };
    const { id } = await mulligan.enqueue(failing, payload, { key: `${markup}${word}` });
    const done = await mulligan.enqueue(working, payload);
    await mulligan.schedules.set(word, name, payload, { every: '1h', queue: word });
    mulligan.work({ poll: '20ms', name: markup, version: rtl });
    await expect
      .poll(
        async () => (await Promise.all([id, done.id].map((one) => mulligan.jobs.get(one)))).map((job) => job?.state),
        {
          timeout: 20_000,
        },
      )
      .toEqual(['dead', 'completed']);
    await mulligan.queues.pause(markup, { by: `${markup}${word}`.slice(0, 150) });
    const [group] = await mulligan.errors.list();
    const limit = encodeURIComponent('javascript:alert(1)');
    const page = await visit(url, { at: '#/overview', width });
    for (const at of [
      'overview',
      'failures',
      `failures/${group?.fingerprint}?name=${encodeURIComponent(name)}`,
      'jobs',
      `jobs/${id}`,
      `jobs/${done.id}`,
      'queues',
      'gates',
      `gates/${encodeURIComponent(resource)}`,
      'limits',
      `limits/${limit}`,
      'schedules',
      'workers',
      'audit',
      `jobs?name=${encodeURIComponent(markup)}`,
      '%E0%A4%A/%00',
    ]) {
      await page.goto(`${url}/#/${at}`);
      await page.locator('main h1').waitFor();
      await page.getByText('Reading…').waitFor({ state: 'detached' });
      expect([at, await overflows(page)]).toEqual([at, false]);
      expect(await page.locator('main img, main script').count()).toBe(0);
    }
    await page.goto(`${url}/#/jobs/${id}`);
    await page.getByText(/^\d+ earlier lines not kept$/).waitFor();
    const log = page.getByRole('list', { name: 'Log of run 1' });
    expect(await log.textContent()).toContain(markup);
    await expect.poll(() => log.evaluate((list) => list.scrollTop)).toBeGreaterThan(0);
    await page
      .getByRole('button', { name: /^Show all/ })
      .first()
      .click();
    expect(await overflows(page)).toBe(false);
    expect(await page.evaluate('globalThis.hacked')).toBeUndefined();
  },
);
