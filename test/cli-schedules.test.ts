import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { Job, ScheduleDetails, ScheduleInfo } from '../src/index.ts';
import { type Cli, it } from './support/cli.ts';

const library = new URL('../src/index.ts', import.meta.url).href;

function writeJobs(cli: Cli): void {
  writeFileSync(
    join(cli.folder, 'jobs.mjs'),
    `import { defineJob } from ${JSON.stringify(library)};
    export const report = defineJob({ name: 'report', queue: 'reports', retry: { maxAttempts: 2 }, run() {} });`,
  );
}

const nightly = ['set', 'nightly', 'report', '{"a":1}', '--cron', '30 2 * * *', '--timezone', 'Europe/Berlin'];

describe.concurrent('mulligan schedules', () => {
  it('set creates a schedule, and the database with it; list and show print it', async ({ cli }) => {
    expect((await cli.run(['schedules', ...nightly])).stdout).toMatch(
      /^Schedule nightly is set\. Next tick: 2\S+Z\.$/m,
    );
    const { stdout: listed } = await cli.run(['schedules', 'list']);
    expect(listed).toMatch(/^nightly +report +30 2 \* \* \*, Europe\/Berlin +in \d+.* +- +stored$/m);
    const { stdout: shown } = await cli.run(['schedules', 'show', 'nightly', '--next', '2']);
    expect(shown).toMatch(/^job +report, queue default, priority 5$/m);
    expect(shown).toMatch(/^missed ticks +once$/m);
    expect(shown.match(/ 02:30:00 Europe\/Berlin$/gm)).toHaveLength(2);
    const { schedules } = await cli.json<{ schedules: ScheduleInfo[] }>('schedules', 'list');
    expect(schedules).toMatchObject([{ name: 'nightly', input: { a: 1 }, overlap: 'allow', source: 'stored' }]);
    const details = await cli.json<ScheduleDetails>('schedules', 'show', 'nightly');
    expect(details.nextTimes).toHaveLength(5);
  });

  it('set takes the definition and the options of its jobs, and changes a schedule', async ({ cli }) => {
    writeJobs(cli);
    await cli.json('schedules', ...nightly);
    const options = [
      '--every',
      '90s',
      '--anchor',
      '2026-01-01T00:00:30+01:00',
      '--misfire',
      'all',
      '--overlap',
      'skip',
    ];
    const more = ['--misfire-limit', '7', '--priority', '2', '--jobs', 'jobs.mjs'];
    const { schedule } = await cli.json<{ schedule: ScheduleInfo }>(
      ...['schedules', 'set', 'nightly', 'report', ...options, ...more],
    );
    expect(schedule).toMatchObject({
      ...{ queue: 'reports', priority: 2, misfire: 'all', misfireLimit: 7, overlap: 'skip', input: {} },
      timing: { kind: 'every', everyMs: 90_000, anchor: Date.parse('2025-12-31T23:00:30Z') },
    });
    const unknown = ['schedules', 'set', 'x', 'reprot', '--every', '1m', '--jobs', 'jobs.mjs'];
    expect(await cli.run(unknown)).toMatchObject({ code: 2, stderr: expect.stringContaining('Did you mean report?') });
  });

  it('pause, resume, trigger and remove do what they say', async ({ cli }) => {
    await cli.json('schedules', ...nightly, '--overlap', 'skip');
    expect(await cli.run(['schedules', 'pause', 'nightly'])).toMatchObject({ stdout: 'Schedule nightly is paused.\n' });
    expect((await cli.run(['schedules', 'list'])).stdout).toMatch(/Berlin +paused +-/);
    const resumed = await cli.json<{ schedule: ScheduleInfo }>('schedules', 'resume', 'nightly');
    expect(resumed.schedule).toMatchObject({ paused: false, nextAt: expect.any(Number) });
    const { stdout: id } = await cli.run(['schedules', 'trigger', 'nightly']);
    const { jobs } = await cli.json<{ jobs: Job[] }>('jobs', 'list');
    expect(jobs).toMatchObject([{ id: id.trim(), name: 'report', payload: { a: 1 } }]);
    const again = await cli.run(['schedules', 'trigger', 'nightly']);
    expect(again).toMatchObject({ stdout: id, stderr: expect.stringContaining('must not overlap') });
    expect(await cli.json('schedules', 'remove', 'nightly')).toEqual({ name: 'nightly', removed: true });
    expect((await cli.run(['schedules', 'list'])).stdout).toBe('There is no schedule.\n');
  });

  it('what is wrong with a schedule is said', async ({ cli }) => {
    const wrong: [string[], string][] = [
      [['--cron', '0 25 * * *'], 'The hour is wrong ("25")'],
      [['--at', '2020-01-01T00:00:00Z'], 'at: expected a time in the future'],
      [['--at', '2020-01-01'], '--at: expected a time with its zone'],
      [['--every', '1m', '--misfire', 'al'], 'Did you mean all?'],
    ];
    for (const [flags, message] of wrong) {
      const { code, stderr } = await cli.run(['schedules', 'set', 's', 'job', ...flags]);
      expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    }
  });

  it('names that do not exist are failures, not silence', async ({ cli }) => {
    await cli.json('schedules', ...nightly);
    const { code, stderr } = await cli.run(['schedules', 'pause', 'nightyl']);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('there is no schedule "nightyl". Did you mean nightly?'),
    ]);
    for (const verb of ['show', 'remove']) {
      const { code, stderr } = await cli.run(['schedules', verb, 'nightyl']);
      expect([code, stderr]).toEqual([1, expect.stringContaining('there is no schedule "nightyl"')]);
    }
  });
});

describe.concurrent('mulligan doctor', () => {
  it('warns of a schedule whose job is not among the definitions', async ({ cli }) => {
    writeJobs(cli);
    await cli.json('schedules', ...nightly);
    const known = await cli.run(['doctor', '--jobs', 'jobs.mjs']);
    expect(known.stdout).toMatch(/^ok +schedules +1$/m);
    await cli.json('schedules', 'set', 'orphan', 'gone', '--every', '1h');
    const { stdout } = await cli.run(['doctor', '--jobs', 'jobs.mjs']);
    expect(stdout).toMatch(/^warn +schedules +1 schedule whose job no worker knows: orphan \(job gone\)$/m);
    expect((await cli.run(['doctor'])).stdout).toMatch(/^ok +schedules +2$/m);
  });
});
