import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { defineJob } from '../../src/definition.ts';
import { Cli } from '../support/cli.ts';
import { commanded } from './commanded.ts';
import { caller, claimOne, served } from './served.ts';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-commands-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

it('a job that dies by the word of a remote worker is in the log of mulligan serve', async () => {
  const cli = new Cli();
  onTestFinished(() => cli.cleanUp());
  const running = cli.start(['serve', '--db', 'sqlite:jobs.db', '--port', '0', '--no-dashboard']);
  const [, url = ''] = await running.printed(/at (http:\S+?)\. /);
  const call = caller(url);
  const { body } = await call('POST', '/api/v1/jobs', { name: 'a' });
  const { lease } = await claimOne(call);
  await call('POST', '/api/v1/settle', { lease, outcome: 'nack', error: { class: 'permanent', message: 'gone' } });
  running.process.kill('SIGTERM');
  const { stderr } = await running.ended;
  expect(stderr).toMatch(/mulligan warn: a job is dead \(unrecoverable\)/);
  expect(stderr).toContain(body.id);
});

it('mulligan serve takes inputs and results as large as its flags say', async () => {
  const cli = new Cli();
  onTestFinished(() => cli.cleanUp());
  const sizes = ['--max-payload-bytes', '300000', '--max-result-bytes', '10'];
  const running = cli.start(['serve', '--db', 'sqlite:jobs.db', '--port', '0', '--no-dashboard', ...sizes]);
  const [, url = ''] = await running.printed(/at (http:\S+?)\. /);
  const call = caller(url);
  const enqueued = (bytes: number) => call('POST', '/api/v1/jobs', { name: 'a', input: 'x'.repeat(bytes) });
  expect([(await enqueued(299_000)).status, (await enqueued(300_001)).status]).toEqual([201, 422]);
  const { lease } = await claimOne(call);
  await call('POST', '/api/v1/settle', { lease, outcome: 'ack', result: 'longer than ten' });
  const ended = (await call('GET', '/api/v1/jobs?state=completed')).body.items;
  expect(ended).toHaveLength(1);
  expect(JSON.stringify(ended)).not.toContain('longer than ten');
  running.process.kill('SIGTERM');
  await running.ended;
});

it('mulligan serve says what it cannot serve: a server, a port in use, all machines without tokens', async () => {
  const { url } = await served();
  const db = ['--db', `sqlite:${join(newFolder(), 'jobs.db')}`];
  expect(await commanded(['serve', '--db', url])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^mulligan: --db: expected a database to serve, .* got the server http:/),
  });
  const { port } = new URL(url);
  expect(await commanded(['serve', ...db, '--port', port])).toMatchObject({
    code: 2,
    stderr: `mulligan: --port: expected one that is free at 127.0.0.1, got ${port}, which is in use.\n`,
  });
  expect(await commanded(['serve', ...db, '--port', '0', '--host', '0.0.0.0'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^mulligan: serve: expected tokens for an address/),
  });
});

it('migrate wants the database itself', async () => {
  const { url } = await served();
  expect(await commanded(['migrate', '--db', url])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/--db: expected the database itself, got the server http/),
  });
});

it('a second token of one name is refused; a file without tokens takes a first one', async () => {
  const file = join(newFolder(), 'tokens');
  writeFileSync(file, '# tokens of the queue\n\n');
  const create = () => commanded(['token', 'create', 'ci', '--scopes', 'read', '--token-file', file]);
  expect(await create()).toMatchObject({ code: 0 });
  expect(await create()).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/named "ci" already/) });
  expect(readFileSync(file, 'utf8').match(/sha256/g)).toHaveLength(1);
});

it('an order to a schedule that does not exist says so, as its removal does', async () => {
  const { url } = await served();
  for (const order of ['pause', 'resume', 'trigger', 'remove']) {
    expect(await commanded(['schedules', order, 'nope', '--db', url]), order).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/there is no schedule "nope"/),
    });
  }
});

it('a gate is shown with jobs that it can hold, not with those that have ended', async () => {
  const mail = defineJob<number>({ name: 'mail', resource: 'smtp' });
  const { url, call, mulligan } = await served({ queue: { jobs: [mail] } });
  await mulligan.enqueue(mail, 1);
  await call('POST', '/api/v1/settle', { lease: (await claimOne(call)).lease, outcome: 'ack' });
  await mulligan.enqueue(mail, 2);
  await mulligan.gates.open('smtp');
  const { stdout } = await commanded(['jobs', 'list', '--db', url]);
  expect(stdout).toMatch(/ready, gate open/);
  expect(stdout).not.toMatch(/completed, gate/);
});
