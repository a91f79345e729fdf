import { describe, expect } from 'vitest';
import { Mulligan } from '../src/mulligan.ts';
import type { Forecast } from '../src/observe/forecast.ts';
import { inProcess } from './fuzz/terminal.ts';
import { it } from './support/cli.ts';

describe('mulligan forecast', () => {
  it('tells what waits, which retries come, and what becomes of the backlog', async ({ cli }) => {
    const url = `sqlite:${cli.folder}/mulligan.db`;
    await using mulligan = await Mulligan.open(url, { log: () => {} });
    const empty = await inProcess(['forecast', '--db', url], {});
    expect(empty).toMatchObject({ code: 0, stderr: '' });
    expect(empty.stdout).toContain('no due job waits');
    expect(empty.stdout).toContain('No retry falls due within the next hour.');

    await mulligan.enqueueMany('email.send', [{ input: 1 }, { input: 2 }], { queue: 'emails' });
    await mulligan.enqueue('report', 3, { delay: '10m' });
    const { stdout } = await cli.run(['forecast', '--db', url]);
    expect(stdout).toMatch(
      /^backlog +2 due, 0 running\noutlook +stalled: no job has ended in the last 5 minutes\nbecause +no registered worker is alive$/m,
    );
    expect(stdout).toMatch(/^default +fresh +0 +- +1$/m);
    expect(stdout).toMatch(/^emails +fresh +2 +\d\S* +0$/m);
    const json = await inProcess(['forecast', '--queue', 'emails', '--json', '--db', url], {});
    const answer = JSON.parse(json.stdout) as Forecast;
    expect(answer).toMatchObject({ outlook: 'stalled', emptyAt: null, backlog: { count: 2, isExact: true } });
    expect(answer.lanes.map(({ queue }) => queue)).toEqual(['emails']);
    expect(answer.retries).toHaveLength(60);
  });
});
