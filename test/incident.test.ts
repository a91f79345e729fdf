import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject } from 'vitest';
import type { BulkResult, Operation } from '../src/index.ts';
import { Mulligan } from '../src/index.ts';
import type { Job } from '../src/job.ts';
import type { Stats } from '../src/observe/stats.ts';
import type { ErrorGroup } from '../src/store/error-groups.ts';
import { type Cli, it } from './support/cli.ts';
import { newSchema, runSql } from './support/postgres-schema.ts';

/*
 * An incident, with the command line alone, each command a process of its own: 6,700 jobs are dead and 5,000 wait for their
 * retries, of 12 kinds of error whose messages carry random ids. The person on call finds the worst group, looks at it
 * without changing it, tries ten jobs, and brings the rest back. Processes are killed on the way.
 */

const library = new URL('../src/index.ts', import.meta.url).href;
const server = inject('postgresUrl');

const DEAD = 6_700;
const RETRYING = 5_000;
const KINDS = 12;
/** Of the dead, so many are of the worst kind; the others share the rest. */
const WORST = 2_300;
const CANARY = 10;

/** Fails until the file `fixed` is there. */
const JOBS = `
import { existsSync } from 'node:fs';
import { defineJob } from ${JSON.stringify(library)};
const kinds = [
  'order ID was not found', 'customer ID has no address', 'token ID expired', 'invoice ID is locked by ID',
  'duplicate delivery ID', 'unknown currency in ID', 'tenant ID over quota', 'template ID is missing a field',
  'signature of ID does not match', 'shard ID is read only', 'cannot parse answer ID', 'webhook ID was disabled',
];
export const deliver = defineJob<{ kind: number; id: string }>({
  name: 'webhook.deliver',
  resource: false,
  retry: { maxAttempts: 5, backoff: { kind: 'fixed', base: '1d' }, jitter: 'none' },
  run({ kind, id }) {
    if (!existsSync('fixed')) throw new Error(kinds[kind].replaceAll('ID', id));
  },
});
`;

interface Incident {
  readonly cli: Cli;
  readonly env: { readonly MULLIGAN_DB: string };
  readonly mulligan: Mulligan;
}

const kindOf = (index: number): number => (index < WORST ? 0 : 1 + (index % (KINDS - 1)));

async function until<T>(read: () => Promise<T>, isRight: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read();
    if (isRight(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Enqueues the jobs, and lets a worker run each once. */
async function breakEverything({ cli, env, mulligan }: Incident): Promise<void> {
  writeFileSync(join(cli.folder, 'jobs.ts'), JOBS);
  const input = (kind: number): unknown => ({ kind, id: randomUUID() });
  const dead = Array.from({ length: DEAD }, (_, index) => input(kindOf(index)));
  const retrying = Array.from({ length: RETRYING }, (_, index) => input(index % KINDS));
  const patient = { maxAttempts: 5, backoff: { kind: 'fixed', base: '1d' }, jitter: 'none' } as const;
  await mulligan.enqueueMany(
    'webhook.deliver',
    dead.map((input) => ({ input })),
    { retry: { ...patient, maxAttempts: 1 } },
  );
  await mulligan.enqueueMany(
    'webhook.deliver',
    retrying.map((input) => ({ input })),
    { retry: patient },
  );
  const worker = startWorker(cli, env);
  const failed = ({ states }: Stats): number => states.dead + states.retrying;
  const { states } = await until(
    () => mulligan.stats(),
    (stats) => failed(stats) === DEAD + RETRYING,
  );
  expect(states).toMatchObject({ dead: DEAD, retrying: RETRYING });
  await worker.stop();
}

function startWorker(cli: Cli, env: Incident['env']): { stop(): Promise<void> } {
  const worker = cli.start(['work', '--jobs', 'jobs.ts', '--concurrency', '100', '--json'], { env });
  return {
    stop: async () => {
      worker.process.kill('SIGTERM');
      await worker.ended;
    },
  };
}

async function survive({ cli, env, mulligan }: Incident): Promise<void> {
  const run = (...args: string[]) => cli.run(args, { env });
  const json = async <T>(...args: string[]): Promise<T> => {
    const { stdout, stderr } = await run(...args, '--json');
    if (stdout === '') throw new Error(stderr);
    return JSON.parse(stdout) as T;
  };

  // What is it? Twelve kinds, the worst first.
  const { groups } = await json<{ groups: ErrorGroup[] }>('errors', 'list');
  expect(groups).toHaveLength(KINDS);
  const [worst] = groups as [ErrorGroup];
  const retryingOfWorst = Math.ceil(RETRYING / KINDS);
  expect(worst).toMatchObject({ dead: WORST, failing: retryingOfWorst });
  const error = ['--error', worst.fingerprint];

  // A look, which changes nothing.
  const would = await run('dead', 'redrive', ...error, '--dry-run');
  expect(would.stdout).toContain('Would redrive 2,300 dead jobs, such as:');
  expect(await json('jobs', 'count', ...error, '--state', 'dead')).toEqual({ count: WORST, isExact: true });

  // Not fixed yet: ten try, the rest stays.
  const redrive = ['dead', 'redrive', ...error, '--canary', String(CANARY), '--rate', '2000/s'];
  let worker = startWorker(cli, env);
  const tooEarly = await run(...redrive);
  expect(tooEarly.code).toBe(1);
  expect(tooEarly.stdout).toMatch(/Stopped: \d+ of 10 canaries did not complete\. .* Error: order /);
  await until(
    () => mulligan.stats(),
    ({ states }) => states.dead === DEAD,
  );
  await worker.stop();

  // Fixed. The first command is killed while its canaries wait, the second in the middle of the rest.
  writeFileSync(join(cli.folder, 'fixed'), '');
  const newest = async (): Promise<Operation> => (await mulligan.audit.list({ limit: 1 }))[0] as Operation;
  const first = cli.start(redrive, { env });
  await until(newest, ({ state, changed }) => state === 'running' && changed === CANARY);
  first.process.kill('SIGKILL');
  await first.ended;
  expect((await mulligan.dead.count({ error: worst.fingerprint })).count).toBe(WORST - CANARY);
  worker = startWorker(cli, env);
  const second = cli.start(redrive, { env });
  await until(newest, ({ changed }) => changed > CANARY);
  second.process.kill('SIGKILL');
  await second.ended;
  const last = await json<BulkResult>(...redrive);
  expect(last).toMatchObject({ stopped: null, count: expect.any(Number) });
  expect((await mulligan.dead.count({ error: worst.fingerprint })).count).toBe(0);

  // The retrying ones need not wait for a day.
  const wrongCommand = await run('dead', 'redrive', '--id', (await firstRetrying(mulligan)).id);
  expect(wrongCommand.code).toBe(1);
  expect(wrongCommand.stdout).toMatch(/is retrying\. Use mulligan jobs run-now\./);
  const hurried = await run('jobs', 'run-now', '--state', 'retrying', '--rate', '2500/s');
  expect(hurried).toMatchObject({ code: 0, stdout: expect.stringContaining('5,000 jobs') });
  const completed = WORST + RETRYING;
  await until(
    () => mulligan.stats(),
    ({ states }) => states.completed === completed,
  );
  await worker.stop();

  // Each job of the worst kind was redriven once; ten of them twice, by the command that came too early.
  const { stdout } = await run('jobs', 'export', '--state', 'completed');
  const jobs = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Job);
  expect(jobs).toHaveLength(completed);
  const runs = jobs.map((job) => job.runs);
  expect(runs.filter((count) => count > 2)).toHaveLength((await tries(mulligan)) * CANARY - CANARY);
  expect(Math.max(...runs)).toBe(3);

  const { operations } = await json<{ operations: Operation[] }>('audit', 'list');
  const done = operations.filter(({ changed }) => changed > 0).toReversed();
  expect(done.map(({ action, state }) => `${action} ${state}`)).toEqual([
    'redrive stopped',
    'redrive done',
    'runNow done',
  ]);
  expect(done.map(({ changed }) => changed)).toEqual([CANARY, WORST, RETRYING]);
  expect(done[0]?.by).toMatch(/.@./);
}

/** How many redrives began: the one that came too early, and the one that was killed and continued. */
async function tries(mulligan: Mulligan): Promise<number> {
  const operations = await mulligan.audit.list();
  return operations.filter(({ action, changed }) => action === 'redrive' && changed > 0).length;
}

async function firstRetrying(mulligan: Mulligan): Promise<Job> {
  return (await mulligan.jobs.list({ state: 'retrying', limit: 1 }))[0] as Job;
}

describe('an incident, with the command line alone', () => {
  it('ends well on SQLite', async ({ cli }) => {
    const env = { MULLIGAN_DB: `sqlite:${join(cli.folder, 'jobs.db')}` };
    await using mulligan = await Mulligan.open(env.MULLIGAN_DB);
    await breakEverything({ cli, env, mulligan });
    await survive({ cli, env, mulligan });
  });

  it('ends well on PostgreSQL', async ({ cli }) => {
    const schema = newSchema();
    const env = { MULLIGAN_DB: `${server}?schema=${schema}` };
    await using mulligan = await Mulligan.open(env.MULLIGAN_DB);
    try {
      await breakEverything({ cli, env, mulligan });
      await survive({ cli, env, mulligan });
    } finally {
      await mulligan.close();
      await runSql(server, `DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    }
  });
});
