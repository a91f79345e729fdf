import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { createToken } from '../../src/server/index.ts';
import type { OpenApiDocument } from '../../src/server/openapi.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { startBounded } from './bounded-server.ts';
import { type HostileRequest, HostileRequests, seeded } from './hostile.ts';
import { caller, type Served, temporaryFolder } from './served.ts';

/*
 * MULLIGAN_FUZZ=all sends 100,000 requests to a server over each database, MULLIGAN_FUZZ_SEED repeats a run. What must hold:
 * every request is answered, none with 5xx but "too busy now"; an error is a problem document; no answer shows a stack, a path
 * or a secret; the server, in a process of its own with a heap of 512 MB, uses less than 400 MB of it.
 */
const isAll = process.env.MULLIGAN_FUZZ === 'all';
const seed = Number(process.env.MULLIGAN_FUZZ_SEED ?? 1);
const MOST_HEAP_MB = 400;
const AT_ONCE = 16;
const LONGEST_MS = 3 * 3_600_000;
/** Only to end what hangs. */
const ANSWERED_WITHIN_MS = 120_000;

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

function send(url: string, agent: Agent, asked: HostileRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { method, path, headers, body, isStream } = asked;
    const { hostname, port } = new URL(url);
    const length = body === null ? {} : { 'content-length': String(body.length) };
    const sent = request({
      hostname,
      port,
      method,
      path,
      agent,
      headers: { ...headers, ...length },
      timeout: ANSWERED_WITHIN_MS,
    });
    sent.on('timeout', () => sent.destroy(new Error(`no answer to ${method} ${path}`)));
    sent.on('error', reject);
    sent.on('response', (response) => {
      const parts: Buffer[] = [];
      const done = (): void =>
        resolve({
          status: response.statusCode ?? 0,
          type: response.headers['content-type'] ?? '',
          text: Buffer.concat(parts).toString('utf8'),
        });
      response.on('data', (part: Buffer) => {
        parts.push(part);
        if (!isStream || response.statusCode !== 200) return;
        done();
        sent.destroy();
      });
      response.on('end', done);
    });
    sent.end(body ?? undefined);
  });
}

const leaks = /node_modules|node:internal|\.(ts|js):\d+|\bat (async )?[\w.<>]+ \(|ECONNREFUSED|SQLITE_|pg_catalog/;

async function fuzz(target: string, count: number, seed: number): Promise<void> {
  const { token, stored } = createToken('fuzz', ['admin']);
  const server = await startBounded({ target, tokens: [stored], longestWait: '20ms' });
  const authorization = `Bearer ${token}`;
  const plain = caller(server.url);
  const call: Served['call'] = (method, path, body) => plain(method, path, body, { authorization });
  // So that claims bring something, and leases are seen.
  const jobs = Array.from({ length: 300 }, (_, index) => ({ input: { password: index } }));
  expect((await call('POST', '/api/v1/jobs/batch', { name: 'email.send', jobs })).status).toBe(200);
  const { body: document } = await call('GET', '/openapi.json');
  const requests = new HostileRequests(document as OpenApiDocument, seeded(seed), authorization);
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const statuses = new Map<number, number>();
  let left = count;
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      if (isAll && left % 10_000 === 0) console.log(`${target.slice(0, 8)} ${left} requests to go`);
      const asked = requests.next();
      const { status, type, text } = await send(server.url, agent, asked).catch((error) => {
        throw new Error(server.ended() ?? `${asked.method} ${asked.path.slice(0, 300)} ${bodyOf(asked)}`, {
          cause: error,
        });
      });
      const shown = `${asked.method} ${asked.path.slice(0, 300)} ${bodyOf(asked)} -> ${status} ${text.slice(0, 500)}`;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      requests.saw(text);
      const isBusy = status === 503 && text.includes('"TOO_BUSY"');
      if ((status >= 500 && !isBusy) || status < 200) throw new Error(shown);
      // 400 without a body is Node's own, to a request that is no HTTP.
      if (status >= 400 && text !== '' && !type.startsWith('application/problem+json'))
        throw new Error(`no problem: ${shown}`);
      if (status >= 400 && (leaks.test(text) || text.includes(token) || text.includes(process.cwd())))
        throw new Error(`leak: ${shown}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  agent.destroy();
  expect((await call('GET', '/readyz')).status).toBe(200);
  // Enough of them got past the checks of their shape.
  const served2xx = [...statuses].filter(([status]) => status < 300).reduce((sum, [, own]) => sum + own, 0);
  expect(served2xx).toBeGreaterThan(count / 20);
  const figures = await server.figures();
  if (isAll) {
    const byStatus = Object.fromEntries([...statuses].sort());
    console.log(`${target.slice(0, 8)} ${count} requests, by status:`, byStatus, 'MB:', figures);
  }
  expect(figures.isPolluted).toBe(false);
  expect(figures.peakHeap).toBeLessThan(MOST_HEAP_MB);
}

function bodyOf({ body }: HostileRequest): string {
  return body?.subarray(0, 3_000).toString('utf8') ?? '';
}

it(
  'hostile requests from the document are all answered, with no 5xx and no leak, by a server of bounded memory',
  async () => {
    await fuzz(`sqlite:${join(temporaryFolder(), 'jobs.db')}`, isAll ? 100_000 : 1_000, seed);
  },
  LONGEST_MS,
);

it(
  'the same on PostgreSQL, which refuses texts that others take',
  async () => {
    await using database = await TestDatabase.create(inject('postgresUrl'));
    await fuzz(database.url, isAll ? 100_000 : 800, seed + 1_000);
  },
  LONGEST_MS,
);
