import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { systemClock } from '../src/clock.ts';
import { defineJob } from '../src/definition.ts';
import type { ErrorGroup, ErrorHistory } from '../src/index.ts';
import { Mulligan } from '../src/mulligan.ts';
import { openStore } from '../src/store/open.ts';
import { type Cli, it } from './support/cli.ts';

const charge = defineJob<number>({
  name: 'card.charge',
  retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: '1ms' }, jitter: 'none' },
  resource: false,
  run(order, { attempt }) {
    if (order > 5 && attempt === 2) return;
    throw new TypeError(`order ${order} has no currency\u001b[2J`);
  },
});
const sync = defineJob<number>({
  name: 'sync',
  queue: 'slow',
  retry: { maxAttempts: 5, backoff: { kind: 'fixed', base: '1h' }, jitter: 'none' },
  resource: false,
  run: (shop) => {
    throw new Error(`connect ECONNREFUSED 10.0.0.${shop}:443`);
  },
});

/** Makes the default database of a command line: 5 dead and 1 recovered of one kind, 3 failing of another. */
async function incident(cli: Cli): Promise<ErrorGroup[]> {
  const url = `sqlite:${join(cli.folder, 'mulligan.db')}`;
  const mulligan = await Mulligan.open(url, { jobs: [charge, sync], log: () => {} });
  const over = Promise.withResolvers<void>();
  let left = 9;
  const count = (): void => {
    if (--left === 0) over.resolve();
  };
  mulligan.on('dead', count);
  mulligan.on('completed', count);
  mulligan.on('retrying', ({ name }) => name === 'sync' && count());
  await mulligan.enqueueMany(charge, [
    { input: 1 },
    { input: 2 },
    { input: 3 },
    { input: 4 },
    { input: 5 },
    { input: 6 },
  ]);
  await mulligan.enqueueMany(sync, [{ input: 1 }, { input: 2 }, { input: 3 }]);
  mulligan.work({ queues: ['default', 'slow'] });
  await over.promise;
  const groups = await mulligan.errors.list();
  await mulligan.close();
  return groups;
}

describe.concurrent('mulligan errors', () => {
  it('list shows groups, the largest first', async ({ cli }) => {
    const [worst, other] = (await incident(cli)) as [ErrorGroup, ErrorGroup];
    const { code, stdout, stderr } = await cli.run(['errors', 'list']);
    expect([code, stderr]).toEqual([0, '']);
    const rows = stdout.trimEnd().split('\n');
    expect(rows).toHaveLength(3);
    expect(rows[1]).toMatch(new RegExp(`^${worst.fingerprint} +5 +0 +17% .* card\\.charge +TypeError: order`));
    expect(rows[2]).toMatch(new RegExp(`^${other.fingerprint} +0 +3 +- .* sync +Error: connect ECONNREFUSED`));
    expect(await cli.json('errors', 'list')).toEqual({ groups: [worst, other] });
    expect(await cli.json('errors', 'list', '--state', 'failing')).toEqual({ groups: [other] });
    expect(await cli.json('errors', 'list', '--name', 'card.charge', '--since', '1h')).toEqual({ groups: [worst] });
    expect(await cli.json('errors', 'list', '--queue', 'slow', '--since', '2026-01-01')).toEqual({ groups: [other] });
    expect((await cli.run(['errors', 'list', '--limit', '1'])).stderr).toContain('There may be more');
    expect(await cli.run(['errors', 'list', '--name', 'x'])).toMatchObject({
      code: 0,
      stdout: 'No error group matches.\n',
    });
  });

  it('show prints the sample with its stack, how many recovered, and what can be done', async ({ cli }) => {
    const [worst, other] = (await incident(cli)) as [ErrorGroup, ErrorGroup];
    const { code, stdout } = await cli.run(['errors', 'show', worst.fingerprint.slice(0, 10)]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^now +5 dead, 0 failing$/m);
    expect(stdout).toMatch(/^in all +11 failed runs of 6 jobs$/m);
    expect(stdout).toMatch(/^recovered +1 job, 17% .*\(1 at attempt 2\)$/m);
    expect(stdout).toMatch(/^card\.charge +default +5 +0 +11$/m);
    expect(stdout).toContain(`the first of them: job ${worst.sample?.jobId}`);
    expect(stdout).toMatch(/^ {2}at .*cli-errors\.test\.ts/m);
    expect(stdout).not.toContain('\u001b');
    expect(stdout).toContain(`mulligan dead redrive --error ${worst.fingerprint} --canary 10 --rate 50/s`);
    expect(stdout).not.toContain('run-now');
    const failing = await cli.run(['errors', 'show', other.fingerprint]);
    expect(failing.stdout).toContain(`mulligan jobs run-now --state retrying --error ${other.fingerprint} --rate 50/s`);
    expect(failing.stdout).not.toContain('dead redrive');
    expect(await cli.json('errors', 'show', other.fingerprint)).toMatchObject({ group: other });
  });

  it('show draws the failures of the last 24 hours', async ({ cli }) => {
    const [worst] = (await incident(cli)) as [ErrorGroup];
    await using store = Object.assign(await openStore(`sqlite:${join(cli.folder, 'mulligan.db')}`, systemClock), {
      [Symbol.asyncDispose]: () => store.close(),
    });
    const failures = async (): Promise<number> => {
      const answer = await cli.json<{ history: ErrorHistory }>('errors', 'show', worst.fingerprint);
      return answer.history.series.flatMap((series) => series.failures).reduce((sum, count) => sum + count, 0);
    };
    // What has just ended is counted a second later.
    while ((await failures()) < 11) await store.rollUp();
    expect(await failures()).toBe(11);
    const { stdout } = await cli.run(['errors', 'show', worst.fingerprint]);
    expect(stdout).toMatch(/^last 24h +\|[ ▁▂▃▄▅▆▇]*█[ ▁▂▃▄▅▆▇]*\| up to \d+ failed runs in 30m$/m);
  });

  it('show says that there is no such group', async ({ cli }) => {
    await incident(cli);
    const { code, stdout, stderr } = await cli.run(['errors', 'show', 'zz']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('expected the fingerprint of an error group, or the start of one, got zz. See mulligan');
  });

  it.for([
    [['show', 'e1'], 'Give more of it.'],
    [['list', '--state', 'retrying'], '--state: expected one of failing, dead'],
    [['list', '--since', 'yesterday'], '--since'],
    [['list', '--limit', '0'], '--limit'],
    [[], 'expected mulligan errors list | show'],
  ] as const)('%j is wrong usage', async ([args, message], { cli }) => {
    if (args[0] === 'show') await incident(cli);
    const { code, stdout, stderr } = await cli.run(['errors', ...args]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });
});
