import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, inject, it, onTestFinished } from 'vitest';
import { Mulligan } from '../../src/mulligan.ts';
import { createToken } from '../../src/server/index.ts';
import { TestDatabase } from '../support/postgres-database.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

function start(command: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  const child = spawn(command, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  onTestFinished(() => {
    try {
      // The whole group: the worker in bash has children.
      process.kill(-(child.pid as number), 'SIGKILL');
    } catch {
      // It has ended.
    }
  });
  return child;
}

/** Serves the queue, and resolves once it listens. */
async function serve(
  database: string,
  port: number,
  tokenFile: string,
): Promise<{ child: ChildProcess; port: number }> {
  const args = [
    'bin/mulligan.js',
    'serve',
    '--db',
    database,
    '--port',
    String(port),
    '--token-file',
    tokenFile,
    '--json',
  ];
  const child = start(process.execPath, args, {});
  const [line] = await once(child.stdout as NodeJS.ReadableStream, 'data');
  return { child, port: Number(new URL(JSON.parse(String(line)).url).port) };
}

/** Pages that work, fail at first, ask to be left alone for a second, or are not there. */
function pages(): Promise<{ server: Server; url: string }> {
  const seen = new Map<string, number>();
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    const visit = (seen.get(path) ?? 0) + 1;
    seen.set(path, visit);
    if (path.startsWith('/missing')) response.writeHead(404).end();
    else if (path.startsWith('/broken')) response.writeHead(500).end();
    else if (path.startsWith('/flaky') && visit < 3) response.writeHead(500).end();
    else if (path.startsWith('/busy') && visit === 1) response.writeHead(503, { 'retry-after': '1' }).end();
    else response.end('a page');
  });
  onTestFinished(() => void server.close());
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () =>
      resolve({ server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
    );
  });
}

it('workers in Python and bash drain a served PostgreSQL with retries, Retry-After and dead letters, though the server is killed', async () => {
  await using database = await TestDatabase.create(inject('postgresUrl'));
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-served-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const tokenFile = join(folder, 'tokens');
  const { token, stored } = createToken('workers', ['work']);
  appendFileSync(tokenFile, `${JSON.stringify(stored)}\n`);
  await using mulligan = await Mulligan.open(database.url, { log: () => {} });
  const { url: site } = await pages();
  const kinds = ['ok', 'ok', 'ok', 'flaky', 'busy', 'missing', 'broken'];
  const paths = Array.from({ length: 28 }, (_, index) => `/${kinds[index % kinds.length]}/${index}`);
  // One more than a flaky page needs: a run is lost, and counts, when the answer to its claim goes down with the server.
  const retry = { maxAttempts: 4, backoff: { kind: 'fixed', base: '100ms' }, jitter: 'none' } as const;
  const enqueued = await mulligan.enqueueMany(
    'page.fetch',
    paths.map((path) => ({ input: { url: `${site}${path}` }, retry })),
  );
  const first = await serve(database.url, 0, tokenFile);
  const env = { MULLIGAN_URL: `http://127.0.0.1:${first.port}`, MULLIGAN_TOKEN: token, MULLIGAN_LEASE: '5s' };
  const workers = [start('python3', ['examples/worker.py'], env), start('bash', ['examples/worker.sh'], env)];
  for (const worker of workers) worker.stdout?.resume();
  const ended = async () => (await mulligan.jobs.count({ state: ['completed', 'dead'] })).count;
  const until = async (enough: number) => {
    while ((await ended()) < enough) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  await until(6);
  process.kill(first.child.pid as number, 'SIGKILL');
  await once(first.child, 'exit');
  await serve(database.url, first.port, tokenFile);
  await until(paths.length);
  const jobs = await Promise.all(enqueued.map(({ id }) => mulligan.jobs.get(id)));
  const by = (kind: string) => jobs.filter((_, index) => paths[index]?.startsWith(`/${kind}/`));
  for (const kind of ['ok', 'flaky', 'busy'])
    expect(
      by(kind).map((job) => job?.state),
      kind,
    ).toEqual(by(kind).map(() => 'completed'));
  expect(by('missing').map((job) => job?.deadReason)).toEqual(by('missing').map(() => 'unrecoverable'));
  expect(by('broken').map((job) => job?.deadReason)).toEqual(by('broken').map(() => 'exhausted'));
  const ledgers = await Promise.all(enqueued.map(({ id }) => mulligan.jobs.runs(id)));
  const workersSeen = new Set(ledgers.flat().map(({ worker }) => worker.split('-')[0]));
  expect([...workersSeen].sort()).toEqual(['bash', 'python']);
  const waits = ledgers.flat().filter(({ decision }) => decision.kind === 'retry' && decision.why === 'retry-after');
  expect(waits.length).toBeGreaterThan(0);
  expect(waits.every(({ endedAt, nextDueAt }) => (nextDueAt as number) - endedAt >= 900)).toBe(true);
});

it('a route handler of Next.js serves the API below its path', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-next-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { token, stored } = createToken('app', ['read', 'write']);
  appendFileSync(join(folder, 'tokens'), `${JSON.stringify(stored)}\n`);
  Object.assign(process.env, {
    QUEUE_URL: 'memory:',
    QUEUE_TOKENS: join(folder, 'tokens'),
    QUEUE_HOST: 'app.example.com',
  });
  const { GET, POST } = await import('../../examples/next/app/api/queue/[...path]/route.ts');
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ name: 'email.send' });
  const url = 'https://app.example.com/api/queue/api/v1/jobs';
  expect((await POST(new Request(url, { method: 'POST', headers, body }))).status).toBe(201);
  const listed = await (await GET(new Request(url, { headers }))).json();
  expect(listed).toMatchObject({ items: [{ name: 'email.send' }] });
  expect((await GET(new Request(url))).status).toBe(401);
});
