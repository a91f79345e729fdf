/*
 * Advice from a large ledger, beside workers: npm run build && node bench/advise.ts [--rows N] [--rounds N]
 *
 *   advise    `mulligan policy advise` on a ledger of N rows (default 10,000,000) that a known process made, in PostgreSQL
 *   W2        how fast one worker process works off jobs that do nothing, alone and while advice is being read, in turn; so many
 *             of them (--jobs, default 500,000) that it takes as long as the reading
 *   locks     which locks the reading held, and whether any process ever waited for it
 *
 * All processes share one machine, so the ratio has what they take from one another's cores in it.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import type { Advice } from '../dist/index.js';
import { defineJob, Mulligan, policies } from '../dist/index.js';
import { startServers } from './harness/servers.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000000' },
    rounds: { type: 'string', default: '3' },
    jobs: { type: 'string', default: '500000' },
    drain: { type: 'string' },
  },
});
const JOBS = Number(values.jobs);

const noop = defineJob<number>({ name: 'noop', run: async () => {} });
const send = defineJob<number>({ name: 'email.send', retry: policies.harbor, run: async () => {} });

/** Of 20 jobs 12 complete at once, 4 at attempt 2, 2 at 4, 1 at 5, and 1 is dead after 25: 58 rows. */
const ROWS_PER_20 = 58;
const ATTEMPTS =
  'CASE WHEN n % 20 < 12 THEN 1 WHEN n % 20 < 16 THEN 2 WHEN n % 20 < 18 THEN 4 WHEN n % 20 = 18 THEN 5 ELSE 25 END';
const OPTIMUM = 5;
const PART_JOBS = 100_000;
const DAYS_MS = 30 * 86_400_000;

async function fill(url: string, rows: number): Promise<number> {
  const mulligan = await Mulligan.open(url, { jobs: [send, noop], log: () => {} });
  const { id } = await mulligan.enqueue(send, 0);
  await mulligan.jobs.cancel(id);
  await mulligan.close();
  const client = await connect(url);
  const { rows: types } = await client.query(`SELECT id FROM mulligan.job_types WHERE name = 'email.send'`);
  const { rows: workers } = await client.query(`INSERT INTO mulligan.workers (name) VALUES ('bench') RETURNING id`);
  const [type, worker] = [types[0].id, workers[0].id];
  const jobs = Math.ceil((rows / ROWS_PER_20) * 20);
  const error = JSON.stringify({
    name: 'Error',
    message: 'the mail server hung up',
    code: 'E_MAIL',
    status: null,
    stack: `Error: the mail server hung up\n${'    at send (/app/src/mail.ts:10:5)\n'.repeat(30)}`,
    fingerprint: 'e-mail',
  });
  // What many runs of one settlement threw is stored once.
  await client.query(
    `INSERT INTO mulligan.errors (id, uses, error) SELECT n, 100, $1 FROM generate_series(1, $2::bigint) n`,
    [error, Math.ceil(jobs / 50)],
  );
  for (let from = 1; from <= jobs; from += PART_JOBS) {
    await client.query(
      `WITH jobs AS MATERIALIZED (
         SELECT n, uuidv7() AS id, ${ATTEMPTS} AS attempts, n % 20 = 19 AS is_dead, 1 + n / 50 AS error,
           mulligan.now_ms() - ${DAYS_MS} + (n * (${DAYS_MS}::float8 / $3))::bigint AS t
         FROM generate_series($1::bigint, $2::bigint) n
       ), ended AS (
         INSERT INTO mulligan.finished (id, seq, finished_at, enqueued_at, due_at, available_at, lane, priority, job_type,
           payload_bytes, runs, attempts, crashes, state, key_life, dead_reason, first_started_at, outcome, attempt, counted,
           failed, worker, started_at, ended_at, decision, queue, resource, last_error, fingerprint, payload)
         SELECT id, -n, t, t - 60000, t, t, 0, 5, $4, 34, attempts, attempts, 0, CASE WHEN is_dead THEN 5 ELSE 4 END, 1,
           CASE WHEN is_dead THEN 0 END, t - 60000, CASE WHEN is_dead THEN 1 ELSE 0 END, attempts, true, is_dead, $5, t - 20, t,
           CASE WHEN is_dead THEN '{"kind":"dead","reason":"exhausted","counted":true,"rule":"attempts 25 of 25"}'
             ELSE '{"kind":"complete","rule":"completed"}' END,
           'default', '', CASE WHEN attempts > 1 THEN error END, CASE WHEN attempts > 1 THEN 'e-mail' END,
           '{"to":"a@example.com"}'
         FROM jobs
       )
       INSERT INTO mulligan.runs (job, run, attempt, outcome, counted, worker, started_at, ended_at, next_due_at, decision, error)
       SELECT id, a, a, 1, true, $5, t - (attempts - a) * 1000 - 20, t - (attempts - a) * 1000, t - (attempts - a - 1) * 1000,
         '{"kind":"retry","why":"backoff","delayMs":1000,"lane":"retry","rule":"default"}', error
       FROM jobs, generate_series(1, attempts - 1) a`,
      [from, Math.min(jobs, from + PART_JOBS - 1), jobs, type, worker],
    );
    process.stderr.write(
      `\rfilled ${Math.min(jobs, from + PART_JOBS - 1).toLocaleString()} jobs of ${jobs.toLocaleString()}`,
    );
  }
  await client.query(
    `INSERT INTO mulligan.counts (job_type, enqueued, completed, now_completed, now_dead, dead_exhausted)
     SELECT $1, count(*), count(*) FILTER (WHERE state = 4), count(*) FILTER (WHERE state = 4),
       count(*) FILTER (WHERE state = 5), count(*) FILTER (WHERE state = 5) FROM mulligan.finished`,
    [type],
  );
  await client.query('VACUUM (ANALYZE) mulligan.finished');
  await client.query('VACUUM (ANALYZE) mulligan.runs');
  await client.query('VACUUM (ANALYZE) mulligan.errors');
  await client.query('CHECKPOINT');
  const { rows: counted } = await client.query(
    'SELECT (SELECT count(*) FROM mulligan.runs) + (SELECT count(*) FROM mulligan.finished) AS n',
  );
  await client.end();
  process.stderr.write('\n');
  return Number(counted[0].n);
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  // Its server may be stopped before it, by a failure that must not be hidden by this one.
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** One worker process; answers jobs per second. Vacuum and checkpoint come before it, or they would slow whatever is measured next. */
async function drain(url: string, client: pg.Client, onStart: () => void = () => {}): Promise<number> {
  const mulligan = await Mulligan.open(url, {
    jobs: [noop],
    log: () => {},
    retention: { completed: null, dead: null },
  });
  await mulligan.enqueueMany(
    noop,
    Array.from({ length: JOBS }, (_, n) => ({ input: n })),
  );
  await mulligan.close();
  await client.query('VACUUM');
  await client.query('CHECKPOINT');
  onStart();
  const answer = await run(['bench/advise.ts', '--drain', url, '--jobs', String(JOBS)]);
  const { tookMs } = JSON.parse(answer) as { tookMs: number };
  return JOBS / (tookMs / 1_000);
}

async function drainHere(url: string): Promise<void> {
  await using mulligan = await Mulligan.open(url, {
    jobs: [noop],
    log: () => {},
    retention: { completed: null, dead: null },
  });
  const startedAt = performance.now();
  await mulligan.work({ concurrency: 50 }).whenIdle();
  process.stdout.write(JSON.stringify({ tookMs: performance.now() - startedAt }));
}

function run(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (part) => {
    text += String(part);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => (code === 0 ? resolve(text) : reject(new Error(`${args.join(' ')}: exit ${code}`))));
  });
}

interface Advised {
  readonly tookMs: number;
  readonly advice: Advice;
}

async function advise(url: string): Promise<Advised> {
  const startedAt = performance.now();
  // As a role of its own, by which its locks are found.
  const own = new URL(url);
  own.username = 'advise';
  own.password = 'advise';
  const args = ['bin/mulligan.js', 'policy', 'advise', '--db', String(own), '--name', 'email.send', '--json'];
  const advice = JSON.parse(await run(args)) as Advice;
  return { tookMs: performance.now() - startedAt, advice };
}

/** What the reading holds, and who waits for it, until it ends. Asking costs the server something, so it is asked beside drains alone as well. */
async function watchLocks(
  client: pg.Client,
  until: Promise<unknown>,
): Promise<{ modes: Set<string>; waiting: number }> {
  const modes = new Set<string>();
  let [waiting, isOver] = [0, false];
  void until.then(() => {
    isOver = true;
  });
  while (!isOver) {
    const { rows } = await client.query(`
      SELECT array_agg(DISTINCT l.mode) AS modes, (SELECT count(*)::int FROM pg_stat_activity w
        WHERE EXISTS (SELECT 1 FROM pg_stat_activity b WHERE b.usename = 'advise' AND b.pid = ANY (pg_blocking_pids(w.pid)))) AS waiting
      FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      WHERE a.usename = 'advise' AND l.locktype = 'relation'`);
    for (const mode of rows[0].modes ?? []) modes.add(mode);
    waiting += rows[0].waiting;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return { modes, waiting };
}

interface Measured {
  readonly perSecond: number;
  readonly advised: Advised | null;
  readonly locks: { readonly modes: Set<string>; readonly waiting: number };
}

async function measure(url: string, client: pg.Client, isBeside: boolean): Promise<Measured> {
  const over = Promise.withResolvers<null>();
  const started = Promise.withResolvers<[Promise<Advised | null>, ReturnType<typeof watchLocks>]>();
  const perSecond = await drain(url, client, () => {
    const advised = isBeside ? advise(url) : over.promise;
    started.resolve([advised, watchLocks(client, advised)]);
  });
  over.resolve(null);
  const [advised, locks] = await started.promise;
  return { perSecond, advised: await advised, locks: await locks };
}

const median = (figures: readonly number[]): number =>
  [...figures].sort((a, b) => a - b)[Math.floor(figures.length / 2)] ?? 0;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function main(): Promise<void> {
  const servers = await startServers({ postgres: true, redis: false });
  try {
    if ('reason' in servers.postgres) throw new Error(servers.postgres.reason);
    const url = `${servers.postgres.url}/postgres`;
    const rows = await fill(url, Number(values.rows));
    say(`PostgreSQL ${servers.postgres.version}, ${rows.toLocaleString()} rows on the ledger`);
    const client = await connect(url);
    await client.query("CREATE ROLE advise SUPERUSER LOGIN PASSWORD 'advise'");
    await drain(url, client);
    const [alone, beside, took]: [number[], number[], number[]] = [[], [], []];
    for (let round = 0; round < Number(values.rounds); round++) {
      // In turn, so that neither always comes after the other.
      if (round % 2 === 0) alone.push((await measure(url, client, false)).perSecond);
      const { perSecond, advised, locks } = await measure(url, client, true);
      if (round % 2 === 1) alone.push((await measure(url, client, false)).perSecond);
      beside.push(perSecond);
      const { tookMs, advice } = advised as Advised;
      took.push(tookMs);
      const { modes, waiting } = locks;
      const [name] = advice.names;
      const proposal = name?.proposals.find(({ setting }) => setting === 'maxAttempts');
      say(
        `round ${round + 1}: alone ${Math.round(alone.at(-1) ?? 0)}/s, beside ${Math.round(beside.at(-1) ?? 0)}/s; advise ${(tookMs / 1_000).toFixed(1)} s, ` +
          `${advice.read} of ${advice.jobs} jobs; locks ${[...modes].join(', ')}; processes that waited for it: ${waiting}`,
      );
      if (proposal?.maxAttempts !== OPTIMUM)
        throw new Error(`wrong: maxAttempts ${proposal?.maxAttempts}, expected ${OPTIMUM}`);
      if (round === 0) say(proposal.text);
    }
    say(
      `advise: ${(median(took) / 1_000).toFixed(1)} s (median; longest ${(Math.max(...took) / 1_000).toFixed(1)} s). ` +
        `W2: ${Math.round(median(alone))}/s alone, ${Math.round(median(beside))}/s beside it, ratio ${(median(beside) / median(alone)).toFixed(2)}`,
    );
    await client.end();
  } finally {
    await servers.stop();
  }
}

if (values.drain === undefined) await main();
else await drainHere(values.drain);
