// Several processes on one SQLite file. One is killed in the middle of its work; when its leases expire, another process
// rescues its jobs, and the crash is on the ledger.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineJob, Mulligan } from 'mulligan';

const work = defineJob<{ n: number }>({
  name: 'work',
  retry: { backoff: { kind: 'fixed', base: '10ms' } },
  run: () => sleep(20),
});

const [, self, role, url] = process.argv;
if (role === 'worker' && url) await beWorker(url);
else await conduct();

async function beWorker(url: string): Promise<void> {
  const mulligan = await Mulligan.open(url, { jobs: [work] });
  // A short lease, so that a crash is noticed soon; the default is 30 s.
  mulligan.work({ concurrency: 5, lease: '1s', name: process.env.WORKER_NAME ?? 'worker' });
  process.once('SIGTERM', () => mulligan.close().then(() => process.disconnect()));
  process.send?.('working');
}

async function startWorker(name: string, url: string): Promise<ChildProcess> {
  const child = fork(self as string, ['worker', url], { env: { ...process.env, WORKER_NAME: name } });
  await once(child, 'message');
  return child;
}

async function conduct(): Promise<void> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'mulligan-'));
  const url = `sqlite:${join(folder.path, 'jobs.db')}`;
  await using mulligan = await Mulligan.open(url);
  await mulligan.enqueueMany(
    work,
    Array.from({ length: 200 }, (_, n) => ({ n })).map((input) => ({ input })),
  );

  const [victim, survivor] = await Promise.all([startWorker('victim', url), startWorker('survivor', url)]);
  while ((await mulligan.stats()).states.completed < 50) await sleep(10);
  const killed = once(victim, 'exit');
  victim.kill('SIGKILL');
  await killed;
  console.log(`killed one of two workers; ${(await mulligan.stats()).states.completed} of 200 jobs are completed`);

  while ((await mulligan.stats()).states.completed < 200) await sleep(20);
  const stopped = once(survivor, 'exit');
  survivor.kill('SIGTERM');
  await stopped;

  const { totals, states } = await mulligan.stats();
  console.log(`completed ${states.completed} of 200; ${totals.runs.crashed} runs had crashed with their process`);
  const finishers: Record<string, number> = {};
  for (const { id } of await mulligan.jobs.list({ limit: 200 })) {
    const finisher = (await mulligan.jobs.runs(id)).at(-1)?.worker.split('-')[0] ?? '';
    finishers[finisher] = (finishers[finisher] ?? 0) + 1;
  }
  console.log(
    `completed by: ${Object.entries(finishers)
      .map((entry) => entry.join(' '))
      .join(', ')}`,
  );
}
