import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import type { Job } from '../src/job.ts';
import { it } from './support/cli.ts';

interface Enqueued {
  readonly id: string;
  readonly existed: boolean;
}

describe.concurrent('mulligan', () => {
  it('prints its help when nothing or help is asked for', async ({ cli }) => {
    const [bare, help, group] = await Promise.all([
      cli.run([]),
      cli.run(['--help']),
      cli.run(['jobs', 'list', '--help']),
    ]);
    expect(bare).toMatchObject({ code: 0, stderr: '', stdout: help.stdout });
    for (const command of [
      'demo',
      'enqueue',
      'work',
      'jobs',
      'dead',
      'queues',
      'gates',
      'stats',
      'migrate',
      'doctor',
      'policy',
    ]) {
      expect(help.stdout).toMatch(new RegExp(`^ {2}${command}\\b`, 'm'));
    }
    expect(group.stdout).toContain('Usage: mulligan jobs list');
    expect(group.stdout).toContain('--db <url>');
    expect(group.stdout).toContain('--json');
  });

  it('prints the version of the package', async ({ cli }) => {
    const { version } = (await import('../package.json', { with: { type: 'json' } })).default;
    expect(await cli.run(['--version'], {})).toMatchObject({ code: 0, stdout: `${version}\n` });
  });

  it.for<[string[], RegExp]>([
    [['jbos'], /unknown command 'jbos'\. Did you mean jobs\?/],
    [['jobs'], /expected mulligan jobs list \| count \| show \| cancel \| run-now \| export/],
    [['jobs', 'lst'], /Did you mean list\?/],
    [['jobs', 'list', '--stat', 'dead'], /unknown option '--stat'\. Did you mean --state\?/],
    [['policy', 'explain', '--attempts', '3'], /Did you mean --max-attempts\?/],
    [['jobs', 'list', '--state', 'deed'], /--state: expected one of .* Did you mean dead\?/],
    [['jobs', 'list', '--limit', 'all'], /--limit: expected a whole number of at least 1, got "all"/],
    [['jobs', 'show'], /missing required argument 'id'/],
    [['gates'], /expected mulligan gates list \| show \| open \| close \| unpin \| reset/],
    [['gates', 'open'], /missing required argument 'name'/],
    [['gates', 'list', '--kind', 'jobs'], /--kind: expected one of resource, job, parent.* Did you mean job\?/],
    [['work', '--job', 'jobs.ts'], /unknown option '--job'\. Did you mean --jobs\?/],
    [['work', '--cocurrency', '5'], /unknown option '--cocurrency'\. Did you mean --concurrency\?/],
    [['work', '--queue', 'a'], /required option '--jobs <file>' not specified/],
    [['gates', 'open', 'a', '--kind', 'job'], /unknown option '--kind'/],
    [['jobs', 'show', 'a', 'b'], /too many arguments/],
    [['enqueue', 'a', '{to'], /the input: expected JSON/],
    [['enqueue', 'a', '1', '--delay', '5'], /--delay: expected a duration .* Add a unit/],
    [['enqueue', 'a', '1', '--delay'], /option '--delay <duration>' argument missing/],
    [['work', '--queue', '--lease', '5s'], /option '--queue <queue...>' argument missing, got the option --lease/],
    [['work', '--lease', '-h'], /argument missing, got the option -h/],
    [['jobs', 'list', '--db', '--json'], /option '--db <url>' argument missing, got the option --json/],
    [['jobs', 'list', '--key', '--name=a'], /argument missing, got the option --name=a/],
    [['enqueue', 'a', '1', '--priority', '10'], /--priority: expected a whole number from 0 to 9, got 10/],
    [['enqueue', 'a', '1', '--max-attempts', '0'], /--max-attempts: expected a whole number of at least 1/],
    [['enqueue', 'a\u001b[2J', '1'], /job name: expected .* none of them control characters/],
    [['dead', 'redrive'], /expected which dead jobs/],
    [['dead', 'discard', '--limit', '3'], /expected which dead jobs/],
    [['dead', 'redrive', '--reason', 'poision'], /--reason: .* Did you mean poison\?/],
    [['work'], /required option '--jobs <file>'/],
    [['jobs', 'list', '--db', 'jobs.db'], /--db: expected .* got "jobs.db"\. Did you mean sqlite:jobs.db\?/],
    [['jobs', 'list', '--db', 'memory:'], /--db: expected a database that outlives this command/],
    [['jobs', 'list', '--db', 'mysql://x'], /--db: expected sqlite:FILE, postgres:\/\/HOST\/DATABASE/],
    [['stats', '--db', 'postgres:nowhere'], /--db: expected a URL such as postgres:/],
    [['migrate', '--db', 'postgres://h/d?schema=No'], /--db: schema: expected up to 50 lower-case letters/],
    [['demo', '--db', 'sqlite:x.db'], /the demo makes a temporary database of its own/],
  ])('refuses %j in one line, with exit code 2', async ([args, complaint], { cli }) => {
    const { code, stdout, stderr } = await cli.run(args);
    expect(stderr).toMatch(complaint);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(stderr).not.toContain('\u001b');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(cli.files).toEqual([]);
  });

  it('prints errors as JSON with --json', async ({ cli }) => {
    const [usage, missing] = await Promise.all([cli.run(['jobs', 'lst', '--json']), cli.run(['stats', '--json'])]);
    expect(usage).toMatchObject({ code: 2, stdout: '' });
    expect(JSON.parse(usage.stderr)).toEqual({
      error: { code: 'USAGE', message: expect.stringContaining('Did you mean list?') },
    });
    expect(missing).toMatchObject({ code: 1, stdout: '' });
    expect(JSON.parse(missing.stderr)).toMatchObject({ error: { code: 'NO_DATABASE' } });
  });

  it('shows a stack trace only when MULLIGAN_DEBUG asks for it', async ({ cli }) => {
    const { stderr } = await cli.run(['jobs', 'list'], { env: { MULLIGAN_DEBUG: '1' } });
    expect(stderr).toMatch(/there is no database[\s\S]*\n +at /);
  });

  it.for<[string[]]>([
    [['jobs', 'list']],
    [['jobs', 'show', 'x']],
    [['jobs', 'cancel', 'x']],
    [['dead', 'list']],
    [['dead', 'redrive', 'x']],
    [['dead', 'discard', 'x']],
    [['queues', 'list']],
    [['queues', 'pause', 'x']],
    [['queues', 'resume', 'x']],
    [['stats']],
  ])('%j says that there is no database, and makes none', async ([args], { cli }) => {
    const { code, stdout, stderr } = await cli.run(args, { env: { MULLIGAN_DB: 'sqlite:none.db' } });
    expect(stderr).toMatch(/^mulligan: there is no database none\.db \(MULLIGAN_DB\)\. .*\n$/);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(cli.files).toEqual([]);
  });

  it('leaves a file alone that is no database of its own', async ({ cli }) => {
    writeFileSync(join(cli.folder, 'notes.txt'), 'milk, eggs');
    const { code, stderr } = await cli.run(['stats', '--db', 'sqlite:notes.txt']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/expected a Mulligan database/);
    expect(cli.files).toEqual(['notes.txt']);
  });
});

describe.concurrent('mulligan enqueue', () => {
  it('creates the database and stores the job with all its options', async ({ cli }) => {
    const args = ['--delay', '5m', '--priority', '1', '--key', 'k', '--max-attempts', '2', '--queue', 'slow'];
    const first = await cli.json<Enqueued>('enqueue', 'email.send', '{"to":"a"}', ...args);
    expect(first).toEqual({ id: expect.any(String), existed: false });
    expect(existsSync(join(cli.folder, 'mulligan.db'))).toBe(true);
    expect(await cli.json('enqueue', 'email.send', '{}', '--key', 'k')).toEqual({
      id: first.id,
      existed: true,
    });
    const { job, runs } = await cli.json<{ job: Job; runs: unknown[] }>('jobs', 'show', first.id);
    expect(runs).toEqual([]);
    expect(job).toMatchObject({ name: 'email.send', queue: 'slow', priority: 1, key: 'k', payload: { to: 'a' } });
    expect(job).toMatchObject({ state: 'scheduled', policy: { maxAttempts: 2 } });
    expect(job.dueAt - job.enqueuedAt).toBe(300_000);
  });

  it('prints the id alone, and takes its input from a pipe', async ({ cli }) => {
    const env = { MULLIGAN_DB: 'sqlite:other.db' };
    const { code, stdout } = await cli.run(['enqueue', 'a', '-'], { env, input: '{"piped":true}\n' });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^[0-9a-f-]{36}\n$/);
    const { jobs } = await cli.json<{ jobs: Job[] }>('jobs', 'list', '--db', 'sqlite:other.db');
    expect(jobs.map(({ id, payload }) => ({ id, payload }))).toEqual([{ id: stdout.trim(), payload: { piped: true } }]);
  });

  it('says when the folder of a database does not exist', async ({ cli }) => {
    const { code, stderr } = await cli.run(['enqueue', 'a', '1', '--db', 'sqlite:none/a.db'], {});
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('expected a folder that exists'),
    });
  });
});

describe.concurrent('mulligan jobs and queues', () => {
  it('lists by filter and page', async ({ cli }) => {
    for (const [name, queue] of [
      ['a', 'one'],
      ['b', 'one'],
      ['a', 'two'],
    ] as const) {
      await cli.run(['enqueue', name, '1', '--queue', queue]);
    }
    const list = async (...args: string[]): Promise<Job[]> =>
      (await cli.json<{ jobs: Job[] }>('jobs', 'list', ...args)).jobs;
    const [all, a, one, none, newest] = await Promise.all([
      list(),
      list('--name', 'a'),
      list('--queue', 'one'),
      list('--state', 'dead'),
      list('--limit', '1'),
    ]);
    expect(all.map(({ name, queue }) => `${name} ${queue}`)).toEqual(['a two', 'b one', 'a one']);
    expect([a.length, one.length, none.length, newest.length]).toEqual([2, 2, 0, 1]);
    expect((await list('--after', (newest[0] as Job).id)).length).toBe(2);
    const text = await cli.run(['jobs', 'list', '--limit', '2']);
    expect(text.stdout.split('\n')[0]).toMatch(/^id +name +queue +state +attempts +when +last error$/);
    expect(text.stderr).toContain('--after');
    expect((await cli.run(['jobs', 'list', '--name', 'zz'])).stdout).toBe('No job matches.\n');
  });

  it('escapes control characters in what a job carries', async ({ cli }) => {
    const { id } = await cli.json<Enqueued>('enqueue', 'a', '{"x":"\\u001b[31m\\u009b2J\\u202e"}');
    const [text, json] = await Promise.all([cli.run(['jobs', 'show', id]), cli.run(['jobs', 'show', id, '--json'])]);
    for (const { stdout } of [text, json]) {
      for (const unsafe of ['\u001b', '\u009b', '\u202e']) expect(stdout).not.toContain(unsafe);
      expect(stdout).toContain('{"x":"\\u001b[31m\\u009b2J\\u202e"}');
    }
    expect(JSON.parse(json.stdout).job.payload.x).toBe('\u001b[31m\u009b2J\u202e');
    expect(text.stdout).toMatch(/enqueued +\d{4}-\d\d-\d\dT[\d:.]+Z \(/);
    expect(text.stdout).toContain('No run has finished yet.');
  });

  it('cancels waiting jobs, and says what it could not cancel', async ({ cli }) => {
    const { id } = await cli.json<Enqueued>('enqueue', 'a', '1');
    expect(await cli.json('jobs', 'cancel', id)).toEqual({ results: [{ id, result: 'cancelled' }] });
    const again = await cli.run(['jobs', 'cancel', id, 'nobody']);
    expect(again).toMatchObject({ code: 1, stdout: `${id} had already ended.\nnobody does not exist.\n` });
    const unknown = await cli.run(['jobs', 'show', 'nobody', '--json']);
    expect(unknown).toMatchObject({ code: 1, stdout: '' });
    expect(JSON.parse(unknown.stderr)).toMatchObject({ error: { code: 'NOT_FOUND' } });
  });

  it('pauses and resumes a queue', async ({ cli }) => {
    await cli.run(['enqueue', 'a', '1', '--queue', 'q']);
    expect(await cli.json('queues', 'pause', 'q')).toEqual({ queue: 'q', paused: true });
    expect(await cli.json('queues', 'list')).toMatchObject({
      queues: [{ queue: 'q', paused: true, states: { ready: 1, dead: 0 } }],
    });
    expect((await cli.run(['queues', 'list'])).stdout).toMatch(/^q +paused +0 +1/m);
    expect(await cli.json('queues', 'resume', 'q')).toEqual({ queue: 'q', paused: false });
    expect(await cli.json('queues', 'list')).toMatchObject({ queues: [{ paused: false }] });
  });

  it('refuses to pause or resume a queue that there is not, and names the one that was meant', async ({ cli }) => {
    await cli.run(['enqueue', 'a', '1', '--queue', 'emails']);
    expect(await cli.run(['queues', 'pause', 'emials'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'mulligan: there is no queue emials. Did you mean emails? --force pauses it before its first job.\n',
    });
    expect(await cli.run(['queues', 'resume', 'other'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'mulligan: there is no queue other. mulligan queues list names them all.\n',
    });
    const { queues } = await cli.json<{ queues: { queue: string }[] }>('queues', 'list');
    expect(queues.map(({ queue }) => queue)).toEqual(['emails']);
    expect(await cli.json('queues', 'pause', 'later', '--force')).toEqual({ queue: 'later', paused: true });
    await cli.run(['enqueue', 'a', '1', '--queue', 'later']);
    expect(await cli.json('queues', 'resume', 'later')).toEqual({ queue: 'later', paused: false });
  });
});
