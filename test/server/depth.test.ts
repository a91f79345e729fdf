import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { partsOf } from '../../src/mulligan.ts';
import { enqueueOne, newJob } from '../../src/store/conformance/builders.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { claimOne, type Served, served, temporaryFolder } from './served.ts';

/* JSON inside of JSON: what is nested too deeply is refused, and where it is stored already, it stops no other job. */

const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;

it.each([501, 5_000, 20_000])(
  'texts of %i levels are refused wherever the store protocol carries JSON',
  async (levels) => {
    const { call } = await served();
    await call('POST', '/api/v1/jobs', { name: 'a', input: 1 });
    const { id } = await claimOne(call);
    const fence = { id, run: 1, worker: 'w1' };
    const settlement = {
      ...{ ...fence, outcome: 'completed', decision: { kind: 'complete', rule: 'r' }, error: null },
      ...{ startedAt: 1, endedAt: 1 },
    };
    const calls: [string, unknown[]][] = [
      ['enqueue', [[{ ...newJob(), payload: deep(levels) }]]],
      ['heartbeat', [[{ ...fence, leaseMs: 1_000, progress: deep(levels) }]]],
      ['remember', [fence, 'k', deep(levels)]],
      ['settle', [[{ ...settlement, result: deep(levels) }]]],
    ];
    for (const [verb, args] of calls) {
      const { status, body } = await call('POST', `/api/v1/store/${verb}`, args);
      expect([verb, status, body.issues?.[0]?.message]).toEqual([verb, 400, 'expected JSON of at most 500 levels']);
    }
    const fitting = await call('POST', '/api/v1/store/enqueue', [[{ ...newJob(), payload: deep(500) }]]);
    expect(fitting.status).toBe(200);
  },
);

/** Jobs that an earlier version has let in, beside others. */
async function withDeepJobs(target: string, run: (call: Served['call'], ids: readonly string[]) => Promise<void>) {
  const { call, mulligan } = await served({ target });
  const { store } = partsOf(mulligan);
  const ids: string[] = [];
  for (const payload of ['1', deep(5_000), '2', deep(20_000), '3']) ids.push(await enqueueOne(store, { payload }));
  await run(call, ids);
}

async function goOn(call: Served['call'], ids: readonly string[]): Promise<void> {
  const shown = await call('GET', '/api/v1/jobs');
  expect(shown.status).toBe(200);
  expect(shown.body.items.map((job: { id: string }) => job.id).toSorted()).toEqual([...ids].toSorted());
  for (const id of ids) expect((await call('GET', `/api/v1/jobs/${id}`)).status).toBe(200);
  const claimed = await call('POST', '/api/v1/claim', { worker: 'w1', wait: 0, limit: 10 });
  expect(claimed.status).toBe(200);
  expect(claimed.body.jobs.map((job: { payload: unknown }) => job.payload).toSorted()).toEqual([1, 2, 3]);
  const dead = await call('GET', '/api/v1/dead');
  expect(dead.body.items).toHaveLength(2);
  for (const job of dead.body.items) {
    expect(job).toMatchObject({ deadReason: 'unrecoverable', crashes: 0, payload: '[JSON of more than 500 levels]' });
    expect(job.lastError.message).toMatch(/^expected a payload of at most 500 levels, got more/);
  }
}

it('a job too deep for an answer is dead by itself, and those beside it start: memory', async () => {
  await withDeepJobs('memory:', goOn);
});

it('the same on SQLite, whose answers come from a thread', async () => {
  await withDeepJobs(`sqlite:${join(temporaryFolder(), 'jobs.db')}`, goOn);
});

it('the same on PostgreSQL', async () => {
  await using database = await TestDatabase.create(inject('postgresUrl'));
  await withDeepJobs(database.url, goOn);
});

it('a result of once that could not be stored is recorded over HTTP as it is in other stores', async () => {
  const { call } = await served();
  await call('POST', '/api/v1/jobs', { name: 'a', input: 1 });
  const { id } = await claimOne(call);
  const { status, body } = await call('POST', '/api/v1/store/remember', [
    { id, run: 1, worker: 'w1' },
    'charge',
    'result unknown',
  ]);
  expect([status, body]).toEqual([200, true]);
});
