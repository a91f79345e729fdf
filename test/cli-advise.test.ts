import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { defineJob } from '../src/definition.ts';
import type { Advice } from '../src/index.ts';
import { Mulligan } from '../src/mulligan.ts';
import { type Cli, it } from './support/cli.ts';

const definition = new URL('../src/index.ts', import.meta.url).href;

const charge = defineJob<number>({
  name: 'card.charge',
  retry: { maxAttempts: 3, backoff: { kind: 'fixed', base: '1ms' }, jitter: 'none' },
  resource: false,
  run(order, { attempt }) {
    if (order > 2 && attempt === 2) return;
    throw new TypeError(`order ${order} has no currency\u001b[2J`);
  },
});

const refused = defineJob<number>({
  name: 'shop.sync',
  retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: '1ms' }, jitter: 'none' },
  resource: false,
  run() {
    throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  },
});

/** Makes the default database of a command line. Of charges, 2 die and 2 recover at attempt 2. */
async function work(cli: Cli, job = charge, inputs = [1, 2, 3, 4]): Promise<void> {
  const url = `sqlite:${join(cli.folder, 'mulligan.db')}`;
  await using mulligan = await Mulligan.open(url, { jobs: [job], log: () => {} });
  await mulligan.enqueueMany(
    job,
    inputs.map((input) => ({ input })),
  );
  const over = Promise.withResolvers<void>();
  let left = inputs.length;
  const count = (): void => {
    if (--left === 0) over.resolve();
  };
  mulligan.on('dead', count);
  mulligan.on('completed', count);
  mulligan.work();
  await over.promise;
}

describe.concurrent('mulligan policy advise', () => {
  it('gives the figures of a small ledger, says that it is too small, and proposes nothing', async ({ cli }) => {
    await work(cli);
    const { code, stdout, stderr } = await cli.run(['policy', 'advise']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/The last 30d \(the first of these jobs ended .* ago\): 4 ended jobs, all of them read\./);
    expect(stdout).toContain('card.charge: 4 jobs, of which 4 failed at least once.');
    expect(stdout).toMatch(/Retries took 6 runs and .* of run time, and 2 jobs recovered\./);
    expect(stdout).toMatch(/^ +2 +4 +2 +50 %/m);
    expect(stdout).toMatch(/^ +3 +2 +0 +0 % +-$/m);
    expect(stdout).toMatch(/TypeError: order 1 has no currency/);
    expect(stdout).toContain('Too small a ledger: only 4 jobs were retried. At least 299 are needed');
    // What a job threw must not move the cursor of a terminal.
    expect(stdout).not.toContain('\u001b[2J');
    const advice = await cli.json<Advice>('policy', 'advise', '--name', 'card.charge', '--days', '1');
    expect(advice).toMatchObject({ read: 4, jobs: 4, isSampled: false, isPruned: false });
    expect(advice.names[0]).toMatchObject({ name: 'card.charge', proposals: [], retries: { runs: 6, recovered: 2 } });
  });

  it('proposes a resource where jobs died in an outage behind no gate, and replays the outage with it', async ({
    cli,
  }) => {
    await work(cli, refused, [1, 2, 3, 4, 5, 6]);
    const { code, stdout } = await cli.run(['policy', 'advise', '--simulate']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/Proposals\n {2}- name a resource: 6 jobs died in the outage of \dm from /);
    expect(stdout).toMatch(/outage of shop\.sync, seed .*present +with a gate/s);
    expect(stdout).not.toContain('Worse than the present policy');
  });

  it('says so when nothing has ended, and refuses what it cannot read', async ({ cli }) => {
    await work(cli);
    const nothing = await cli.run(['policy', 'advise', '--name', 'another']);
    expect([nothing.code, nothing.stdout]).toEqual([0, expect.stringContaining('nothing is proposed.')]);
    const wrong = await cli.run(['policy', 'advise', '--days', 'x']);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--days: expected a number')]);
  });
});

describe.concurrent('mulligan policy explain', () => {
  it('prints the warnings of a definition, for the workers that the flags describe', async ({ cli }) => {
    writeFileSync(
      join(cli.folder, 'jobs.ts'),
      `import { defineJob, policies } from '${definition}';
       export const a = defineJob({ name: 'a', retry: { ...policies.sweep }, timeout: '1m', run: () => {} });
       export const b = defineJob({ name: 'b', retry: policies.sweep, silence: ['no-jitter'], run: async () => {} });`,
    );
    const explain = (name: string, ...flags: string[]): Promise<{ warnings: { name: string }[]; text: string }> =>
      cli.json('policy', 'explain', '--jobs', 'jobs.ts', '--name', name, ...flags);
    const found = await explain('a', '--concurrency', '100');
    expect(found.warnings).toMatchObject([{ name: 'no-jitter' }, { name: 'timeout-beyond-lease' }]);
    expect(found.text).toMatch(/\n\nWarnings\n {2}- no-jitter: jitter: 'none' with 100 jobs at once/);
    expect((await explain('a', '--lease', '2m')).warnings).toEqual([]);
    expect((await explain('b', '--concurrency', '100')).warnings).toEqual([]);
  });
});
