import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect } from 'vitest';
import type { OutageSummary } from '../src/cli/demo/outage/summary.ts';
import type { Job, RunRecord } from '../src/job.ts';
import type { Stats } from '../src/observe/stats.ts';
import { type Cli, isAlive, it } from './support/cli.ts';

/** The worker processes that the demo told of. */
function processesIn(text: string): number[] {
  return [...text.matchAll(/worker process (\d+) (?:started|takes its place)/g)].map(([, pid]) => Number(pid));
}

describe.concurrent('mulligan demo', () => {
  it('ends by itself, shows the ledgers and leaves nothing behind', async ({ cli }) => {
    const { code, stdout, stderr } = await cli.run(['demo'], { env: { TMPDIR: cli.folder } });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/report\.build #1 .* attempt 3 completed, saved by a retry/);
    expect(stdout).toMatch(/sms\.send #1 .* as it was asked to wait/);
    expect(stdout).toMatch(/video\.encode #1 .* TimeoutError/);
    expect(stdout).toMatch(/invoice\.import #1 .* dead: unrecoverable \(thrown:Unrecoverable\)/);
    expect(stdout).toMatch(/card\.charge #1 .* dead: exhausted \(attempts 4 of 4\)/);
    expect(stdout).toMatch(/worker process \d+ was killed by the job it ran \(SIGKILL\)/);
    expect(stdout).toMatch(
      /image\.decode #1 +dead: poison[\s\S]*crash 1 of 3[\s\S]*crash 2 of 3[\s\S]*dead: poison \(maxCrashes 3\)/,
    );
    expect(stdout).toMatch(/^totalRetries +\d+ .*\nsuccessfulRetries +\d+ .*\nretrySuccessRate +[\d.]+ %/m);
    expect(processesIn(stdout).filter(isAlive)).toEqual([]);
    expect(cli.files).toEqual([]);
  });

  it('prints JSON when it is over', async ({ cli }) => {
    const { code, stdout, stderr } = await cli.run(['demo', '--json'], { env: { TMPDIR: cli.folder } });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { jobs, stats } = JSON.parse(stdout) as { jobs: { job: Job; runs: RunRecord[] }[]; stats: Stats };
    expect(jobs).toHaveLength(38);
    expect(stats.states).toMatchObject({ completed: 31, dead: 7, ready: 0, running: 0, retrying: 0, scheduled: 0 });
    expect(stats.totals.dead).toMatchObject({ exhausted: 3, unrecoverable: 3, poison: 1 });
    expect(stats.retrySuccessRate).toBeCloseTo(stats.successfulRetries / stats.totalRetries);
    const killer = jobs.find(({ job }) => job.deadReason === 'poison');
    expect(killer?.runs.map(({ outcome }) => outcome)).toEqual(['crashed', 'crashed', 'crashed']);
    const limited = jobs.find(({ job }) => job.name === 'sms.send');
    expect(limited?.runs[0]?.decision).toMatchObject({ kind: 'retry', why: 'retry-after' });
  });

  it.for(['SIGINT', 'SIGTERM'] as const)('cleans up when it is interrupted by %s', async (signal, { cli }) => {
    const demo = cli.start(['demo'], { env: { TMPDIR: cli.folder } });
    await demo.printed(/worker process \d+ takes its place/);
    demo.process.kill(signal);
    const { code, stdout } = await demo.ended;
    expect(code).toBe(130);
    expect(processesIn(stdout).filter(isAlive)).toEqual([]);
    expect(cli.files).toEqual([]);
  });

  it('keeps its database when asked to', async ({ cli }) => {
    const { code, stdout } = await cli.run(['demo', '--keep'], { env: { TMPDIR: cli.folder } });
    expect(code).toBe(0);
    const [, url] = /export MULLIGAN_DB=(\S+)/.exec(stdout) ?? [];
    const dead = await cli.run(['dead', 'list'], { env: { MULLIGAN_DB: url } });
    expect(dead.stdout).toMatch(/image\.decode .* dead: poison/);
  });
});

describe('mulligan demo --outage', () => {
  it('ends with figures of both sides: with a gate no job is dead, and the dead service gets few calls', async ({
    cli,
  }) => {
    const { code, stdout, stderr } = await cli.run(['demo', '--outage', '4', '--json'], {
      env: { TMPDIR: cli.folder },
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { outageMs, ungated, gated } = JSON.parse(stdout) as OutageSummary;
    expect(outageMs).toBe(4_000);
    expect(gated.jobs).toBe(ungated.jobs);
    expect(gated).toMatchObject({ completed: gated.jobs, dead: 0, attempts: gated.jobs });
    expect(ungated.attempts).toBeGreaterThan(gated.attempts);
    expect(ungated.completed + ungated.dead).toBe(ungated.jobs);
    expect(ungated.attempts).toBe(ungated.calls);
    expect(gated.callsWhileOff).toBeLessThan(ungated.callsWhileOff);
    expect(cli.files).toEqual([]);
  });

  it('prints a line every two seconds and cleans up when it is interrupted', async ({ cli }) => {
    const demo = cli.start(['demo', '--outage', '8'], { env: { TMPDIR: cli.folder } });
    await demo.printed(/right: gate service opened: /);
    await demo.printed(/^ +\d+s {2}down +\| .* open {4}probes only$/m);
    demo.process.kill('SIGINT');
    const { code, stdout } = await demo.ended;
    expect(code).toBe(130);
    expect(stdout).toContain('The jobs on the left say `resource: false`: every failure counts.');
    expect(cli.files).toEqual([]);
  });

  it.for(['2', '121', '3.5', 'long'])('refuses an outage of %s seconds', async (seconds, { cli }) => {
    const { code, stderr } = await cli.run(['demo', '--outage', seconds]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/^mulligan: --outage: expected /) });
  });
});

describe.concurrent('bin/mulligan.js', () => {
  const bin = fileURLToPath(new URL('../bin/mulligan.js', import.meta.url));

  /** The launcher alone, in a package of its own. */
  function packageWith({ folder }: Cli, main: string | null): string {
    mkdirSync(join(folder, 'bin'));
    cpSync(bin, join(folder, 'bin', 'mulligan.js'));
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    if (main !== null) {
      mkdirSync(join(folder, 'dist', 'cli'), { recursive: true });
      writeFileSync(join(folder, 'dist', 'cli', 'main.js'), main);
    }
    return join(folder, 'bin', 'mulligan.js');
  }

  it.for([
    ['20.19.0', false],
    ['22.17.1', false],
    ['22.18.0', true],
    ['24.0.0', true],
  ])('on Node.js %s it runs: %s', async ([version, runs], { cli }) => {
    const entry = packageWith(cli, 'console.log("ran", ...process.argv.slice(2))');
    const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
    const execArgv = ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`];
    const ended = await cli.run(['a', 'b'], { entry, execArgv });
    const refusal = `mulligan: expected Node.js 22.18 or newer, this is ${version}. Install the latest 24.\n`;
    expect(ended).toEqual(
      runs ? { code: 0, stdout: 'ran a b\n', stderr: '' } : { code: 1, stdout: '', stderr: refusal },
    );
  });

  it('says when it has not been built', async ({ cli }) => {
    const entry = packageWith(cli, null);
    const { code, stderr } = await cli.run([], { entry });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^mulligan: it has not been built.*\n$/),
    });
  });

  it('hides that SQLite is experimental, and no other warning', async ({ cli }) => {
    const entry = packageWith(
      cli,
      `
      process.emitWarning('SQLite is an experimental feature', 'ExperimentalWarning');
      process.emitWarning('something else', 'ExperimentalWarning');
      process.emitWarning('mind this', { code: 'X1' });`,
    );
    const { stderr } = await cli.run([], { entry });
    expect(stderr).not.toContain('SQLite');
    expect(stderr).toContain('something else');
    expect(stderr).toContain('mind this');
  });
});
