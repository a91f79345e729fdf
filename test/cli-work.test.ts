import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { Job, RunRecord } from '../src/job.ts';
import type { Stats } from '../src/observe/stats.ts';
import { type Cli, it } from './support/cli.ts';

const library = new URL('../src/index.ts', import.meta.url).href;

const JOBS = `
import { defineJob } from ${JSON.stringify(library)};
const retry = { maxAttempts: 2, backoff: { kind: 'fixed', base: 0 } } as const;
export const good = defineJob({ name: 'good', run: (_: unknown, { log }) => log.info('from \\x1b[31mgood') });
const flaky = defineJob({ name: 'flaky', queue: 'apart', retry, run(_: unknown, { attempt }) {
  if (attempt === 1) throw new Error('first\\x1b[2J');
} });
const hopeless = defineJob({ name: 'hopeless', retry, run() { throw new Error('never'); } });
const endless = defineJob({ name: 'endless', run: (_: unknown, { signal }) =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))) });
const deaf = defineJob({ name: 'deaf', run: () => new Promise(() => setInterval(() => {}, 1_000)) });
const shared = defineJob({ name: 'shared.only', queue: 'elsewhere' });
export default [flaky, hopeless, endless, deaf, shared];
export const unrelated = 42;
`;

function writeJobs({ folder }: Cli): void {
  writeFileSync(join(folder, 'jobs.ts'), JOBS);
}

describe.concurrent('mulligan work', () => {
  it('runs the jobs of a TypeScript file, one line per start and finish, until a signal', async ({ cli }) => {
    writeJobs(cli);
    await cli.run(['enqueue', 'good', '{}']);
    await cli.run(['enqueue', 'flaky', '{}', '--jobs', 'jobs.ts']);
    const worker = cli.start(['work', '--jobs', 'jobs.ts', '--concurrency', '2']);
    await Promise.all([
      worker.printed(/^Working on apart, default in sqlite:mulligan\.db: deaf, endless, flaky, good, hopeless\.$/m),
      worker.printed(/^\S+Z started {4}good \S+ run 1: attempt 1/m),
      worker.printed(/^\S+Z completed {2}good \S+ run 1/m),
      worker.printed(/^\S+Z retrying {3}flaky \S+ run 1: failed after .* with Error: first\\x1b\[2J; again in/m),
      worker.printed(/^\S+Z completed {2}flaky \S+ run 2/m),
    ]);
    worker.process.kill('SIGTERM');
    const { code, stdout, stderr } = await worker.ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/SIGTERM: stopping\..*\nStopped\.\n$/);
    expect(stderr).toMatch(/mulligan info: from \\x1b\[31mgood/);
    expect(stdout + stderr).not.toContain('\u001b');
    const { jobs } = await cli.json<{ jobs: Job[] }>('jobs', 'list');
    expect(jobs.map(({ name, state, runs }) => `${name} ${state} ${runs}`).sort()).toEqual([
      'flaky completed 2',
      'good completed 1',
    ]);
  });

  it('prints one JSON object per event, and nothing else', async ({ cli }) => {
    writeJobs(cli);
    const { id } = await cli.json<{ id: string }>('enqueue', 'flaky', '{}', '--jobs', 'jobs.ts');
    const worker = cli.start(['work', '--jobs', 'jobs.ts', '--queue', 'apart', '--json']);
    await worker.printed(/"event":"completed"/);
    worker.process.kill('SIGINT');
    const { code, stdout } = await worker.ended;
    const events = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(code).toBe(0);
    expect(events.map(({ event, id: about, run }) => ({ event, about, run }))).toEqual([
      { event: 'started', about: id, run: 1 },
      { event: 'retrying', about: id, run: 1 },
      { event: 'started', about: id, run: 2 },
      { event: 'completed', about: id, run: 2 },
    ]);
    expect(events[1]).toMatchObject({ at: expect.any(Number), error: { message: 'first\u001b[2J' }, delayMs: 0 });
  });

  it('leaves dead jobs to be listed, redriven and discarded', async ({ cli }) => {
    writeJobs(cli);
    const { id } = await cli.json<{ id: string }>('enqueue', 'hopeless', '{}', '--jobs', 'jobs.ts');
    const worker = cli.start(['work', '--jobs', 'jobs.ts']);
    await worker.printed(/dead +hopeless .* run 2: failed .* with Error: never; exhausted \(attempts 2 of 2\)/);
    worker.process.kill('SIGINT');
    await worker.ended;

    const shown = await cli.run(['jobs', 'show', id]);
    expect(shown.stdout).toMatch(/^run +attempt +started +outcome +duration +error +decided +next +worker$/m);
    expect(shown.stdout).toMatch(
      /^ +1 +1 +\d{4}\S+Z +failed +\S+ +Error: never +retry: backoff \(default\) +after 0ms +\S+$/m,
    );
    expect(shown.stdout).toMatch(
      /^ +2 +2 +\S+Z +failed +\S+ +Error: never +dead: exhausted \(attempts 2 of 2\) +- +\S+$/m,
    );
    const { runs } = await cli.json<{ runs: RunRecord[] }>('jobs', 'show', id);
    expect(runs.map(({ decision }) => decision.kind)).toEqual(['retry', 'dead']);
    const stats = await cli.json<Stats>('stats');
    expect(stats).toMatchObject({ totalRetries: 1, successfulRetries: 0, retrySuccessRate: 0, states: { dead: 1 } });
    expect((await cli.run(['stats'])).stdout).toMatch(
      /^totalRetries +1 .*\nsuccessfulRetries +0 .*\nretrySuccessRate +0 %/,
    );

    expect((await cli.json<{ jobs: Job[] }>('dead', 'list')).jobs.map((job) => job.id)).toEqual([id]);
    expect((await cli.run(['dead', 'list'])).stdout).toMatch(/dead: exhausted +2\/2 .* Error: never/);
    const redrive = (...args: string[]): Promise<unknown> => cli.json('dead', 'redrive', ...args);
    const nothingElse = { skipped: [], others: [], stopped: null };
    expect(await redrive('--reason', 'poison')).toMatchObject({ count: 0, ids: [], ...nothingElse, dryRun: false });
    expect(await redrive(id, '--dry-run')).toMatchObject({ count: 1, samples: [{ id }], ...nothingElse, dryRun: true });
    const kept = await cli.run(['dead', 'redrive', id, 'nobody', '--keep-attempts']);
    expect(kept).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(`${id} stays as it is: it has no attempt left`),
    });
    expect(kept.stdout).toContain('nobody does not exist.');
    expect(await redrive('--name', 'hopeless')).toMatchObject({ count: 1, ids: [id], ...nothingElse, dryRun: false });

    const again = cli.start(['work', '--jobs', 'jobs.ts']);
    await again.printed(/dead +hopeless .* run 4/);
    again.process.kill('SIGINT');
    await again.ended;
    const refused = await cli.run(['dead', 'discard', id]);
    expect(refused).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('expected --yes to discard 1 dead job'),
    });
    expect(await cli.json('dead', 'discard', id, '--yes')).toMatchObject({ count: 1, ids: [id], others: [] });
    expect(await cli.run(['dead', 'discard', id, '--yes'])).toMatchObject({ code: 1 });
    expect(await cli.run(['jobs', 'show', id])).toMatchObject({ code: 1 });
  });

  it('releases uncounted what does not finish within the grace', async ({ cli }) => {
    writeJobs(cli);
    const { id } = await cli.json<{ id: string }>('enqueue', 'endless', '{}');
    const worker = cli.start(['work', '--jobs', 'jobs.ts', '--grace', '1ms']);
    await worker.printed(/started +endless/);
    worker.process.kill('SIGINT');
    expect(await worker.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('released, not counted') });
    const { job } = await cli.json<{ job: Job }>('jobs', 'show', id);
    expect(job).toMatchObject({ state: 'ready', runs: 1, attempts: 0 });
    expect((await cli.run(['jobs', 'show', id])).stdout).toMatch(
      /^ +1 +uncounted +\S+ +released .* release \(shutdown\)/m,
    );
  });

  it('ends at once on a second signal', async ({ cli }) => {
    writeJobs(cli);
    await cli.run(['enqueue', 'deaf', '{}']);
    const worker = cli.start(['work', '--jobs', 'jobs.ts', '--grace', '1h']);
    await worker.printed(/started +deaf/);
    worker.process.kill('SIGINT');
    await worker.printed(/SIGINT: stopping, waiting up to 1h for 1 running/);
    worker.process.kill('SIGINT');
    expect(await worker.ended).toMatchObject({
      code: 130,
      stderr: expect.stringContaining('1 running will count as crashed'),
    });
  });

  it('enqueues by definition when it gets the jobs file', async ({ cli }) => {
    const schema = `{ '~standard': { version: 1, vendor: 'test', validate: (value) =>
      typeof value === 'string' ? { value } : { issues: [{ message: 'not a string' }] } } }`;
    writeFileSync(
      join(cli.folder, 'jobs.mjs'),
      `import { defineJob } from ${JSON.stringify(library)};
      export default defineJob({ name: 'strict', queue: 'q', input: ${schema}, retry: { maxAttempts: 7 }, run() {} });`,
    );
    const refused = await cli.run(['enqueue', 'strict', '5', '--jobs', 'jobs.mjs']);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('not a string') });
    await cli.run(['enqueue', 'strict', '"fine"', '--jobs', 'jobs.mjs']);
    const { jobs } = await cli.json<{ jobs: Job[] }>('jobs', 'list');
    expect(jobs).toMatchObject([{ queue: 'q', payload: 'fine', policy: { maxAttempts: 7 } }]);
  });

  it('refuses a name that the jobs file does not define, before it makes a database', async ({ cli }) => {
    writeJobs(cli);
    const ended = await cli.run(['enqueue', 'flakey', '{}', '--jobs', 'jobs.ts']);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(
      /^mulligan: the job name, by --jobs jobs\.ts: expected one of .*flaky.*, got "flakey"\. Did you mean flaky\?\n$/,
    );
    expect(cli.files).toEqual(['jobs.ts']);
  });

  it.for<[string, string | null, RegExp]>([
    ['none.ts', null, /there is no file none\.ts/],
    ['empty.ts', 'export const a = 1;', /expected exports made by defineJob, .*got a\./],
    ['throws.js', 'throw new Error("boo\\u001b[2J");', /throws\.js could not be loaded: Error: boo\\x1b\[2J\./],
    ['enum.ts', 'export enum A { B }', /only strips types/],
    ['text.txt', 'hello', /Give a \.ts/],
    ['twice.mjs', 'TWICE', /expected one definition per name, got two for "same"/],
  ])('refuses the jobs file %s in one line', async ([file, source, complaint], { cli }) => {
    const twice = `import { defineJob } from ${JSON.stringify(library)};
      export const a = defineJob({ name: 'same', run() {} }), b = defineJob({ name: 'same', run() {} });`;
    if (source !== null) writeFileSync(join(cli.folder, file), source === 'TWICE' ? twice : source);
    const { code, stdout, stderr } = await cli.run(['work', '--jobs', file]);
    expect(stderr).toMatch(complaint);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  });

  it.for<[string[], RegExp]>([
    [
      ['--lease', '10'],
      /^mulligan: --lease: expected a duration such as [^,]+(, '\w+')* or '1w', got "10". Add a unit, such as 10s/,
    ],
    [['--lease', '10ms'], /^mulligan: --lease: expected at least 1s, got "10ms"/],
    [['--lease', 'long'], /^mulligan: --lease: expected a duration/],
    [['--queue', 'a', 'a'], /^mulligan: --queue: expected each queue once/],
    [['--concurrency', '0'], /^mulligan: --concurrency: expected a whole number from 1/],
    [['--retry-share', '2'], /^mulligan: --retry-share: expected a number from 0 to 1/],
    [['--max-retries-in-flight', '0'], /^mulligan: --max-retries-in-flight: expected a whole number/],
    [['--grace', 'x'], /^mulligan: --grace: expected a duration/],
  ])('refuses %j before it makes a database', async ([args, complaint], { cli }) => {
    writeJobs(cli);
    const { code, stderr } = await cli.run(['work', '--jobs', 'jobs.ts', ...args]);
    expect(stderr).toMatch(complaint);
    expect(code).toBe(2);
    expect(cli.files).toEqual(['jobs.ts']);
  });
});
