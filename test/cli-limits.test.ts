import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { defineJob, type Job, type LimitDetails, type LimitSummary, Mulligan } from '../src/index.ts';
import { type Cli, it } from './support/cli.ts';

const library = new URL('../src/index.ts', import.meta.url).href;

/** Makes the default database of a command line, with three jobs of one shop, of which one is running. */
async function limited(cli: Cli): Promise<AsyncDisposable & { readonly ids: readonly string[] }> {
  const job = defineJob<{ shop: string }>({
    name: 'sync',
    limit: { name: 'shopify', key: ({ shop }) => shop, concurrency: 1 },
    run: (_, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  });
  const mulligan = await Mulligan.open(`sqlite:${join(cli.folder, 'mulligan.db')}`, { jobs: [job], log: () => {} });
  const started = new Promise<void>((resolve) => mulligan.on('started', () => resolve()));
  const inputs = ['a.example', 'a.example', 'a.example'].map((shop) => ({ input: { shop } }));
  const ids = (await mulligan.enqueueMany(job, inputs)).map(({ id }) => id);
  mulligan.work({ lease: '10m' });
  await started;
  return { ids, [Symbol.asyncDispose]: () => mulligan.close({ grace: 0 }) };
}

describe.concurrent('mulligan limits', () => {
  it('list and show say what is allowed, what runs and what waits', async ({ cli }) => {
    await using _ = await limited(cli);
    const { code, stdout } = await cli.run(['limits', 'list']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^shopify +1 +- +- +1 +2 +-$/m);
    const { limits } = await cli.json<{ limits: LimitSummary[] }>('limits', 'list');
    expect(limits).toMatchObject([{ name: 'shopify', settings: { concurrency: 1 }, running: 1, waiting: 2 }]);
    const shown = await cli.run(['limits', 'show', 'shopify']);
    expect(shown.stdout).toMatch(/^in code +concurrency 1; total unbounded; rate unbounded$/m);
    expect(shown.stdout).toMatch(/^a\.example +1 +2 +1 +- +- +-$/m);
    const { keys } = await cli.json<LimitDetails>('limits', 'show', 'shopify', '--key', 'b.example');
    expect(keys).toMatchObject([{ key: 'b.example', running: 0, waiting: 0, settings: { concurrency: 1 } }]);
  });

  it('set changes a limit or one key, and reset goes back to what code says', async ({ cli }) => {
    await using _ = await limited(cli);
    const all = await cli.run(['limits', 'set', 'shopify', '--total', '7', '--rate', '90/10s', '--burst', '3']);
    expect(all).toMatchObject({ code: 0, stderr: '' });
    expect(all.stdout).toBe(
      'Limit shopify allows concurrency 1; total 7; rate 90 per 10s, burst 3 (set by hand: total 7; rate 90 per 10s, burst 3). Jobs that run go on.\n',
    );
    const key = await cli.run([
      'limits',
      'set',
      'shopify',
      '--key',
      'a.example',
      '--concurrency',
      'none',
      '--rate',
      '5/m',
    ]);
    expect(key.stdout).toBe(
      'Key a.example of limit shopify allows concurrency unbounded; total 7; rate 5 per 1m, burst 3 (set by hand: concurrency unbounded; rate 5 per 1m, burst 3). Jobs that run go on.\n',
    );
    await cli.json('limits', 'reset', 'shopify', '--key', 'a.example');
    const { limit, keys } = await cli.json<LimitDetails>('limits', 'reset', 'shopify');
    expect(limit).toMatchObject({ set: null, settings: { concurrency: 1, total: null, rate: null } });
    expect(keys).toMatchObject([{ key: 'a.example', set: null }]);
  });

  it('tells what is set by hand for keys, and what is computed for each of them', async ({ cli }) => {
    const job = defineJob<string>({
      name: 'a',
      limit: { name: 'tenant', key: (tenant) => tenant, concurrency: (tenant) => tenant.length },
      run() {},
    });
    {
      await using mulligan = await Mulligan.open(`sqlite:${join(cli.folder, 'mulligan.db')}`, { jobs: [job] });
      await mulligan.enqueueMany(job, [{ input: 'busy' }, { input: 'busy' }, { input: 'a' }]);
      await mulligan.limits.set('tenant', { concurrency: 7 }, { key: 'quiet' });
      await mulligan.limits.set('tenant', { rate: { limit: 5, per: '1s' } }, { key: '' });
    }
    const listed = await cli.run(['limits', 'list']);
    expect(listed.stdout).toMatch(/^tenant +by key +- +- +0 +3 +2 keys$/m);
    const shown = await cli.run(['limits', 'show', 'tenant']);
    expect(shown.stdout).toMatch(/^in code +concurrency by key; total unbounded; rate unbounded$/m);
    expect(shown.stdout).toMatch(/^keys set by hand +2$/m);
    expect(shown.stdout.split('\n').slice(-5, -1)).toEqual([
      expect.stringMatching(/^"" +0 +0 +by key +5 per 1s .* rate 5 per 1s$/),
      expect.stringMatching(/^quiet +0 +0 +7 +- +- +concurrency 7$/),
      expect.stringMatching(/^busy +0 +2 +4 +- +- +-$/),
      expect.stringMatching(/^a +0 +1 +1 +- +- +-$/),
    ]);
    const empty = await cli.run(['limits', 'show', 'tenant', '--key', '']);
    expect(empty.stdout).toMatch(/^"" +0 +0 +by key/m);
    const all = await cli.run(['limits', 'set', 'tenant', '--total', '0']);
    expect(all.stdout).toBe(
      'Limit tenant allows concurrency by key; total 0; rate unbounded (set by hand: total 0). Jobs that run go on. 2 keys of it are still set by hand: mulligan limits show tenant.\n',
    );
    const key = await cli.run(['limits', 'reset', 'tenant', '--key', 'quiet']);
    expect(key.stdout).toBe(
      'Key quiet of limit tenant allows concurrency by key; total 0; rate unbounded (nothing is set by hand for this key; the limit is set by hand: total 0). Jobs that run go on.\n',
    );
    const reset = await cli.run(['limits', 'reset', 'tenant']);
    expect(reset.stdout).toBe(
      'Limit tenant allows concurrency by key; total unbounded; rate unbounded (nothing is set by hand). Jobs that run go on. 1 key of it is still set by hand: mulligan limits show tenant.\n',
    );
  });

  it('set lets the waiting jobs of a running worker start', async ({ cli }) => {
    await using queue = await limited(cli);
    await cli.run(['limits', 'set', 'shopify', '--concurrency', '3']);
    const state = async (id: string): Promise<string> => (await cli.json<{ job: Job }>('jobs', 'show', id)).job.state;
    await expect
      .poll(() => Promise.all(queue.ids.map(state)), { timeout: 30_000 })
      .toEqual(['running', 'running', 'running']);
  });

  it.for([
    [['set', 'shopify'], 'expected what to set: --concurrency, --total or --rate.'],
    [['set', 'shopify', '--burst', '2'], '--burst: expected --rate with it, such as --rate 90/10s.'],
    [['set', 'shopify', '--rate', 'none', '--burst', '3'], '--burst: expected --rate with it, such as --rate 90/10s.'],
    [
      ['set', 'shopify', '--rate', 'fast'],
      '--rate: expected a number of starts and a time such as 90/10s or 5/m, got fast.',
    ],
    [
      ['set', 'shopify', '--concurrency', '-1'],
      '--concurrency: expected a whole number of at least 0, got -1. Or none for no bound.',
    ],
    [['set', 'shopifi', '--concurrency', '1'], 'got "shopifi". Did you mean shopify?'],
    [['show', 'shopifi'], 'expected the name of a limit, got shopifi. See mulligan limits list.'],
  ] as const)('refuses %j in one line', async ([args, message], { cli }) => {
    await using _ = await limited(cli);
    const { code, stdout, stderr } = await cli.run(['limits', ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr.trimEnd()).not.toContain('\n');
  });

  it('jobs show tells which limit a job waits for, and its place', async ({ cli }) => {
    await using queue = await limited(cli);
    const { stdout } = await cli.run(['jobs', 'show', queue.ids[2] as string]);
    expect(stdout).toMatch(/^limits +shopify \(key a\.example\)$/m);
    expect(stdout).toContain(
      'waits: Limit shopify, key a.example: 1 of 1 run. 2 jobs of the key wait, 1 of them before it.',
    );
  });

  it('enqueue with definitions stores the limits of a job', async ({ cli }) => {
    writeFileSync(
      join(cli.folder, 'jobs.ts'),
      `import { defineJob } from ${JSON.stringify(library)};
       export default [defineJob<string>({ name: 'a', limit: { name: 'host', key: (host) => host, rate: { limit: 1, per: '1m' } }, run() {} })];`,
    );
    const { id } = await cli.json<{ id: string }>('enqueue', 'a', '"example.com"', '--jobs', 'jobs.ts');
    const { job } = await cli.json<{ job: Job }>('jobs', 'show', id);
    expect(job.limits).toEqual([{ limit: 'host', key: 'example.com' }]);
  });
});
