/*
 * The server under load, and what HTTP costs: npm run build && node bench/server/load.ts [DATABASE ...]
 *
 *   waiting   2,000 workers wait for jobs (long poll) while 500 jobs a second are enqueued, each over HTTP; every job is
 *             claimed and acknowledged by one of them
 *   remote    the same application on the store itself, and through the server: enqueue 20,000 jobs, then run them
 *
 * Client and server are two processes on one machine, and share its cores.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineJob, Mulligan } from '../../dist/index.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const WORKERS = 2_000;
const PER_SECOND = 500;
const SECONDS = 10;
const JOBS = 20_000;

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

function post<Answer>(url: string, path: string, body: unknown): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { method: 'POST', agent, headers: { 'content-type': 'application/json' } });
    sent.on('error', reject);
    sent.on('response', async (response) => {
      let text = '';
      for await (const part of response) text += part;
      if ((response.statusCode ?? 500) < 300) resolve(JSON.parse(text) as Answer);
      else reject(new Error(`${path}: ${response.statusCode} ${text}`));
    });
    sent.end(JSON.stringify(body));
  });
}

async function serve(database: string): Promise<{ child: ChildProcess; url: string }> {
  const args = ['bin/mulligan.js', 'serve', '--db', database, '--port', '0', '--json'];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout, 'data');
  return { child, url: (JSON.parse(String(line)) as { url: string }).url };
}

function percentile(values: readonly number[], part: number): string {
  const sorted = [...values].sort((a, b) => a - b);
  return `${(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1)} ms`;
}

async function waiting(url: string): Promise<void> {
  const total = PER_SECOND * SECONDS;
  const [enqueues, pickups]: [number[], number[]] = [[], []];
  let [done, isOver] = [0, false];
  const errors = new Map<string, number>();
  const failed = (error: unknown): void => {
    const { message } = error as Error;
    errors.set(message, (errors.get(message) ?? 0) + 1);
  };
  const worker = async (name: string): Promise<void> => {
    while (!isOver) {
      try {
        const { jobs } = await post<{ jobs: { lease: string; payload: number }[] }>(url, '/api/v1/claim', {
          worker: name,
          wait: '20s',
        });
        for (const { lease, payload } of jobs) {
          pickups.push(performance.now() - payload);
          await post(url, '/api/v1/settle', { lease, outcome: 'ack' });
          done++;
        }
      } catch (error) {
        if (!isOver) failed(error);
      }
    }
  };
  for (let index = 0; index < WORKERS; index++) void worker(`w${index}`);
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const startedAt = performance.now();
  const sent: Promise<void>[] = [];
  for (let index = 0; index < total; index++) {
    const at = startedAt + (index / PER_SECOND) * 1_000;
    const early = at - performance.now();
    if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
    const before = performance.now();
    const enqueue = post(url, '/api/v1/jobs', { name: 'a', input: before });
    sent.push(enqueue.then(() => void enqueues.push(performance.now() - before), failed));
  }
  await Promise.all(sent);
  for (let waited = 0; done < total && waited < 300; waited++) await new Promise((resolve) => setTimeout(resolve, 100));
  isOver = true;
  const line = (values: readonly number[]): string => `p50 ${percentile(values, 0.5)}, p99 ${percentile(values, 0.99)}`;
  console.log(
    `  waiting: ${WORKERS} workers, ${PER_SECOND}/s for ${SECONDS} s: ${done} of ${total} done, ${errors.size} kinds of errors`,
    ...errors,
  );
  console.log(`    enqueue ${line(enqueues)}; from enqueue to worker ${line(pickups)}`);
}

async function throughput(target: string): Promise<{ enqueue: number; drain: number }> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = JOBS;
  const job = defineJob<number>({
    name: 'remote',
    run() {
      if (--left === 0) resolve();
    },
  });
  const mulligan = await Mulligan.open(target, { jobs: [job], log: () => {} });
  const rate = async (work: Promise<unknown>): Promise<number> => {
    const startedAt = performance.now();
    await work;
    return Math.round(JOBS / ((performance.now() - startedAt) / 1_000));
  };
  const enqueue = await rate(Promise.all(Array.from({ length: JOBS }, (_, index) => mulligan.enqueue(job, index))));
  mulligan.work({ concurrency: 100 });
  const drain = await rate(promise);
  await mulligan.close();
  return { enqueue, drain };
}

const folder = mkdtempSync(join(tmpdir(), 'mulligan-load-'));
const databases = process.argv.length > 2 ? process.argv.slice(2) : [`sqlite:${join(folder, 'load.db')}`];
for (const database of databases) {
  console.log(database.replace(/:.*/, ''));
  const direct = await throughput(database);
  const { child, url } = await serve(database);
  const remote = await throughput(url);
  const compared = (what: 'enqueue' | 'drain'): string =>
    `${what} ${remote[what]}/s through the server, ${direct[what]}/s directly: ${(remote[what] / direct[what]).toFixed(2)}`;
  console.log(`  remote: ${compared('enqueue')}; ${compared('drain')}`);
  await waiting(url);
  agent.destroy();
  child.kill('SIGTERM');
  await once(child, 'exit');
}
rmSync(folder, { recursive: true });
process.exit(0);
