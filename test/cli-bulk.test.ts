import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { BulkResult, Operation } from '../src/index.ts';
import type { Job } from '../src/job.ts';
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
    const { operations } = await cli.json<{ operations: Operation[] }>('operations', 'list');
    expect(operations.map(({ action, changed }) => [action, changed])).toEqual([
      ['cancel', 2],
      ['runNow', 2],
      ['redrive', 0],
    ]);
    expect((await cli.run(['operations', 'list'])).stdout).toMatch(/runNow +ann +done +2 +0 +\{"queue":"a"\}/);
  });

  it('finds a job by the start of its id, and says which when several begin so', async ({ cli }) => {
    const first = await cli.json<Enqueued>('enqueue', 'job', '{}');
    await cli.json<Enqueued>('enqueue', 'job', '{}');
    const shown = await cli.run(['jobs', 'show', first.id.slice(0, -2)]);
    expect(shown.stdout).toContain(first.id);
    const many = await cli.run(['jobs', 'show', first.id.slice(0, 2)]);
    expect(many).toMatchObject({ code: 1, stdout: '' });
    expect(many.stderr).toMatch(
      /expected the beginning of one id, got "..", which begins \S+ \(job, ready\), \S+ \(job, ready\)/,
    );
  });

  it('says why a job waits', async ({ cli }) => {
    const { id } = await cli.json<Enqueued>('enqueue', 'job', '{}', '--queue', 'q', '--delay', '1h');
    const show = async (): Promise<string> => (await cli.run(['jobs', 'show', id])).stdout;
    expect(await show()).toMatch(/waits: It is due \S+Z \(in .*\); mulligan jobs run-now \S+ starts it now\./);
    await cli.run(['jobs', 'run-now', id]);
    expect(await show()).toContain('waits: It is due and nothing holds it back: a worker that serves queue q');
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
    [['jobs', 'count', '--since', 'yesterday'], /--since: expected a duration/],
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
