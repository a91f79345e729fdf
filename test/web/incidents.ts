import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Mulligan } from '../../src/mulligan.ts';
import { serve } from '../../src/server/index.ts';
import { badVersion, goodVersion, incidentJobs } from './incident-jobs.ts';

/*
 * Stages an incident to practise on with the dashboard: `npm run web:incidents -- NUMBER [PORT]`. Workers are processes of their own,
 * on a SQLite file. Enter does what is done outside the dashboard (the provider is back, the deploy is rolled back, ...).
 */

const HEALTHY_MS = 20_000;
const FLOOD = 1_500;

interface Incident {
  readonly title: string;
  start(): Promise<unknown>;
  /** What Enter does, and in words. */
  readonly outside: { readonly title: string; run(): Promise<unknown> };
}

const [wanted = '', port = '0'] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'mulligan-incident-'));
const store = `sqlite:${join(folder, 'queue.db')}`;

const provider = createServer((_, response) => response.end('accepted'));
provider.listen(0, '127.0.0.1');
await once(provider, 'listening');
const providerPort = (provider.address() as AddressInfo).port;
const providerUrl = `http://127.0.0.1:${providerPort}/`;

const jobs = incidentJobs(goodVersion, providerUrl);
const mulligan = await Mulligan.open(store, { jobs: Object.values(jobs), log: () => {} });

let isClosing = false;
const workers = new Map<string, ChildProcess>();

/** A supervisor starts a worker that ended by itself again, as it would in production. */
function startWorker(name: string, version: string, queues = 'default'): void {
  const program = fileURLToPath(new URL('incident-worker.ts', import.meta.url));
  const child = spawn(process.execPath, [program, store, providerUrl, name, version, queues], { stdio: 'inherit' });
  workers.set(name, child);
  child.once('exit', async () => {
    await setTimeout(1_000);
    if (!isClosing && workers.get(name) === child) startWorker(name, version, queues);
  });
}

async function stopWorker(name: string): Promise<void> {
  const child = workers.get(name);
  workers.delete(name);
  if (child === undefined || child.exitCode !== null) return;
  child.kill();
  await once(child, 'exit');
}

async function deploy(version: string): Promise<void> {
  for (const name of ['web-1', 'web-2']) {
    await stopWorker(name);
    startWorker(name, version);
  }
}

let step = 0;
/** What the application does all day. */
async function traffic(): Promise<void> {
  while (!isClosing) {
    step++;
    await Promise.all([
      mulligan.enqueueMany(jobs.resize, [{ input: { image: step } }, { input: { image: -step } }]),
      mulligan.enqueueMany(jobs.mail, [
        { input: { to: `a${step}@example.com` } },
        { input: { to: `b${step}@example.com` } },
      ]),
      mulligan.enqueueMany(jobs.invoice, [{ input: { invoice: 2 * step } }, { input: { invoice: 2 * step + 1 } }]),
      mulligan.enqueueMany(
        jobs.webhook,
        ['acme', 'globex', 'initech'].map((tenant) => ({ input: { tenant, event: step } })),
      ),
      step % 3 === 0 ? mulligan.enqueue(jobs.video, { video: step, frames: 9_000 }) : undefined,
    ]);
    await setTimeout(1_000);
  }
}

const incidents: Readonly<Record<string, Incident>> = {
  1: {
    title: 'provider down',
    async start() {
      provider.closeAllConnections();
      await new Promise((resolve) => provider.close(resolve));
    },
    outside: {
      title: 'the provider is back',
      run: () => once(provider.listen(providerPort, '127.0.0.1'), 'listening'),
    },
  },
  2: {
    title: 'bad deploy',
    start: () => deploy(badVersion),
    outside: { title: 'the deploy is rolled back', run: () => deploy(goodVersion) },
  },
  3: {
    title: 'poison job',
    start: () => mulligan.enqueue(jobs.video, { video: 4_711, frames: 9_000_000 }, { tags: ['customer:globex'] }),
    outside: { title: 'nothing', run: async () => {} },
  },
  4: {
    title: 'one tenant floods',
    start: () =>
      mulligan.enqueueMany(
        jobs.webhook,
        Array.from({ length: FLOOD }, (_, event) => ({ input: { tenant: 'acme', event } })),
      ),
    outside: { title: 'nothing', run: async () => {} },
  },
  5: {
    title: 'a schedule that stopped',
    async start() {
      await mulligan.schedules.pause('exchange-rates', { by: 'bo@ops' });
      await stopWorker('reports-1');
    },
    outside: {
      title: 'the worker of the reports is back',
      run: async () => startWorker('reports-1', goodVersion, 'reports'),
    },
  },
};

async function close(): Promise<void> {
  isClosing = true;
  await Promise.all([...workers.keys()].map(stopWorker));
  await server.close();
  await mulligan.close();
  rmSync(folder, { recursive: true });
  process.exit();
}

const incident = incidents[wanted];
if (incident === undefined) {
  const known = Object.entries(incidents).map(([number, { title }]) => `${number} ${title}`);
  console.error(`expected the number of an incident (${known.join(', ')}), got ${JSON.stringify(wanted)}`);
  process.exit(1);
}
const server = await serve(mulligan, { port: Number(port) });
process.once('SIGINT', close).once('SIGTERM', close);
startWorker('reports-1', goodVersion, 'reports');
await deploy(goodVersion);
void traffic();
console.log(`${server.url}/`);
await setTimeout(HEALTHY_MS);
await incident.start();
console.log(`Incident ${wanted} has begun. Enter: ${incident.outside.title}.`);
for await (const _ of createInterface({ input: process.stdin })) {
  await incident.outside.run();
  console.log(`Done: ${incident.outside.title}.`);
}
