import { describe, expect } from 'vitest';
import { systemClock } from '../src/clock.ts';
import { defineJob } from '../src/index.ts';
import { Mulligan } from '../src/mulligan.ts';
import type { History } from '../src/observe/history.ts';
import { openStore } from '../src/store/open.ts';
import { it } from './support/cli.ts';

const flaky = defineJob({
  name: 'email.send',
  retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: 1 }, jitter: 'none' },
  run(input: { readonly fails: number }, { attempt }) {
    if (attempt <= input.fails) throw new Error('no luck');
  },
});

describe.concurrent('mulligan stats --last', () => {
  it('shows runs over time and by name, after the jobs themselves are deleted', async ({ cli }) => {
    const url = `sqlite:${cli.folder}/mulligan.db`;
    await using mulligan = await Mulligan.open(url, { jobs: [flaky], log: () => {} });
    await mulligan.enqueueMany(
      flaky,
      [0, 0, 1, 2].map((fails) => ({ input: { fails } })),
    );
    const worker = mulligan.work();
    while ((await mulligan.jobs.count({ state: ['completed', 'dead'] })).count < 4) await worker.whenIdle();
    await worker.stop();
    await mulligan.dead.discard({ name: 'email.send' });
    await using store = Object.assign(await openStore(url, systemClock), {
      [Symbol.asyncDispose]: () => store.close(),
    });
    const json = () => cli.json<History>('stats', '--last', '5m', '--db', url);
    let answer = await json();
    // What has just ended is counted a second later.
    while (answer.total.runs < 6) {
      await store.rollUp();
      answer = await json();
    }
    expect(answer.total).toMatchObject({ runs: 6, completed: 3, failed: 3, retries: 2, dead: 1 });
    expect(answer.names.map(({ name, runs }) => [name, runs])).toEqual([['email.send', 6]]);
    expect(answer.points.length).toBeGreaterThanOrEqual(5);
    const { stdout } = await cli.run(['stats', '--last', '1h', '--name', 'email.send', '--db', url]);
    expect(stdout).toMatch(
      /^runs +6 \(3 completed, 3 failed, crashed or deferred\)\nretries +2, 33\.3 % of all runs\ndead +1$/m,
    );
    expect(stdout).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\dZ +\d+ .*█/m);
    expect(await cli.run(['stats', '--last', '1h', '--step', '90s', '--db', url])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('expected whole minutes'),
    });
    expect(await cli.run(['stats', '--step', '1m', '--db', url])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--step goes with --last'),
    });
  });
});
