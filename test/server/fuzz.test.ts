import { Agent, request } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, inject, it } from 'vitest';
import { createToken } from '../../src/server/index.ts';
import type { OpenApiDocument } from '../../src/server/openapi.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { type HostileRequest, HostileRequests, seeded } from './hostile.ts';
import { served } from './served.ts';

/*
 * MULLIGAN_FUZZ=all sends 100,000 requests, MULLIGAN_FUZZ_SEED repeats a run. What must hold: every request is answered, none
 * with 5xx; an error is a problem document; no answer shows a stack, a path or a secret; the heap stays flat.
 */
const isAll = process.env.MULLIGAN_FUZZ === 'all';
const seed = Number(process.env.MULLIGAN_FUZZ_SEED ?? 1);
const AT_ONCE = 16;
const ANSWERED_WITHIN_MS = 20_000;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

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
  const { url, call, mulligan } = await served({ target, server: { tokens: [stored], longestWait: '20ms' } });
  // So that claims bring something, and leases are seen.
  await mulligan.enqueueMany(
    'email.send',
    Array.from({ length: 300 }, (_, index) => ({ input: { password: index } })),
  );
  const { body: document } = await call('GET', '/openapi.json');
  const requests = new HostileRequests(document as OpenApiDocument, seeded(seed), `Bearer ${token}`);
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const statuses = new Map<number, number>();
  let left = count;
  let heapBefore = 0;
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      if (left === Math.floor(count / 2)) {
        collect();
        heapBefore = process.memoryUsage().heapUsed;
      }
      const asked = requests.next();
      const { status, type, text } = await send(url, agent, asked);
      const shown = `${asked.method} ${asked.path.slice(0, 300)} ${asked.body?.toString('utf8').slice(0, 3_000)} -> ${status} ${text.slice(0, 500)}`;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      requests.saw(text);
      if (status >= 500 || status < 200) throw new Error(shown);
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
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  // Enough of them got past the checks of their shape.
  const served2xx = [...statuses].filter(([status]) => status < 300).reduce((sum, [, own]) => sum + own, 0);
  expect(served2xx).toBeGreaterThan(count / 20);
  if (!isAll) return;
  collect();
  const grownMiB = (process.memoryUsage().heapUsed - heapBefore) / 2 ** 20;
  console.log(
    `${target.slice(0, 8)} ${count} requests, by status:`,
    Object.fromEntries([...statuses].sort()),
    `heap grew ${grownMiB.toFixed(1)} MiB in the second half`,
  );
  // In memory, the jobs themselves are on the heap.
  if (target !== 'memory:') expect(grownMiB).toBeLessThan(30);
}

it('hostile requests from the document are all answered, with no 5xx and no leak', async () => {
  await fuzz('memory:', isAll ? 50_000 : 1_200, seed);
});

it('the same on PostgreSQL, which refuses texts that memory takes', async () => {
  await using database = await TestDatabase.create(inject('postgresUrl'));
  await fuzz(database.url, isAll ? 50_000 : 800, seed + 1_000);
});
