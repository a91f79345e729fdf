import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { defineJob } from '../src/definition.ts';
import type { BulkResult, Operation } from '../src/index.ts';
import type { Job } from '../src/job.ts';
import { Mulligan } from '../src/mulligan.ts';
import { Unrecoverable } from '../src/retry/control-errors.ts';
import { it } from './support/cli.ts';

interface Enqueued {
  readonly id: string;
}

describe.concurrent('mulligan jobs, many at once', () => {
  it('counts, runs now, cancels and exports by the same flags, and keeps a record', async ({ cli }) => {
    for (const queue of ['a', 'a', 'b']) await cli.run(['enqueue', 'job', '{}', '--queue', queue, '--delay', '1h']);
    expect(await cli.json('jobs', 'count', '--state', 'scheduled', '--queue', 'a')).toEqual({
      count: 2,
      isExact: true,
    });
    expect((await cli.run(['jobs', 'count', '--state', 'dead,retrying'])).stdout).toBe('0\n');
    const dry = await cli.run(['jobs', 'run-now', '--queue', 'a', '--dry-run']);
    expect(dry.stdout).toMatch(/^Would run now 2 jobs:\nid +name /);
    const notDead = await cli.run(['dead', 'redrive', '--queue', 'a']);
    expect(notDead.stderr).toBe('2 that match are scheduled or retrying: mulligan jobs run-now starts them.\n');
    const now = await cli.json<BulkResult>('jobs', 'run-now', '--queue', 'a', '--by', 'ann');
    expect(now).toMatchObject({ count: 2, operation: { by: 'ann', action: 'runNow', state: 'done' } });
    expect(await cli.json('jobs', 'count', '--state', 'ready')).toMatchObject({ count: 2 });

    const refused = await cli.run(['jobs', 'cancel', '--queue', 'a']);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('expected --yes to cancel 2 jobs, since no one can be asked. Nothing was changed');
    expect(await cli.run(['jobs', 'cancel', '--tag', 'none'])).toMatchObject({
      code: 0,
      stdout: 'Cancelled 0 jobs.\n',
    });
    expect(await cli.json('jobs', 'cancel', '--queue', 'a', '--yes')).toMatchObject({ count: 2 });
    const exported = (await cli.run(['jobs', 'export', '--state', 'cancelled'])).stdout.trimEnd().split('\n');
    expect(exported.map((line) => (JSON.parse(line) as Job).state)).toEqual(['cancelled', 'cancelled']);
    const { operations } = await cli.json<{ operations: Operation[] }>('audit', 'list');
    expect(operations.map(({ action, changed }) => [action, changed])).toEqual([
      ['cancel', 2],
      ['runNow', 2],
      ['redrive', 0],
    ]);
    expect((await cli.run(['audit', 'list'])).stdout).toMatch(/runNow +ann +done +2 +0 +\{"queue":"a"\}/);
  });

  it('refuses a condition that is given twice, and says when no job has a tag', async ({ cli }) => {
    await cli.json('enqueue', 'job', '{}', '--tag', 'a');
    const twice = await cli.run(['jobs', 'count', '--tag', 'a', '--tag', 'b']);
    expect(twice).toMatchObject({ code: 2, stdout: '' });
    expect(twice.stderr).toContain('expected --tag once, got "a" and "b". Run the command once for each.');
    expect((await cli.run(['jobs', 'list', '--tag', 'b'])).stderr).toContain('No job has the tag b.');
  });

  it('finds a job by the start of its id, and says which when several begin so', async ({ cli }) => {
    const first = await cli.json<Enqueued>('enqueue', 'job', '{}');
    await cli.json<Enqueued>('enqueue', 'job', '{}');
    const start = first.id.slice(0, -2);
    const shown = await cli.run(['jobs', 'show', start]);
    expect(shown.stdout).toContain(first.id);
    for (const command of ['list', 'export']) {
      expect((await cli.run(['jobs', command, '--id', start])).stdout).toContain(first.id);
    }
    expect((await cli.run(['jobs', 'count', '--id', start])).stdout).toBe('1\n');
    const many = await cli.run(['jobs', 'show', first.id.slice(0, 2)]);
    expect(many).toMatchObject({ code: 2, stdout: '' });
    expect(many.stderr).toMatch(
      /expected the beginning of one id, got "..", which begins \S+ \(job, ready\), \S+ \(job, ready\)/,
    );
  });

  it('takes the start of an id for every command, and refuses to list after a job that there is none of', async ({
    cli,
  }) => {
    const start = async (): Promise<string> =>
      (await cli.json<Enqueued>('enqueue', 'job', '{}', '--delay', '1h')).id.slice(0, -2);
    const [first, second] = [await start(), await start()];
    expect(await cli.json('jobs', 'run-now', first)).toMatchObject({ count: 1 });
    expect((await cli.run(['dead', 'redrive', first])).stdout).toContain(`${first}`);
    expect(await cli.json('jobs', 'cancel', second)).toMatchObject({ results: [{ result: 'cancelled' }] });
    const after = await cli.run(['jobs', 'list', '--after', 'zzz']);
    expect(after).toMatchObject({ code: 1, stdout: '' });
    expect(after.stderr).toContain('there is no job "zzz"');
    expect((await cli.run(['jobs', 'list', '--after', second])).stdout).toContain(first);
  });

  it('says so when a name, queue or error is probably misspelt', async ({ cli }) => {
    await cli.run(['enqueue', 'card.charge', '{}', '--queue', 'cards']);
    const name = await cli.run(['jobs', 'count', '--name', 'card.chrge']);
    expect(name).toMatchObject({
      code: 0,
      stdout: '0\n',
      stderr: 'No job has the name card.chrge. Did you mean card.charge?\n',
    });
    expect((await cli.run(['jobs', 'list', '--queue', 'crads'])).stderr).toContain('Did you mean cards?');
    expect((await cli.run(['jobs', 'run-now', '--queue', 'crads'])).stderr).toContain('Did you mean cards?');
    const error = await cli.run(['jobs', 'count', '--error', 'e1ffff']);
    expect(error).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('got e1ffff. See mulligan err'),
    });
    const redrive = await cli.run(['dead', 'redrive', '--error', 'e1ffff']);
    expect(redrive).toMatchObject({ code: 2, stdout: '' });
    expect(redrive.stderr).toBe(
      'mulligan: --error: expected the fingerprint of an error, or the start of one, got "e1ffff". See mulligan errors list.\n',
    );
  });

  it('says how a spread action goes on, and who may end one that was interrupted', async ({ cli }) => {
    await using mulligan = await Mulligan.open(`sqlite:${join(cli.folder, 'mulligan.db')}`, { log: () => {} });
    const inputs = Array.from({ length: 700 }, () => ({ input: null }));
    await mulligan.enqueueMany(defineJob({ name: 'job', run() {} }), inputs, { delay: '1d' });
    const dry = await cli.run(['jobs', 'run-now', '--name', 'job', '--rate', '1/s', '--dry-run']);
    expect(dry.stdout).toMatch(
      /^Would run now 700 jobs, spread over 11m 39s at 1\/s; those that are due before their turn stay as they are, such as:\n/,
    );
    const stop = new AbortController();
    const onProgress = ({ changed }: { changed: number }): void => void (changed > 0 && stop.abort());
    const killed = mulligan.jobs.runNow({ name: 'job', rate: '5/s', by: 'ann', signal: stop.signal, onProgress });
    await expect(killed).rejects.toThrow();
    const again = await cli.run(['jobs', 'run-now', '--name', 'job', '--rate', '5/s', '--dry-run']);
    expect(again.stdout).toMatch(
      /^Would continue what ann began at .*; jobs that came since are left alone. It has changed 500 so far.\nWould run now/,
    );
    const listed = await cli.run(['audit', 'list']);
    expect(listed.stdout).toMatch(/runNow +ann +running, last progress \S+.* +500 +0 +\{"name":"job"\} +--rate 5\/s/);
    expect(listed.stdout).toMatch(/\n {2}mulligan audit stop [0-9a-f-]{36}\n$/);
    const rest = await cli.run(['jobs', 'run-now', '--name', 'job', '--rate', '1/s', '--by', 'bob']);
    expect(rest.stdout).toMatch(/\nDue: 700 jobs, spread until \S+Z \(in [^)]+\)\.\n/);
    expect((await cli.run(['audit', 'list'])).stdout).toMatch(/ann, continued by bob +done +700 +0 .* --rate 1\/s/);
    const [operation] = await mulligan.audit.list();
    const ended = await cli.run(['audit', 'stop', operation?.id as string]);
    expect(ended).toMatchObject({ code: 0, stdout: 'The operation is done. It changed 700 jobs.\n' });
    const unknown = await cli.run(['audit', 'stop', 'x']);
    expect(unknown).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^mulligan: expected the id of an op/),
    });
  });

  it('says at Ctrl-C while it waits for a canary how to go on', async ({ cli }) => {
    await using mulligan = await Mulligan.open(`sqlite:${join(cli.folder, 'mulligan.db')}`, { log: () => {} });
    const broken = defineJob<null>({ name: 'job', run: () => Promise.reject(new Unrecoverable('no')) });
    await mulligan.enqueueMany(broken, [{ input: null }, { input: null }]);
    const definitions = await Mulligan.open(`sqlite:${join(cli.folder, 'mulligan.db')}`, {
      jobs: [broken],
      log: () => {},
    });
    await definitions.work().whenIdle();
    await definitions.close();
    const running = cli.start(['dead', 'redrive', '--name', 'job', '--canary', '1']);
    const noted = Promise.withResolvers<void>();
    running.process.stderr?.on('data', (chunk: string) => chunk.includes('canary: 0 of 1') && noted.resolve());
    await noted.promise;
    running.process.kill('SIGINT');
    const { code, stderr } = await running.ended;
    expect(code).toBe(1);
    expect(stderr).toContain('interrupted: not all jobs are redriven. Give the same command again to go on;');
    expect(await mulligan.audit.list()).toMatchObject([{ state: 'running', changed: 1 }]);
    const other = await cli.run(['dead', 'redrive', '--name', 'job']);
    expect(other).toMatchObject({ code: 1, stdout: '' });
    expect(other.stderr).toMatch(
      /^mulligan: expected a canary of 1, as in the .* end it with mulligan audit stop \S+\.\n$/,
    );
  });

  it('says why a job waits', async ({ cli }) => {
    const { id } = await cli.json<Enqueued>('enqueue', 'job', '{}', '--queue', 'q', '--delay', '1h');
    const show = async (): Promise<string> => (await cli.run(['jobs', 'show', id])).stdout;
    expect(await show()).toMatch(/waits: It is due \S+Z \(in .*\); mulligan jobs run-now \S+ starts it now\./);
    await cli.run(['jobs', 'run-now', id]);
    expect(await show()).toContain('waits: No worker is alive. See mulligan workers list.');
    await cli.run(['queues', 'pause', 'q']);
    expect(await show()).toContain('waits: Its queue q is paused: mulligan queues resume q.');
  });

  it('cuts nothing for a pipe, and obeys COLUMNS', async ({ cli }) => {
    const name = 'n'.repeat(150);
    await cli.run(['enqueue', name, '{}']);
    expect((await cli.run(['jobs', 'list'])).stdout).toContain(name);
    const narrow = await cli.run(['jobs', 'list'], { env: { COLUMNS: '80' } });
    expect(Math.max(...narrow.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(110);
    expect(narrow.stdout).not.toContain(name);
  });

  it.for<[string[], RegExp]>([
    [['jobs', 'run-now'], /expected which jobs: their ids, --name, --state/],
    [['jobs', 'cancel', '--yes'], /expected which jobs: their ids, --name, --state/],
    [['jobs', 'cancel', '--limit', '5', '--yes'], /expected which jobs: their ids, --name, --state/],
    [['jobs', 'count', '--state', 'failed'], /--state: expected one of scheduled/],
    [
      ['jobs', 'count', '--since', 'yesterday'],
      /--since: expected how long ago, such as 2h, or a time such as 2026-01-31T12:00Z, got/,
    ],
    [['jobs', 'count', '--attempts', 'many'], /--attempts: expected a whole number/],
    [['dead', 'list', '--state', 'ready'], /unknown option '--state'/],
  ])('refuses %j', async ([args, complaint], { cli }) => {
    await cli.run(['enqueue', 'job', '{}']);
    const { code, stderr } = await cli.run(args);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(complaint) });
  });
});

describe.concurrent('mulligan policy of a definition', () => {
  it('shows the policy that the definition has', async ({ cli }) => {
    const library = new URL('../src/index.ts', import.meta.url).href;
    writeFileSync(
      join(cli.folder, 'jobs.ts'),
      `import { defineJob } from ${JSON.stringify(library)};
       export const a = defineJob({ name: 'a', retry: { maxAttempts: 3, backoff: { kind: 'fixed', base: '7s' } }, run() {} });
       export const b = defineJob({ name: 'b', run() {} });`,
    );
    const own = await cli.json('policy', 'preview', '--jobs', 'jobs.ts', '--name', 'a');
    expect(own).toMatchObject({ preset: 'a', delaysMs: [7_000, 7_000], policy: { maxAttempts: 3 } });
    expect((await cli.run(['policy', 'explain', '--jobs', 'jobs.ts', '--name', 'a'])).stdout).toContain('7s');
    const which = await cli.run(['policy', 'preview', '--jobs', 'jobs.ts']);
    expect(which.stderr).toContain('--name: expected which definition of jobs.ts. Valid options: a, b.');
  });
});
