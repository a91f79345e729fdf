import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createToken } from '../../src/server/index.ts';
import { claimRequest, newJob, newJobs, quota } from '../../src/store/conformance/builders.ts';
import { openStore } from '../../src/store/open.ts';
import { PAGE_BYTES } from '../../src/store/page.ts';
import type { NewJob } from '../../src/store/store.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { type Figures, startBounded } from './bounded-server.ts';
import { caller, type Served, temporaryFolder } from './served.ts';

/* What clients ask for at once, in a heap of 512 MB. */

const PAYLOAD_BYTES = 262_000;

interface Client {
  readonly call: Served['call'];
  readonly figures: () => Promise<Figures>;
}

/** A server over such jobs, and a client with these scopes. */
async function client(target: string, job: Partial<NewJob>, count: number, scopes: readonly string[]): Promise<Client> {
  const store = await openStore(target, systemClock);
  for (let left = count; left > 0; left -= 20) await store.enqueue(newJobs(Math.min(20, left), job));
  await store.close();
  const { token, stored } = createToken('client', scopes as never);
  const server = await startBounded({ target, tokens: [stored] });
  const plain = caller(server.url);
  const call: Served['call'] = async (method, path, body, headers) => {
    try {
      return await plain(method, path, body, { ...headers, authorization: `Bearer ${token}` });
    } catch (error) {
      throw new Error(server.ended() ?? 'the connection broke', { cause: error });
    }
  };
  return { call, figures: server.figures };
}

async function survivesLists(target: string, payload: string, count: number): Promise<void> {
  const { call, figures } = await client(target, { payload }, count, ['read']);
  const answers = await Promise.all(Array.from({ length: 12 }, () => call('GET', '/api/v1/jobs?limit=1000')));
  // On a slow machine some wait for room until their time is up.
  const answered = answers.filter(({ status }) => status !== 503);
  expect(answered.length).toBeGreaterThan(0);
  for (const { status, body } of answered) {
    expect(status).toBe(200);
    expect(body.items.length).toBeGreaterThan(0);
    expect(body.next).toBe(body.items.at(-1).id);
  }
  // Page by page, all of them are read.
  let read = 0;
  for (let next: string | null = ''; next !== null; ) {
    const { body } = await call('GET', `/api/v1/jobs?limit=1000${next === '' ? '' : `&cursor=${next}`}`);
    read += body.items.length;
    next = body.next;
  }
  expect(read).toBe(count);
  const raw = await Promise.all(
    Array.from({ length: 12 }, () => call('POST', '/api/v1/store/list', [{ limit: 10_000 }])),
  );
  const statuses = [...new Set(raw.map(({ status }) => status))];
  expect([statuses.includes(200), statuses.filter((one) => one !== 200 && one !== 503)]).toEqual([true, []]);
  expect((await call('GET', '/readyz')).status).toBe(200);
  expect((await figures()).peakHeap).toBeLessThan(400);
}

/** So many answered twelve times over are more than the heap holds. */
const MANY = process.env.MULLIGAN_FUZZ === 'all' ? 1_000 : 300;
const text = JSON.stringify('x'.repeat(PAYLOAD_BYTES));
/** The most memory that its text can take. */
const values = `[${'{},'.repeat(PAYLOAD_BYTES / 3 - 2)}{}]`;

it.each([
  ['texts', text, MANY],
  ['empty objects', values, 40],
])('a reader cannot end the server by lists of large inputs: %s, SQLite', async (_, payload, count) => {
  await survivesLists(`sqlite:${join(temporaryFolder(), 'jobs.db')}`, payload, count);
});

it('the same on PostgreSQL', async () => {
  await using database = await TestDatabase.create(inject('postgresUrl'));
  await survivesLists(database.url, text, MANY);
});

/** As an earlier version has let them in: 50 kB each, of which the payload is nothing. */
const fat: Partial<NewJob> = {
  trace: '\u4e2d'.repeat(9_990),
  policy: {
    ...newJob().policy,
    backoff: { kind: 'table', delaysMs: Array.from({ length: 1_000 }, (_, at) => 1e8 + at / 7) },
  },
};

it('what jobs carry beside payloads does not end the server either, in lists and in claims', async () => {
  const { call, figures } = await client(`sqlite:${join(temporaryFolder(), 'jobs.db')}`, fat, 3_500, ['read', 'work']);
  const list = await call('POST', '/api/v1/store/list', [{ limit: 10_000 }]);
  expect([list.status, JSON.stringify(list.body).length < 3 * PAGE_BYTES]).toEqual([200, true]);
  const order = { ...claimRequest(), limit: 100_000, queues: [quota({ share: 100_000 })] };
  const claims = [];
  for (let at = 0; at < 3; at++) claims.push((await call('POST', '/api/v1/store/claim', [order])).body);
  // And the worker is told to ask again at once.
  expect(claims.map(({ jobs, now, nextDueAt }) => [jobs.length, nextDueAt - now])).toEqual([
    [1_000, 0],
    [1_000, 0],
    [1_000, 0],
  ]);
  expect((await figures()).peakHeap).toBeLessThan(400);
});

it('claims that wait for queues and names of their own are bounded in words, and the others told to come later', async () => {
  const { call, figures } = await client(`sqlite:${join(temporaryFolder(), 'jobs.db')}`, {}, 0, ['work']);
  const before = await figures();
  const words = (prefix: string, count: number): string[] =>
    Array.from({ length: count }, (_, at) => `${prefix}-of-some-length-${at}`);
  const answers = Array.from({ length: 400 }, (_, at) => {
    const [queues, names] = [words(`queue-${at}`, 100), words(`name-${at}`, 200)];
    return call('POST', '/api/v1/claim', { worker: `w${at}`, queues, names, wait: '10s' });
  });
  // Those that are refused are answered at once: by then the others wait.
  const refused = await Promise.race(answers);
  expect([refused.status, refused.body.code]).toEqual([429, 'TOO_MANY_WAITING']);
  const after = await figures();
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(333);
  expect(after.heap - before.heap).toBeLessThan(60);
});
