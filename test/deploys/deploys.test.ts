import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { type AnyJobDefinition, defineJob, Mulligan } from '../../src/index.ts';
import { TestDatabase } from '../support/postgres-database.ts';

/*
 * A rolling deploy: workers of two versions of a program, each with a Mulligan of its own, on one real database. Jobs of the
 * new version are enqueued while the old one still runs on most machines.
 */

const JOBS = 40;
const OLD_WORKERS = 3;
const IN_TIME = { timeout: 30_000, interval: 20 };

const folder = mkdtempSync(join(tmpdir(), 'mulligan-deploys-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const databases = new AsyncDisposableStack();
afterAll(() => databases.disposeAsync());

let files = 0;
const newFile = (): string => join(folder, `${++files}.db`);
const stores: [string, () => Promise<string>][] = [
  ['SQLite', async () => `sqlite:${newFile()}`],
  ['PostgreSQL', async () => databases.use(await TestDatabase.create(inject('postgresUrl'))).url],
];

describe.each(stores)('on %s', (store, makeUrl) => {
  let url = '';
  beforeAll(async () => {
    url = await makeUrl();
  });

  /** Old workers that are idle by the time the jobs come, and a new one; resolves once all jobs have completed. */
  async function deploy(
    jobs: { readonly old: AnyJobDefinition[]; readonly new: AnyJobDefinition },
    inputs: readonly unknown[],
  ): Promise<{ readonly ms: number; readonly released: number; readonly attempts: number }> {
    await using fleet = new AsyncDisposableStack();
    const open = async (definitions: AnyJobDefinition[]): Promise<Mulligan> => {
      const mulligan = await Mulligan.open(url, { jobs: definitions, log: () => {} });
      fleet.defer(() => mulligan.close({ grace: 1_000 }));
      return mulligan;
    };
    const olds = [];
    for (let n = 0; n < OLD_WORKERS; n++) olds.push(await open(jobs.old));
    const deployed = await open([jobs.new]);
    const queues = [jobs.new.queue];
    const workers = [...olds, deployed].map((mulligan) => mulligan.work({ queues }));
    await Promise.all(workers.map((worker) => worker.whenIdle()));
    const startedAt = performance.now();
    await deployed.enqueueMany(
      jobs.new,
      inputs.map((input) => ({ input })),
    );
    const stats = async () => (await deployed.stats()).queues[jobs.new.queue];
    await expect.poll(async () => (await stats())?.states.completed, IN_TIME).toBe(inputs.length);
    const ms = Math.round(performance.now() - startedAt);
    const done = await deployed.jobs.list({ name: jobs.new.name, state: 'completed', limit: inputs.length });
    const attempts = Math.max(...done.map((job) => job.attempts));
    return { ms, released: (await stats())?.totals.runs.released ?? 0, attempts };
  }

  const tell = (what: string, { ms, released }: { ms: number; released: number }): void =>
    console.info(`${store}: ${JOBS} ${what} done in ${ms} ms, handed back ${released} times`);

  test('jobs of a new name are all done while 3 of 4 workers do not know it, each handed back at most once', async () => {
    const old = defineJob({ name: 'old', queue: 'names', run: () => {} });
    const added = defineJob<number>({ name: 'added', queue: 'names', run: () => {} });
    const result = await deploy({ old: [old], new: added }, [...Array(JOBS).keys()]);
    tell('jobs of a new name', result);
    expect(result.released).toBeLessThanOrEqual(JOBS);
    expect(result.attempts).toBe(1);
  });

  test('jobs of a new version are all done by the worker that has it, each handed back at most once', async () => {
    const before = defineJob<{ to: string }>({ name: 'mail', queue: 'versions', version: 1, run: () => {} });
    const seen = new Set<number | null>();
    const after = defineJob<{ to: string[] }>({
      name: 'mail',
      queue: 'versions',
      version: 2,
      run: (_, { job }) => void seen.add(job.version),
    });
    const inputs = Array.from({ length: JOBS }, () => ({ to: ['a@example.com'] }));
    const result = await deploy({ old: [before], new: after }, inputs);
    tell('jobs of a new version', result);
    expect(result.released).toBeLessThanOrEqual(JOBS);
    expect(result.attempts).toBe(1);
    expect(seen).toEqual(new Set([2]));
  });

  test('payloads that old workers reject are all done by the new one, also without versions, and nothing is counted', async () => {
    const before = defineJob({
      name: 'pay',
      queue: 'payloads',
      input: z.object({ currency: z.enum(['EUR']) }),
      run: () => {},
    });
    const after = defineJob({
      name: 'pay',
      queue: 'payloads',
      input: z.object({ currency: z.enum(['EUR', 'USD']) }),
      run: () => {},
    });
    const inputs = Array.from({ length: JOBS }, () => ({ currency: 'USD' as const }));
    const result = await deploy({ old: [before], new: after }, inputs);
    tell('payloads', result);
    expect(result.attempts).toBe(1);
  });
});

describe('a backlog of 2,000 jobs of an unknown name', () => {
  test('is moved aside once, and then an idle worker writes nothing', async () => {
    const path = newFile();
    await using mulligan = await Mulligan.open(`sqlite:${path}`, { log: () => {} });
    const producer = await Mulligan.open(`sqlite:${path}`, { log: () => {} });
    await producer.enqueueMany('unknown', Array(2_000).fill({ input: null }));
    await producer.close();
    const worker = mulligan.work({ concurrency: 50, poll: '5ms' });
    await worker.whenIdle();
    const released = async (): Promise<number> => (await mulligan.stats()).totals.runs.released;
    expect(await released()).toBe(2_000);
    using file = new DatabaseSync(path, { readOnly: true });
    // Changes with every transaction of another connection that writes.
    const version = (): unknown => file.prepare('PRAGMA data_version').get();
    const before = version();
    // So many polls.
    for (let idle = 0; idle < 20; idle++) await new Promise((resolve) => setTimeout(resolve, 10));
    await worker.whenIdle();
    expect(version()).toEqual(before);
    expect(await released()).toBe(2_000);
  });
});
