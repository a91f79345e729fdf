import { hostname } from 'node:os';
import { expect, it } from 'vitest';
import { defineJob } from '../../src/definition.ts';
import { MemoryStore } from '../../src/store/memory/store.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { served } from '../server/served.ts';
import { useBrowser, visit } from './browser.ts';
import { useStage } from './served-stage.ts';

/* What a person on call does on each page, in a real browser, with real workers. */

useBrowser();
const stage = useStage();

it('overview: what needs a person is named, and leads to its page', async () => {
  const page = await visit(stage().url);
  await page.getByText('Needs a look').waitFor();
  await page.getByRole('link', { name: /Gate smtp is open/ }).click();
  await page.getByRole('heading', { name: 'What it does now, and why' }).waitFor();
});

it('job: the timeline tells each decision in words, and the payload is redacted until an admin reveals it', async () => {
  const { url, recovered, dead, mulligan } = stage();
  const page = await visit(url, { at: `#/jobs/${recovered}` });
  await page.getByText(/^Retry: exponential, attempt 1 of 4: 250 ms, full jitter gave \d+ ms\.$/).waitFor();
  await page.getByText(/^Retry: exponential, attempt 2 of 4: 500 ms, full jitter gave \d+ ms\.$/).waitFor();
  expect(await page.locator('.part-failed').count()).toBe(2);
  expect(await page.locator('.part-completed').count()).toBe(1);

  await page.goto(`${url}/#/jobs/${dead}`);
  await page.getByText('[redacted]').first().waitFor();
  expect(await page.getByText('4242 4242').count()).toBe(0);
  await page.getByRole('button', { name: 'Reveal' }).click();
  await page.getByText('4242 4242').first().waitFor();
  const [last] = await mulligan.audit.list({ limit: 1 });
  expect(last).toMatchObject({ action: 'reveal', selection: { ids: [dead] } });
});

it('job: the log of the newest run is open, and those of earlier runs open on demand', async () => {
  const { url, recovered } = stage();
  const page = await visit(url, { at: `#/jobs/${recovered}` });
  const newest = page.getByRole('list', { name: 'Log of run 3' });
  await newest.getByText('wrote the report').waitFor();
  await newest.getByText('{"pages":12,"sheets":["summary","regions"]}').waitFor();
  const earlier = page.getByRole('list', { name: 'Log of run 1' });
  expect(await earlier.count()).toBe(0);
  await page.locator('summary', { hasText: 'Run 1' }).click();
  await earlier.getByText('the warehouse answers slowly').waitFor();
  const titles = await page.locator('summary').allTextContents();
  expect(titles).toEqual(['Run 3 2 lines', 'Run 2 2 lines', 'Run 1 2 lines']);
});

it('job: a dead job is edited and redriven with the new payload', async () => {
  const { url, mulligan } = stage();
  const [job] = await mulligan.dead.list({ name: 'invoice.import', limit: 1 });
  const page = await visit(url, { at: `#/jobs/${job?.id}` });
  await page.getByRole('button', { name: 'Edit and redrive…' }).click();
  const text = page.getByLabel('Payload, as JSON');
  await text.fill('{ "invoice": ');
  await page.getByText('Not valid JSON').waitFor();
  await text.fill('{ "invoice": 4711 }');
  await page.getByRole('button', { name: 'Redrive with this payload' }).click();
  await page.getByText('"invoice": 4711').waitFor();
  await page.getByText('invoice 4711 has no number').first().waitFor();
});

it('job: a waiting job says why it waits, and a running one is cancelled', async () => {
  const { url, running, mulligan } = stage();
  const [held] = await mulligan.jobs.list({ name: 'email.send', state: 'ready', limit: 1 });
  const page = await visit(url, { at: `#/jobs/${held?.id}` });
  await page.getByText(/Its gate smtp: It is open/).waitFor();
  await page.goto(`${url}/#/jobs/${running}`);
  await page.getByText('"rows": 12000').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.locator('main .state', { hasText: 'cancelled' }).first().waitFor();
});

it('jobs: filters are in the address, survive a reload and an action, and a bulk cancel counts first', async () => {
  const { url, mulligan } = stage();
  await mulligan.enqueueMany(
    'image.resize',
    Array.from({ length: 7 }, () => ({ input: { image: 1 }, delay: '3h', tags: ['nightly'] }) as const),
  );
  const page = await visit(url, { at: '#/jobs' });
  await page.getByRole('button', { name: 'scheduled' }).click();
  await page.getByText('More filters').click();
  await page.getByLabel('Tag').fill('nightly');
  await page.getByLabel('Tag').press('Enter');
  await page.getByText('7 jobs match.', { exact: true }).waitFor();
  expect(page.url()).toContain('state=scheduled&tag=nightly');
  await page.reload();
  await page.getByText('7 jobs match.', { exact: true }).waitFor();
  expect(await page.getByRole('button', { name: 'Redrive…' }).isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'Cancel…' }).click();
  await page.getByRole('button', { name: 'Cancel 7 jobs' }).click();
  await page.getByText('0 jobs match.', { exact: true }).waitFor();
  expect(page.url()).toContain('state=scheduled&tag=nightly');
  expect((await mulligan.jobs.count({ tag: 'nightly', state: 'cancelled' })).count).toBe(7);
});

it('jobs: a search in payloads is bounded, says so, and does not find what is redacted', async () => {
  const page = await visit(stage().url, { at: '#/jobs' });
  await page.getByLabel('Search in').selectOption('payload');
  await page.getByPlaceholder('Search, or paste').fill('user7@example');
  await page.keyboard.press('Enter');
  await page.getByText('1 job found in payloads.', { exact: true }).waitFor();
  await page.getByText(/Looked into the payloads of \d+ jobs/).waitFor();
  await page.getByPlaceholder('Search, or paste').fill('4242');
  await page.keyboard.press('Enter');
  await page.getByText('0 jobs found in payloads.', { exact: true }).waitFor();
});

it('queues: a queue is paused and resumed', async () => {
  const { url, mulligan } = stage();
  const page = await visit(url, { at: '#/queues' });
  await page.getByRole('button', { name: 'Pause thumbnails' }).click();
  await page.getByRole('button', { name: 'Resume thumbnails' }).waitFor();
  expect(await mulligan.queues.list()).toContainEqual({ queue: 'thumbnails', paused: true });
  await page.getByRole('button', { name: 'Resume thumbnails' }).click();
  await page.getByRole('button', { name: 'Pause thumbnails' }).waitFor();
});

it('gates: a gate is pinned, unpinned and reset, and its history shows who did it', async () => {
  const { url, mulligan } = stage();
  const page = await visit(url, { at: '#/gates' });
  await page.getByRole('link', { name: 'smtp', exact: true }).click();
  await page.getByText('Nothing has to be pressed').waitFor();
  await page.getByRole('button', { name: 'Pin open' }).click();
  await page.locator('main .state', { hasText: 'pinned open' }).waitFor();
  expect((await mulligan.gates.show('smtp')).gate.pin).toBe('open');
  await page.getByRole('button', { name: 'Unpin' }).click();
  await page.getByRole('button', { name: 'Unpin' }).waitFor({ state: 'detached' });
  await page.getByRole('cell', { name: 'unpinned' }).waitFor();
  await page
    .getByRole('cell', { name: /^local from/ })
    .first()
    .waitFor();
});

it('limits: the busiest key is found, and its bound is changed', async () => {
  const { url, mulligan } = stage();
  const page = await visit(url, { at: '#/limits' });
  await page.getByRole('link', { name: 'tenant' }).click();
  await page.getByRole('button', { name: 'Change the key acme' }).click();
  await page.getByLabel('At once, per key').fill('3');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('3 of 3').waitFor();
  expect((await mulligan.limits.show('tenant', { key: 'acme' }))?.keys[0]?.settings.concurrency).toBe(3);
});

it('schedules, audit: a schedule is paused and triggered, and the record has it', async () => {
  const { url, mulligan } = stage();
  const page = await visit(url, { at: '#/schedules' });
  await page.getByRole('button', { name: 'Pause heartbeat' }).click();
  await page.getByRole('button', { name: 'Resume heartbeat' }).waitFor();
  await page.getByRole('button', { name: 'Trigger nightly-cleanup' }).click();
  await page.getByText('Its job was enqueued.').waitFor();
  expect((await mulligan.jobs.count({ name: 'sessions.clean' })).count).toBeGreaterThan(0);
  await page.getByText(/schedule heartbeat was paused/).waitFor();
  await page.goto(`${url}/#/audit`);
  await page.getByText(/schedule heartbeat was paused/).waitFor();
});

it('workers: each shows its version, host, running jobs and event loop', async () => {
  const { url } = stage();
  const page = await visit(url, { at: '#/workers' });
  const row = page.getByRole('row', { name: 'web-1' });
  await row.getByText('2026.11.3').waitFor();
  await row.getByText(hostname(), { exact: true }).waitFor();
  await row.getByText(`process ${process.pid}`).waitFor();
  await row.getByText(/^\d+ of 12$/).waitFor();
  await row.locator('[data-label="Event loop"]').getByText(/ m?s$/).waitFor();
  await row.getByRole('link', { name: 'webhook.deliver' }).first().click();
  await page.getByRole('heading', { name: 'webhook.deliver' }).waitFor();
  await page.locator('main .state', { hasText: 'running' }).first().waitFor();
});

it('workers: those that were not seen, and one whose event loop was blocked, are named on top', async () => {
  const clock = new VirtualClock({ startAt: Date.now() - 90_000 });
  const store = new MemoryStore({ clock });
  const { url } = await served({ target: store, queue: { clock } });
  const register = (id: string, loopDelayMs: number): Promise<void> =>
    store.register(id, {
      ...{
        name: id,
        version: '1',
        mulligan: '0.1.0',
        host: 'vm-7',
        pid: 4,
        concurrency: 9,
        queues: ['q'],
        jobs: ['a'],
      },
      ...{ running: 1, leaseMs: 30_000, loopDelayMs, http: null },
    });
  await register('killed', 3);
  await clock.advance(50_000);
  await register('hangs', 3);
  await clock.advance(40_000);
  await register('blocked', 21_000);
  const page = await visit(url, { at: '#/workers' });
  const rows = page.getByRole('table').getByRole('row');
  for (const [index, text] of [/killed.*lost/, /hangs.*silent/, /blocked.*alive/].entries()) {
    expect(await rows.nth(index + 1).textContent()).toMatch(text);
  }
  await page.getByText('2 workers are missing').waitFor();
  await page.getByText(/hangs on vm-7, last seen 4\d s ago/).waitFor();
  await page.getByText('1 event loop was blocked so long that leases are in danger').waitFor();
  await rows.nth(3).getByText('blocked 21 s').waitFor();
});

it('workers: one that speaks HTTP is known by its claims', async () => {
  const { url, call } = await served();
  await call('POST', '/api/v1/jobs', { name: 'photo.resize', input: 1 });
  const claim = { worker: 'py-7', wait: 0, host: 'lambda-3', version: '9.1' };
  await call('POST', '/api/v1/claim', claim, { 'user-agent': 'python-requests/2.32' });
  const page = await visit(url, { at: '#/workers' });
  const row = page.getByRole('row', { name: 'py-7' });
  for (const text of ['alive', 'lambda-3', '9.1', 'jobs of any name'])
    await row.getByText(text, { exact: true }).waitFor();
  await row.getByText('HTTP, python-requests/2.32').waitFor();
  await row.getByRole('link', { name: 'photo.resize' }).waitFor();
});

it('charts are drawn in a browser whose language is none', async () => {
  const page = await visit(stage().url, { at: '#/policy-lab', language: 'en-US@posix' });
  await page.locator('canvas').first().waitFor();
});

it('policy lab: what is wrong with a field is said below it, and the policy stays as it was', async () => {
  const page = await visit(stage().url, { at: '#/policy-lab' });
  const code = page.getByTestId('policy-code');
  await code.waitFor();
  const before = await code.textContent();
  const enter = async (field: string, text: string): Promise<void> => {
    await page.getByLabel(field).fill(text);
    await page.getByLabel(field).press('Tab');
  };
  await enter('First delay', '10');
  await page.getByText(/First delay: expected a duration .* Add a unit, such as 10s or 10ms\./).waitFor();
  expect(await page.getByLabel('First delay').inputValue()).toBe('10');
  await enter('Attempts', 'four');
  await page.getByText(/Attempts: expected .*, got "four"/).waitFor();
  await enter('Longest delay', '1ms');
  await page.getByText(/retry\.backoff\.max: expected at least the base/).waitFor();
  expect(await code.textContent()).toBe(before);
  await enter('First delay', '2s');
  await expect.poll(() => page.getByText(/First delay: expected/).count()).toBe(0);
  expect(await code.textContent()).toContain("base: '2s'");
});

it('policy lab: another backoff changes the waits, the total and the code', async () => {
  const page = await visit(stage().url, { at: '#/policy-lab' });
  await page.getByLabel('Begin with').selectOption('financial');
  await page.getByLabel('Backoff').selectOption('linear');
  await page.getByLabel('First delay').fill('2s');
  await page.getByLabel('First delay').press('Tab');
  await page.getByLabel('Jitter').selectOption('none');
  // 2 + 4 + 6 + 8 + 10 seconds.
  await expect.poll(() => page.locator('.tile', { hasText: 'At most' }).locator('.value').textContent()).toBe('30 s');
  expect(await page.getByTestId('policy-code').textContent()).toContain("kind: 'linear', base: '2s', max: '1m'");
});

it('policy lab: the ledger says what other settings would have changed', async () => {
  const page = await visit(stage().url, { at: '#/policy-lab' });
  await page.getByRole('button', { name: 'Read the last 7 days' }).click();
  await page.getByText('30 of 30 jobs failed at least once, 0 recovered', { exact: true }).waitFor();
});

it('policy lab: an outage is simulated in the browser, with a gate and without', async () => {
  const page = await visit(stage().url, { at: '#/policy-lab' });
  await page.getByLabel('What happens').selectOption('down for 3 minutes');
  await page.getByRole('button', { name: 'Simulate' }).click();
  const row = (name: string): Promise<string[]> => page.getByRole('row', { name }).getByRole('cell').allTextContents();
  await page.getByRole('row', { name: 'no-gate' }).waitFor({ timeout: 60_000 });
  const [mine, without] = [await row('this policy'), await row('no-gate')];
  const callsWhileDown = (cells: string[]): number => Number(cells[3]?.replaceAll(',', ''));
  expect(callsWhileDown(mine)).toBeLessThan(callsWhileDown(without));
});

it('a bad deploy: the worst error group is found, redriven with a canary, watched until it is empty', async () => {
  let isBroken = true;
  const job = defineJob<{ n: number }>({
    name: 'order.ship',
    retry: { maxAttempts: 1 },
    async run({ n }) {
      if (isBroken) throw new TypeError(`cannot read properties of undefined (reading 'address') of order ${n}`);
    },
  });
  const { url, mulligan } = await served({ queue: { jobs: [job] } });
  mulligan.work({ poll: '20ms', version: '2026.11.4' });
  await expect.poll(() => mulligan.workers.list()).toHaveLength(1);
  await mulligan.enqueueMany(
    job,
    Array.from({ length: 40 }, (_, n) => ({ input: { n } })),
  );
  await expect.poll(async () => (await mulligan.stats()).states.dead, { timeout: 20_000 }).toBe(40);
  const page = await visit(url);
  await page.getByRole('link', { name: /^order.ship: TypeError: cannot read .*; 40 dead\.$/ }).click();
  await page.getByText(/^First seen .* after a worker started; workers run version 2026\.11\.4\./).waitFor();
  await page.getByRole('button', { name: 'Redrive…' }).click();
  await page.getByText('40 jobs match').waitFor();
  await page.getByLabel('Canary: try so many first').fill('3');
  await page.getByRole('button', { name: 'Redrive 40 jobs' }).click();
  // Not mended yet: the canaries fail, and the rest stays dead.
  await page.getByText(/canaries did not complete/).waitFor();
  await page.getByText('3 jobs changed, canary of 3').waitFor();

  isBroken = false;
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect
    .poll(() => page.locator('.tile', { hasText: 'until redriven' }).locator('.value').textContent(), {
      timeout: 20_000,
    })
    .toBe('0');
  expect((await mulligan.stats()).states.completed).toBe(40);
});

it('failures: each group shows when it failed, and its page the same over time, with the last redrive', async () => {
  const { url, mulligan } = stage();
  const [group] = await mulligan.errors.list({ name: 'card.charge' });
  const error = group?.fingerprint as string;
  // A worker and the server count what has ended every 15 s or so.
  const counted = async (): Promise<number> => {
    const { series } = await mulligan.errors.history({ error, name: 'card.charge' });
    return series.flatMap(({ failures }) => failures).reduce((sum, failures) => sum + failures, 0);
  };
  await expect.poll(counted, { timeout: 60_000, interval: 200 }).toBe(90);
  const page = await visit(url, { at: '#/failures' });
  const row = page.getByRole('row', { name: 'card.charge' });
  await row.getByRole('img', { name: /^90 failed runs; the most, \d+ in 1 h, / }).waitFor();
  expect(await row.locator('.sparkline rect:not(.sparkline-ground)').count()).toBeGreaterThan(0);
  await page.getByLabel('Seen within').selectOption('1h');
  await page.getByRole('columnheader', { name: 'Last hour' }).waitFor();
  await row.getByRole('img', { name: /^90 failed runs; the most, \d+ in 5 min, / }).waitFor();

  await row.getByRole('link').click();
  await page.getByRole('figure', { name: /^Failures over time: 90 failed runs, with which 30 jobs died$/ }).waitFor();
  await mulligan.dead.redrive({ error });
  const marked = page.getByRole('figure', { name: /^Failures over time: \d+ failed runs, .*; last redrive at / });
  await marked.getByText('Last redrive').waitFor();
  await page.getByRole('button', { name: '7 days' }).click();
  await marked.getByText('Failed runs in 3 h').waitFor();
  expect(page.url()).toContain('name=card.charge&range=7d');
});
